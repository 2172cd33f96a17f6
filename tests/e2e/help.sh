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
expect 2 "$KBEAM" run template --goal 'speed > 3'
says "no comparison that kbeam knows"
[ ! -e runs ] || [ -z "$(ls runs)" ] || fail "a refused command left a run behind"
