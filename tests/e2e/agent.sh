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

cat >rogue.sh <<END
seen() { cat "\$@" >/dev/null 2>&1 && echo seen || echo unseen; }
found="oracle \$(seen $SOURCE/problems/template/problem.cpp) archive \$(seen $work/runs/*/archive.sqlite) self \$(seen $work/rogue.sh)"
kbeam run template && found="\$found ran"
echo '// nothing' >nothing.cpp
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
