# A run that is killed with SIGKILL resumes with what it had; so does one that was stopped; nothing is left behind.
source "$(dirname "$0")/lib.sh"
"$KBEAM" run template --budget 300s --seed 3 >run.txt 2>&1 &
run=$!
until [ "$("$KBEAM" status --json 2>/dev/null | python3 -c 'import json,sys; print(json.load(sys.stdin)["evaluations"])' 2>/dev/null || echo 0)" -ge 3 ]; do
  kill -0 $run || fail "the run ended early: $(cat run.txt)"
  sleep 0.2
done
kill -KILL $run
wait $run 2>/dev/null || true
for _ in $(seq 50); do pgrep -f "kbeam-runner.*$work" >/dev/null || break; sleep 0.1; done
expect 0 "$KBEAM" status --json
before=$(json 'r["evaluations"]')
holds 'any(b["name"] == "device time" and b["used"] > 0 for b in r["budgets"])'
# What is said to nobody: there is nothing to stop, and a submission waits for the run to go on.
expect 2 "$KBEAM" stop
says 'could not stop run .*: nobody runs it now'
says 'nothing to stop.*kbeam resume'
cp "$(ls "$SOURCE"/problems/template/known_good/*.cpp | head -n 1)" mine.cpp
expect 0 "$KBEAM" submit mine.cpp --idea "a plain loop" --family waits
says 'nobody runs it now: it is judged once .kbeam resume .* goes on'
# The budget that is left would last minutes: stop it from outside once it has gone on.
"$KBEAM" resume --json >resumed.txt 2>&1 &
run=$!
until [ "$("$KBEAM" status --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["evaluations"])')" -gt "$before" ]; do
  kill -0 $run || fail "the resumed run ended early: $(cat resumed.txt)"
  sleep 0.2
done
expect 0 "$KBEAM" stop
wait $run || fail "a stopped run is not an error: $(cat resumed.txt)"
tail -n 2 resumed.txt | grep -q '"stop_reason":"asked_to_stop"' || fail "stop reason: $(tail -n 2 resumed.txt)"
expect 0 "$KBEAM" status --json
holds "r['evaluations'] > $before"
# Ctrl-C ends cleanly and names the command that goes on.
"$KBEAM" resume >interrupted.txt 2>&1 &
run=$!
sleep 3
kill -INT $run
code=0; wait $run || code=$?
[ "$code" -eq 130 ] || fail "Ctrl-C ended with $code: $(cat interrupted.txt)"
grep -q "go on with: kbeam resume" interrupted.txt || fail "no resume command: $(cat interrupted.txt)"
