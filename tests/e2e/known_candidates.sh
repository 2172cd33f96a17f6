# Every known_good candidate of a problem is accepted, every known_wrong one is rejected with the verdict it names.
# Usage: known_candidates.sh PROBLEM
problem=$1
source "$(dirname "$0")/lib.sh"
count=0
for file in "$SOURCE/problems/$problem"/known_good/*.cpp; do
  expect 0 "$KBEAM" check "$file" --problem "$problem" --json
  holds 'r["verdict"] == "accepted"'
  count=$((count + 1))
done
for file in "$SOURCE/problems/$problem"/known_wrong/*.cpp; do
  wanted=$(sed -n '1s/^\/\/ expect: //p' "$file")
  [ -n "$wanted" ] || fail "$file does not say what to expect on its first line"
  expect 1 "$KBEAM" check "$file" --problem "$problem" --json
  found=$(json 'r["verdict"]')
  case " $wanted " in *" $found "*) ;; *) fail "$(basename "$file"): $found, expected $wanted: $(tail -n 1 out.txt | head -c 1500)" ;; esac
  holds 'r["measurements"] == []'
  count=$((count + 1))
done
[ "$count" -ge 2 ] || fail "problem $problem has no known candidates"
