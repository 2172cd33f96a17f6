# A campaign ends by itself with one JSON object that has every promised field, and an archive to match.
# The run and its builds stay in BINARY/tests/ended, for tests of what is done with a run that ended.
source "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME=$work/cache
# batched_qr, because there every sketch is far ahead of LAPACK on small matrices: a winner is certain.
# Six evaluations need not reach every case, so cases may lose here.
expect 0 "$KBEAM" run batched_qr --budget 300s --evaluations 6 --seed 7 --goal 'speedup >= 1000 and slower <= 6' --json
holds 'all(k in r for k in ["run_id","tool_version","problem","target","threads","winner","baseline","evaluations","evaluations_per_minute","engine_overhead_fraction","stop_reason","archive","report_html"])'
holds 'r["evaluations"] == 6 and r["stop_reason"] == "budget_evaluations"'
holds 'all(k in r["winner"] for k in ["candidate_id","verdict","grade","assurance","worst_column_error_eps","limit_eps","speedup_geomean","cases"])'
holds 'r["winner"]["verdict"] == "accepted"'
holds 'all(set(["name","baseline_ns","candidate_ns","speedup","low","high","comparison"]) <= set(c) for c in r["winner"]["cases"])'
holds 'all(c["low"] <= c["speedup"] <= c["high"] for c in r["winner"]["cases"])'
archive=$(json 'r["archive"]')
html=$(json 'r["report_html"]')
[ -s "$archive" ] && [ -s "$html" ] && [ -s "$(dirname "$html")/attempts_log.md" ] || fail "report or archive is missing"
grep -q "$(json 'r["winner"]["candidate_id"]')" "$html" || fail "the report does not name the winner"
expect 0 "$KBEAM" status --json
holds 'r["evaluations"] >= 6 and r["state"] == "budget_evaluations"'
expect 0 "$KBEAM" publish --to published
winner=$(ls published)
[ -s "published/$winner/summary.json" ] && [ -s "published/$winner/report.html" ] || fail "publish left something out"
rm -rf "$BINARY/tests/ended"
mkdir -p "$BINARY/tests/ended"
cp -r runs cache "$BINARY/tests/ended"
