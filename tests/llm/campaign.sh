# A campaign that a misbehaving endpoint drives ends with the right winner, exact token totals and no key on disk; the
# record of its replies drives another one, offline, to the same decisions.
source "$(dirname "$0")/../e2e/lib.sh"
export EXPECTED_KEY=sk-e2e-0123456789abcdefghij XDG_CACHE_HOME=$work/cache http_proxy=http://127.0.0.1:9 # no proxy is there, and none is asked
# A baseline that is certainly slower than a vectorised kernel: who wins is no matter of noise.
cp -r "$SOURCE/problems/softmax" softmax
cp softmax/known_good/double_three_pass.cpp softmax/baselines/vectorised.cpp
rm softmax/separation.json
# Two timed cases are enough to win on.
for name in c4096 c65536; do sed -i "/^name = \"$name\"/,/^timed/ s/^timed = true\$//" softmax/problem.toml; done
python3 "$SOURCE/tests/llm/scripted_endpoint.py" softmax port requests.jsonl 2>endpoint.err &
endpoint=$!
trap 'kill $endpoint 2>/dev/null || true; rm -rf "$work"' EXIT
until [ -s port ]; do kill -0 $endpoint || fail "$(cat endpoint.err)"; sleep 0.05; done

expect 0 "$KBEAM" run ./softmax --proposer "llm:http://127.0.0.1:$(cat port)/v1" --model tester=1/2 --key env:EXPECTED_KEY \
  --llm variants=1 --llm repairs=3 --llm patience=3 --llm connections=1 --llm wait_s=0.05 --llm stall_s=2 \
  --tokens 2000000 --money 5 --budget 200s --seed 7 --goal 'speedup >= 1000 and slower <= 4' --json
says 'estimate: a round of llm:'
cp out.txt first.txt
run=$(json 'r["run_id"]')
holds 'r["stop_reason"] == "exhausted"'
holds '[row["source"] for row in r["winner"]["rows"]] == ["rows_in_registers_2_1.cpp"]'
# Every misbehaviour by its name.
total='r["contributions"]["total"]'
for outcome in garbled duplicate oversize no_ideas truncated several_files overstepped delivered; do
  holds "$total['outcomes'].get('$outcome', 0) >= 1"
done
holds "$total['retries'] == 3"
# What the endpoint reported, and beside it only what nobody reported: the 50 MB that were not read to their end.
reported=$(python3 -c 'import json; print(sum(e["tokens_in"] + e["tokens_out"] for e in map(json.loads, open("requests.jsonl"))))')
holds "$total['tokens_in'] + $total['tokens_out'] - $total['tokens_estimated'] == $reported"
holds "0 < $total['tokens_estimated'] and $total['money'] > 0"
holds '[m["champions"] > 0 and m["success_rate"] < 1 for m in r["contributions"]["models"] if m["name"] == "llm:tester"] == [True]'
expect 0 "$KBEAM" status "$run" --json
holds 'r["contributions"]["total"]["tokens_in"] > 0 and r["budget_tokens"] == 2000000'
# The key: nowhere in the archive, the reports, the cache or what was printed, in no form.
for form in "$EXPECTED_KEY" "$(printf %s "$EXPECTED_KEY" | base64)" "${EXPECTED_KEY:0:16}"; do
  ! grep -rqaF --exclude-dir=softmax -- "$form" runs cache out.txt err.txt first.txt || fail "a key was stored: $(grep -rlaF -- "$form" .)"
done
python3 - "runs/$run/archive.sqlite" <<'PYTHON' || fail "the reply that echoed the key was not stored with [key] in its place"
import sqlite3, sys
blobs = [row[0] for row in sqlite3.connect(sys.argv[1]).execute('SELECT bytes FROM blobs')]
sys.exit(not any(b'My key is [key].' in blob for blob in blobs))
PYTHON
expect 0 "$KBEAM" replay "$run" --only-recorded

# Offline: the endpoint is gone.
kill $endpoint
expect 0 "$KBEAM" run ./softmax --proposer "replay:$run" --budget 200s --seed 7 --goal 'speedup >= 1000 and slower <= 4' --json
holds '[row["source"] for row in r["winner"]["rows"]] == ["rows_in_registers_2_1.cpp"]'
python3 - "runs/$run/archive.sqlite" "runs/$(json 'r["run_id"]')/archive.sqlite" <<'PYTHON' || fail "the replay went another way"
import json, sqlite3, sys
def course(file):
    steps = []
    for kind, body in sqlite3.connect(file).execute('SELECT kind, body FROM events ORDER BY sequence'):
        body = json.loads(body)
        if kind == 'model_reply':
            steps.append((kind, body['request_id'], body['outcome'], body['tokens_in'], body['tokens_out'], body['text_hash']))
        elif kind == 'delivery':
            steps.append((kind, body['delivery_id'], body['source_hash'], body['taken'], body['why_not']))
        elif kind == 'observation':
            steps.append((kind, body['candidate_id'], body['verdict']))
    return steps
first, again = course(sys.argv[1]), course(sys.argv[2])
for a, b in zip(first, again):
    if a != b: print(a, 'became', b, file=sys.stderr)
sys.exit(first != again)
PYTHON
