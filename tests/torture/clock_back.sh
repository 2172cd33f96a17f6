# A clock that jumps back by a day under a campaign: said, recorded, and without effect on anything that is decided.
source "$(dirname "$0")/faults.sh"
"${CXX:-g++}" -shared -fPIC -O1 -o clock_back.so "$SOURCE/tests/torture/clock_back.cpp"
export KBEAM_TEST_SECONDS_BACK=$work/seconds_back
begin runs env LD_PRELOAD="$work/clock_back.so"
until_evaluated runs 3
echo 86400 >seconds_back.new && mv seconds_back.new seconds_back
got=0
wait $run || got=$?
[ "$got" -le 1 ] || fail "the campaign ended with $got: $(tail -n 20 run.txt)"
expect 0 "$KBEAM" status --dir runs
says "the clock of this machine went back by 86[34][0-9][0-9] s"
expect 0 "$KBEAM" status --dir runs --json
holds 'r["state"] == "budget_evaluations" and r["evaluations"] >= 6'
expect 0 "$KBEAM" replay --only-recorded --dir runs --json
holds 'r["mistakes"] == [] and r["choices"] >= 6'
