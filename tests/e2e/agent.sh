# The guide of docs/agents.md works as it is written, and its agent is credited. One that hangs, forks, floods its log,
# destroys its workspace and looks for the oracle changes nothing for the campaign.
source "$(dirname "$0")/lib.sh"
mkdir bin && ln -s "$KBEAM" bin/kbeam
export PATH=$work/bin:$PATH
python3 - "$SOURCE/docs/agents.md" >guide.sh <<'PY'
import re, sys
print("\n".join(re.findall(r"```sh\n(.*?)```", open(sys.argv[1]).read(), re.S)))
PY
bash guide.sh >guide.txt 2>&1 || fail "$(tail -n 30 guide.txt)"
grep -q 'read as: family two_sums' guide.txt || fail "the guide's question is not answered: $(tail -n 30 guide.txt)"
guide=$(ls runs)
expect 0 kbeam ask "$guide" "how is family two_sums?" --json
holds 'r["answered"] and any("accepted" in row for t in r["tables"] for row in t["rows"])'
grep -q 'agent:agent' "runs/$guide/attempts_log.md" runs/"$guide"/report.html || fail "the agent is not credited"

# Offline, with the agent gone: its sessions come again as they were recorded, to the same submissions and verdicts.
mv agent.sh agent.gone
seed=$(python3 -c 'import json, sqlite3, sys; print(json.loads(sqlite3.connect(sys.argv[1]).execute(
  "SELECT body FROM events ORDER BY sequence LIMIT 1").fetchone()[0])["config"]["seed"])' "runs/$guide/archive.sqlite")
"$KBEAM" run template --budget 120s --evaluations 3 --seed "$seed" --proposer "replay:runs/$guide" --dir again --json >out.txt \
  2>err.txt || [ $? -eq 1 ] || fail "$(tail -n 20 err.txt)"
python3 - "runs/$guide/archive.sqlite" again/*/archive.sqlite <<'PY' || fail "the replay of the agent went another way"
import json, sqlite3, sys
def course(file):
    steps, judged = [], set()
    for kind, body in sqlite3.connect(file).execute('SELECT kind, body FROM events ORDER BY sequence'):
        body = json.loads(body)
        if kind == 'model_request':
            steps.append((kind, body['request_id'], body['prompt_hash'], body['at_evaluation']))
        elif kind == 'model_reply':
            steps.append((kind, body['request_id'], body['outcome'], body['at_evaluation']))
        elif kind == 'delivery':
            steps.append((kind, body['delivery_id'], body['source_hash'], body['taken'], body['why_not'], body['idea_id']))
        elif kind == 'observation':  # in which order knobs are tried is a matter of what was measured
            judged.add((body['candidate_id'], body['verdict']))
    return steps, judged
first, again = course(sys.argv[1]), course(sys.argv[2])
assert len(first[1]) == 3 and any(step[0] == 'delivery' and step[3] for step in first[0]), first
for a, b in zip(*(c[0] + sorted(c[1]) for c in (first, again))):
    if a != b: print(a, 'became', b, file=sys.stderr)
sys.exit(first != again)
PY
expect 0 kbeam replay --dir again --only-recorded

cat >rogue.sh <<END
seen() { cat "\$@" >/dev/null 2>&1 && echo seen || echo unseen; }
found="oracle \$(seen $SOURCE/problems/template/problem.cpp) archive \$(seen $work/runs/*/archive.sqlite) self \$(seen $work/rogue.sh)"
kbeam run template && found="\$found ran"
echo '#include <kbeam/candidate.h>' >nothing.cpp
kbeam check nothing.cpp --seed 3 && found="\$found chose"
kbeam submit nothing.cpp --idea "\$found" --family rogue
head -c 5000000 /dev/zero | tr '\\0' x
setsid sleep 7654.321 &
(while :; do setsid sleep 7654.321 & done) &
rm -rf /workspace/* /workspace/.??* / 2>/dev/null
kill -KILL 1 -1 2>/dev/null
while :; do :; done
END
rogue() { # EVALUATIONS DIR MORE...
  local evaluations=$1 dir=$2
  shift 2
  kbeam run template --budget 300s --evaluations "$evaluations" --seed 9 --proposer "agent:sh $work/rogue.sh" "$@" \
    --agent-allow "read:$work/rogue.sh" --agent-time 20s --dir "$dir" --json >out.txt 2>err.txt || [ $? -eq 1 ] ||
    fail "$(tail -n 20 err.txt)"
  cp err.txt "$dir.err"
  holds "r['evaluations'] == $evaluations and r['stop_reason'] == 'budget_evaluations'"
  if pgrep -f 'sleep 7654[.]321' >/dev/null; then fail "something of the agent lives on"; fi
  expect 0 kbeam replay --dir "$dir" --only-recorded
}
rogue 1 alone
grep -q 'oracle unseen archive unseen self seen$' alone.err || fail "what the rogue saw: $(cat alone.err)"
rogue 4 beside --proposer builtin
