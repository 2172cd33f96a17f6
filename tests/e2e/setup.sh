# A workspace holds what a proposer may know, its first candidate is right, and a second setup harms nothing.
source "$(dirname "$0")/lib.sh"
expect 0 "$KBEAM" setup here --problem layer_norm --json
folder=$(json 'r["folder"]')
for file in problem_statement.md AGENTS.md ideas.md attempts_log.md candidate.cpp contract/kbeam/candidate.h \
  profile/README.md sources/README.md; do
  [ -s "$folder/$file" ] || fail "there is no $file"
done
grep -q 'kbeam check candidate.cpp --problem layer_norm' "$folder/AGENTS.md" || fail "the commands do not name the problem"
grep -q 'private cases' "$folder/problem_statement.md" || fail "private cases are not mentioned"
# No private case is named.
python3 - "$SOURCE/problems/layer_norm/problem.toml" "$folder" <<'PY'
import pathlib, re, sys, tomllib
cases = tomllib.load(open(sys.argv[1], 'rb'))['case']
text = '\n'.join(p.read_text() for p in pathlib.Path(sys.argv[2]).glob('*.md'))
private = [c['name'] for c in cases if c.get('pool', 'public') != 'public']
assert private, 'the problem has no private case: this test would say nothing'
for name in private:
    assert not re.search(rf'\b{re.escape(name)}\b', text), f'the private case {name} is told'
PY
(cd "$folder" && "$KBEAM" check candidate.cpp --problem layer_norm --case one_column >check.txt) || fail "$(cat "$folder/check.txt")"
echo "// mine" >"$folder/candidate.cpp"
rm "$folder/ideas.md"
expect 0 "$KBEAM" setup here --problem layer_norm
grep -q '// mine' "$folder/candidate.cpp" || fail "a file was overwritten"
[ -s "$folder/ideas.md" ] || fail "a missing file was not made again"
expect 2 "$KBEAM" setup there --problem layer_nrom
says "did you mean .layer_norm"
[ ! -e there ] || fail "a refused setup left a folder"
