# What a campaign found leaves as a folder that builds and tests itself with plain cmake, and as a data set.
source "$(dirname "$0")/lib.sh"
cp -r "$BINARY/tests/ended/runs" .  # of e2e.campaign
expect 0 "$KBEAM" export winner --as library --to exported --json
holds 'r["folder"] == "exported" and r["as"] == "library"'
grep -q "$(json 'r["candidate_id"]')" exported/README.md || fail "the README does not name the candidate"
grep -q 'Measured in a promotion' exported/README.md || fail "the README does not rest on a promotion"
if grep -rqF "$SOURCE" exported; then fail "the export names a folder of this machine"; fi
moved=$work/elsewhere
mv exported "$moved"
expect 0 env -u KBEAM_HOME cmake -S "$moved" -B "$moved/build"
expect 0 cmake --build "$moved/build" -j 2
expect 0 "$moved/build/batched_qr_test"
says ' 0 failed'
expect 0 "$moved/build/batched_qr_example"
says 'first output'
expect 0 "$moved/build/batched_qr_c_example"
# The test can fail: a kernel that keeps one element of H to itself is found out.
sed -i 's/plan->plan.execute(tensors, plan->scratch.get(), plan->team);/&\n  H[0] += 1;/' "$moved/src/batched_qr.cpp"
expect 0 cmake --build "$moved/build" --target batched_qr_test
expect 1 "$moved/build/batched_qr_test"

expect 0 "$KBEAM" export winner --as source --to sources
[ -s sources/CMakeLists.txt ] && [ -s sources/proof.json ] && [ ! -e sources/include ] || fail "sources are incomplete"
expect 2 "$KBEAM" export winner --as source --to sources
says 'already there'
expect 2 "$KBEAM" export nobody
says 'no such candidate'
expect 0 "$KBEAM" export dataset --to run.jsonl
python3 - <<'PYTHON' || fail "the data set is not one object a line"
import json
lines = [json.loads(line) for line in open("run.jsonl")]
assert lines[0]["kind"] == "campaign" and all(line["kind"] == "attempt" for line in lines[1:])
assert any(line["stage"] == "promote" and line["verdict"] == "accepted" and line["times"] for line in lines[1:])
assert all(line["code"] and line["code"][0]["source"] for line in lines[1:])
PYTHON
