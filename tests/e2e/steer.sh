# A campaign is steered while it runs: told something, paused, resumed, asked, forked; the record has it all, and a
# replay makes every decision and choice again with the steering in its place.
source "$(dirname "$0")/lib.sh"
export KBEAM_AS="a tester"
"$KBEAM" run template --budget 300s --evaluations 3 --seed 5 --json >run.txt 2>run.err &
run=$!
until "$KBEAM" status >/dev/null 2>&1; do kill -0 $run || fail "$(cat run.err)"; sleep 0.1; done
expect 0 "$KBEAM" pause
expect 0 "$KBEAM" steer "try two rows at a time"
until "$KBEAM" status --json >out.txt 2>/dev/null && [ "$(json 'r["state"]')" = paused ]; do
  kill -0 $run || fail "it ended before it paused: $(cat run.err)"
  sleep 0.2
done
family=$(python3 -c "import tomllib; print(tomllib.load(open('$SOURCE/problems/template/ideas.toml','rb'))['idea'][0]['family'])")
expect 2 "$KBEAM" drop "${family}x"
says "did you mean $family"
expect 0 "$KBEAM" drop "$family"
expect 0 "$KBEAM" protect "$family"
until "$KBEAM" status --json >out.txt && [ "$(json 'len(r["steering"])')" = 4 ]; do sleep 0.2; done
holds 'r["waiting"] == [] and all(m["who"] == "a tester" for m in r["steering"])'
expect 2 "$KBEAM" resume --budget 10s # a live run keeps its budget
expect 2 "$KBEAM" fork --goal nonsense
says "no comparison that kbeam knows"
expect 0 "$KBEAM" fork --dir runs --json
fork=$(json 'r["run_id"]')
parent=$(json 'r["forked_from"]')
expect 0 "$KBEAM" resume "$parent" --only-paused
wait $run || [ $? -eq 1 ] || fail "$(cat run.err)"
expect 2 "$KBEAM" resume "$parent" --only-paused
expect 2 "$KBEAM" pause "$parent"
expect 0 "$KBEAM" replay "$parent" --only-recorded
expect 0 "$KBEAM" ask "$parent" "why was family 1 dropped?"
says "asked for by a tester"
says 'e[0-9]{5}'
expect 0 "$KBEAM" ask "$parent" "what was said to this run?"
says "try two rows at a time"
expect 1 "$KBEAM" ask "$parent" "will it rain tomorrow?"
says "who are the champions"
# The fork has what its parent had at that moment, and goes on by itself.
expect 0 "$KBEAM" status "$fork" --json
holds "r['state'] == 'forked' and r['forked_from'] == '$parent' and r['evaluations'] < 6 and len(r['steering']) == 4"
expect 2 "$KBEAM" status "nothing-like-it"
"$KBEAM" resume "$fork" --json >out.txt 2>err.txt || [ $? -eq 1 ] || fail "$(cat err.txt)"
holds "r['run_id'] == '$fork' and r['evaluations'] == 3"
expect 0 "$KBEAM" replay "$fork" --only-recorded
