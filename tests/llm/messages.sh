# A campaign over the Anthropic Messages protocol and TLS with an authority of its own: busy servers, a stream that breaks
# off, a limit, and token totals that are exact. Then the same endpoint words answers of `kbeam ask`; a server that nobody
# vouches for is told nothing.
source "$(dirname "$0")/../e2e/lib.sh"
export EXPECTED_KEY=sk-e2e-0123456789abcdefghij https_proxy=http://127.0.0.1:9
authority() { # NAME: NAME.pem and NAME.key
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" \
    -keyout "$1.key" -out "$1.pem" 2>openssl.err || fail "$(cat openssl.err)"
}
authority ours
authority theirs
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=endpoint -keyout endpoint.key \
  -out endpoint.csr 2>openssl.err || fail "$(cat openssl.err)"
echo 'subjectAltName=DNS:localhost' >names
openssl x509 -req -in endpoint.csr -CA ours.pem -CAkey ours.key -set_serial 7 -days 2 -extfile names -out endpoint.pem \
  2>openssl.err || fail "$(cat openssl.err)"
cat endpoint.key >>endpoint.pem
python3 "$SOURCE/tests/llm/messages_endpoint.py" "$SOURCE/problems/template/sketches/many_accumulators.cpp" endpoint.pem port \
  requests.jsonl 2>endpoint.err &
endpoint=$!
trap 'kill $endpoint 2>/dev/null || true; rm -rf "$work"' EXIT
until [ -s port ]; do kill -0 $endpoint || fail "$(cat endpoint.err)"; sleep 0.05; done
url=llm:https://localhost:$(cat port)/v1
model=(--api anthropic --model tester=1/2 --key env:EXPECTED_KEY)

# What cannot work is told before anything is measured.
expect 2 "$KBEAM" run template --proposer "$url" "${model[@]}" --ca nowhere.pem
says 'nowhere.pem'
expect 2 "$KBEAM" run template --proposer "$url" "${model[@]}" --ca ours.key
says 'holds no certificate in PEM form'
expect 2 "$KBEAM" run template --proposer llm:http://127.0.0.1:9/v1 "${model[@]}" --ca ours.pem
says 'http:// has no certificate'

code=0
"$KBEAM" run template --proposer "$url" "${model[@]}" --ca ours.pem --llm ideas=2 --llm variants=1 --llm repairs=1 --llm patience=2 \
  --llm connections=1 --llm wait_s=0.05 --llm stall_s=20 --tokens 2000000 --budget 300s --seed 3 --json >out.txt 2>err.txt || code=$?
[ $code -le 1 ] || fail "the run ended with $code: $(cat err.txt)" # whether it wins is a matter of the machine
run=$(json 'r["run_id"]')
holds 'r["stop_reason"] == "exhausted"'
total='r["contributions"]["total"]'
holds "$total['retries'] == 3" # slow down, overloaded, overloaded in the stream
says 'inside the stream: Overloaded'
for outcome in truncated refused http_error no_ideas delivered; do holds "$total['outcomes'].get('$outcome', 0) >= 1"; done
holds "$total['outcomes']['truncated'] == 2" # broke off, at the limit
# Every count that was reported, and beside it the output of the two replies that ended before they said it.
check_totals() {
  python3 - "$(json "[$total[name] for name in ('tokens_in', 'tokens_out', 'tokens_estimated')]")" <<'PYTHON' || fail "the totals"
import json, sys
tokens_in, tokens_out, estimated = json.loads(sys.argv[1])
entries = [json.loads(line) for line in open('requests.jsonl')]
wanted = (sum(e['tokens_in'] for e in entries), sum(e['tokens_out'] for e in entries), sum(e['said'] // 3 + 8 for e in entries if 'said' in e))
print((tokens_in, tokens_out - estimated, estimated), 'where', wanted, 'was reported', file=sys.stderr)
sys.exit((tokens_in, tokens_out - estimated, estimated) != wanted or estimated == 0)
PYTHON
}
check_totals
expect 0 "$KBEAM" replay "$run" --only-recorded

# Answers: the model's words with the facts behind them, its inventions left out, and never without trust.
question='what were the latest evaluations?'
expect 0 "$KBEAM" ask "$run" "$question"
says '^One candidate was judged, in e[0-9]+\. \[31m\[key\]$'
says 'read as: evaluations'
expect 0 "$KBEAM" ask "$run" "$question" --json
holds 'r["answered"] and len(r["tables"]) > 0 and r["words"]["text"] == "" and "e77777" in r["words"]["why_not"] and r["words"]["tokens_in"] > 1000'
expect 0 "$KBEAM" ask "$run" "$question"
says 'tester did not word the answer: refused'
says 'read as: evaluations'
expect 0 "$KBEAM" ask "$run" "$question" --plain --json
holds 'r["words"] is None and len(r["tables"]) > 0'
expect 1 "$KBEAM" ask "$run" 'what is the meaning of life?' # nothing is asked about what the archive does not answer
expect 2 "$KBEAM" ask "$run" "$question" --model other
says 'add --by llm:URL'
before=$(wc -l <requests.jsonl)
for ca in "" "--ca theirs.pem"; do
  expect 0 "$KBEAM" ask "$run" "$question" --by "$url" "${model[@]}" $ca
  says 'certificate is not trusted: .*name the file of the authority that signed it with --ca FILE'
  says 'read as: evaluations'
done
expect 0 "$KBEAM" ask "$run" "$question" --by "${url/localhost/127.0.0.1}" "${model[@]}" --ca ours.pem
says 'certificate is not trusted: .*127\.0\.0\.1'
[ "$(wc -l <requests.jsonl)" = "$before" ] || fail "a server that was not trusted got a request"
env -u EXPECTED_KEY "$KBEAM" ask "$run" "$question" >out.txt 2>err.txt || fail "without the key the facts are still there"
says 'did not word the answer: .*EXPECTED_KEY'
! grep -rqaF -- "$EXPECTED_KEY" runs out.txt err.txt || fail "a key was stored"
