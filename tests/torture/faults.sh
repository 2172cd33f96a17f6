# Shared by the tests of what goes wrong around a campaign: a small real one that is under way when it happens. Its
# baseline and first evaluations are those of begun.sh, so that each test pays for what it breaks alone.
source "$(dirname "$0")/../e2e/lib.sh"
begun=$BINARY/tests/begun
evaluations() { "$KBEAM" status --dir "$1" --json 2>/dev/null | python3 -c 'import json,sys; print(json.load(sys.stdin)["evaluations"])' 2>/dev/null || echo 0; }
# begin RUNS [COMMAND...]: the campaign goes on in the background, behind COMMAND, to six evaluations; $run is its process,
# and its folder belongs to $owner where that is set.
begin() {
  local runs=$1
  shift
  mkdir -p "$runs"
  cp -r "$begun/runs/." "$runs"
  [ -z "${owner:-}" ] || chown -R "$owner" "$runs"
  "$@" "$KBEAM" resume --dir "$runs" >run.txt 2>&1 &
  run=$!
}
# until_evaluated RUNS N: waits until N evaluations are recorded; the campaign must be alive.
until_evaluated() {
  until [ "$(evaluations "$1")" -ge "$2" ]; do
    kill -0 $run 2>/dev/null || fail "the campaign ended early: $(cat run.txt)"
    sleep 0.1
  done
}
# ends CODE: how the campaign in the background ends.
ends() {
  local got=0
  wait $run || got=$?
  cp run.txt out.txt; : >err.txt
  [ "$got" -eq "$1" ] || fail "the campaign ended with $got, not $1: $(tail -n 20 run.txt)"
}
# goes_on RUNS N: what was recorded (N evaluations at least) is there, a resume ends the campaign, and all of it follows
# from the samples.
goes_on() {
  expect 0 "$KBEAM" status --dir "$1" --json
  holds "r['evaluations'] >= $2 and r['state'] == 'killed'"
  got=0
  "$KBEAM" resume --dir "$1" --json >out.txt 2>err.txt || got=$?
  [ "$got" -le 1 ] || fail "resume ended with $got: $(tail -n 20 err.txt)"
  holds 'r["evaluations"] >= 6'
  expect 0 "$KBEAM" replay --only-recorded --dir "$1" --json
  holds 'r["mistakes"] == [] and r["choices"] >= 6'
}
