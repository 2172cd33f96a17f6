# The stored separation of a problem is what is measured now, within the documented factor, and nothing is refused.
# Usage: separation.sh PROBLEM
problem=$1
source "$(dirname "$0")/lib.sh"
expect 0 "$KBEAM" separation "$SOURCE/problems/$problem" --json
holds 'r["refusals"] == [] and r["drift"] == []'
holds 'len(r["rows"]) > 20'
holds 'all(row["cheat"] == "nan" or row["cheat"] >= 10 * row["honest"] for row in r["rows"])'
[ -f "$SOURCE/problems/$problem/separation.json" ] || fail "nothing is stored"
