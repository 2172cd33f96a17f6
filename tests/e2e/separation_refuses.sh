# A check that lets a cheat pass is refused and not stored; a stored table that is too narrow refuses the problem.
source "$(dirname "$0")/lib.sh"
cp -r "$SOURCE/problems/softmax" softmax
stored=softmax/separation.json
sed -i 's/limit = 16 + /limit = 1e6 + /' softmax/problem.cpp
grep -q 'limit = 1e6 + ' softmax/problem.cpp || fail "softmax no longer writes its limit as '16 + '"
cp "$stored" before.json
expect 1 "$KBEAM" separation ./softmax --write --draws 1
says 'refused: case c64, check element_error: known_wrong/bf16_exponential passes'
says 'nothing is stored'
cmp before.json "$stored" || fail "a refused table was stored"

rm -r softmax
cp -r "$SOURCE/problems/softmax" softmax
python3 - "$stored" <<'PYTHON'
import json, sys
table = json.load(open(sys.argv[1]))
row = next(r for r in table["rows"] if r["case"] == "c64" and r["check"] == "element_error")
row["honest"] = row["limit"] * 0.9
row["cheat"] = row["limit"] * 1.1
json.dump(table, open(sys.argv[1], "w"))
PYTHON
expect 2 "$KBEAM" check softmax/known_good/online_float.cpp --problem ./softmax
says 'separation.json: case c64, check element_error: .* only 1.222 times'
expect 1 "$KBEAM" separation ./softmax --draws 1   # which mends it, so it must still run
says 'drifted: case c64, check element_error'

cd "$SOURCE" && tools/separation_tables --check "$KBEAM" || fail "docs/separation.md has to be made again"
