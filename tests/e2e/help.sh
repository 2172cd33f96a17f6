# Every command explains itself with an example and its exit codes; misspelt words are answered with the right one.
source "$(dirname "$0")/lib.sh"
expect 0 "$KBEAM" --help
for command in run resume status stop submit check bench compare plan profile report publish export replay gc tune setup mcp \
    ask steer pause drop protect fork problems new-problem doctor; do
  grep -q "  $command " out.txt || fail "the help does not list $command"
  "$KBEAM" "$command" --help >help.txt
  grep -q "Example: kbeam $command" help.txt || fail "$command --help has no example"
  grep -q "Exit codes: 0" help.txt || fail "$command --help has no exit codes"
  grep -q -- "--json" help.txt || fail "$command has no --json"
done
expect 0 "$KBEAM" --version
says '^kbeam [0-9]+\.[0-9]+\.[0-9]+$'
expect 2 "$KBEAM" rnu
says "did you mean 'run'"
expect 2 "$KBEAM" run template --budgte 3s
says "did you mean '--budget'"
expect 2 "$KBEAM" run softmx
says "did you mean .softmax"
expect 2 "$KBEAM" run template --budget soon
says "write for instance 180s"
expect 2 "$KBEAM" run template --device-time 0s
says "read --device-time: '0s' is no duration"
# None of something is no number of it, and an error has advice whatever it is about.
for option in --beam --evaluations --tokens; do
  expect 2 "$KBEAM" run template $option 0 --proposer llm:http://127.0.0.1:9/v1 --model m
  says "could not read $option.*(is none|no budget)"
  says "what to do: write"
done
expect 2 "$KBEAM" run template --beam 5000
says "5000 is too many"
says "from 1 to 1000"
cp "$SOURCE/problems/template/sketches/many_accumulators.cpp" mine.cpp
expect 2 "$KBEAM" tune mine.cpp --problem template --evaluations 0
says "0 is none"
expect 2 "$KBEAM" check mine.cpp --problem template --key 7
says "there is no --seed"
says "give both"
for command in run check compare submit bench tune steer ask drop; do
  expect 2 "$KBEAM" $command
  says "write for instance: kbeam $command"
  says "see .kbeam $command --help"
done
expect 2 "$KBEAM" run template --budget
says "write for instance: kbeam run"
expect 2 "$KBEAM" status one two three
says "write for instance: kbeam status"
expect 2 "$KBEAM" --nonsense
says "see .kbeam --help"
expect 2 "$KBEAM" run template --goal 'speed > 3'
says "no comparison that kbeam knows"
expect 2 "$KBEAM" run template --goal "speedup >= $(printf '9%.0s' $(seq 400))"
says "out of range"
expect 2 "$KBEAM" run template --goal "$(head -c 100000 /dev/zero | tr '\0' ' ')"
says "it has 100000 bytes"
for budget in infs 1e308h nan -1; do
  expect 2 "$KBEAM" run template "--budget=$budget"
  says "no duration"
done
expect 2 "$KBEAM" run template --tokens 1e6 --proposer llm:http://127.0.0.1:9/v1 --model m
says "digits alone"
expect 2 "$KBEAM" run template --proposer llm:http://127.0.0.1:9/v1 --model m --llm connections=1.5
says "whole number"
expect 2 "$KBEAM" run template --proposer llm:http://127.0.0.1:9/v1 --model m --key env:KBEAM_TEST_NO_SUCH_KEY
says "variable is not set"
expect 2 "$KBEAM" run template --agent-allow network
says "no agent is asked"
for grant in read:/nowhere/at/all read:relative write:/nowhere env:KBEAM_TEST_NO_SUCH_KEY; do
  expect 2 "$KBEAM" run template --proposer agent:true --agent-allow $grant
  says "could not grant an agent"
done
# With --json a mistake of the command line is JSON too.
for words in "nonsense" "run" "run template --nonsense" "status one two three"; do
  expect 2 "$KBEAM" $words --json
  holds 'r["error"]["happened"] != "" and r["error"]["advice"] != ""'
done
[ ! -e runs ] || [ -z "$(ls runs)" ] || fail "a refused command left a run behind"
