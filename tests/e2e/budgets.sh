# Device time is a budget: estimated before the search, watched, kept; and every budget's total is in the summary, the status
# and the reports. A second run on the problem is estimated by the first.
source "$(dirname "$0")/lib.sh"
code=0
"$KBEAM" run softmax --device-time 60s --evaluations 100000 --seed 3 --json >out.txt 2>err.txt || code=$?
[ $code -le 1 ] || fail "it ended with $code: $(cat err.txt)" # whether it wins is a matter of the machine
says 'estimate: no run of softmax ended here yet'
says 'estimate: an evaluation takes about [0-9.]+ s.*--device-time for about [0-9]+; the 100000 left of --evaluations take about'
# A noisy machine keeps so much for a promotion that may then have nobody to promote; one step may pass several marks.
if json '[b["used"] >= 0.5 * b["most"] for b in r["budgets"] if b["name"] == "device time"][0]' | grep -qi true; then
  says '(50|80|95) % of the budget for device time is used: [0-9]+ of 60 s'
fi
holds 'r["stop_reason"] == "budget_device"'
holds '0 < r["evaluations"] and 20 < r["device_s"] <= r["wall_s"]'
# A screening in hand and the first look of the promotion are not cut off.
holds 'r["device_s"] < 60 + 45'
holds '{b["name"]: b["most"] for b in r["budgets"]} == {"wall time": 180, "evaluations": 100000, "device time": 60}'
run=$(json 'r["run_id"]')
budgets=$(json 'r["budgets"]')
evaluations=$(json 'r["evaluations"]')
used=$(json '[b["text"] for b in r["budgets"] if b["name"] == "device time"][0]')
grep -q -- "- stopped: budget.*device; used: wall time .*device time $used" "runs/$run/attempts_log.md" || fail "the log does not say 'device time $used'"
grep -q "device time $used" "runs/$run/report.html" || fail "the report does not say 'device time $used'"
expect 0 "$KBEAM" status
says 'budgets: wall time [0-9]+ of 180 s, evaluations [0-9]+ of 100000, device time [0-9]+ of 60 s'
expect 0 "$KBEAM" status --json
holds "[b['used'] for b in r['budgets'] if b['name'] == 'evaluations'] == [$evaluations]" # screened, without confirmations
holds "r['budgets'] == $budgets and r['evaluations'] == $evaluations" # as the run itself said at its end
# What is used stays used.
"$KBEAM" resume "$run" --json >out.txt 2>err.txt || [ $? -eq 1 ] || fail "$(cat err.txt)"
holds "r['stop_reason'] == 'budget_device' and all(now['used'] >= before['used'] for now, before in zip(r['budgets'], $budgets))"
budgets=$(json 'r["budgets"]')
expect 0 "$KBEAM" status --json
holds "r['budgets'] == $budgets"
"$KBEAM" run softmax --budget 60s --evaluations 1 --seed 4 >out.txt 2>err.txt || [ $? -le 1 ] || fail "$(cat err.txt)"
says "estimate, by run $run: an evaluation takes about .*; --budget has room for about [0-9]+; the 1 left of --evaluations take about"
