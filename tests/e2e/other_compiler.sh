# Candidates built with clang: the same verdicts, wherever the engine itself was built with.
source "$(dirname "$0")/lib.sh"
command -v clang++ >/dev/null || { echo "no clang++ here"; exit 0; }
export KBEAM_CXX=clang++
for file in "$SOURCE"/problems/softmax/known_good/*.cpp; do
  expect 0 "$KBEAM" check "$file" --problem softmax --json
  holds 'r["verdict"] == "accepted"'
done
file=$(ls "$SOURCE"/problems/softmax/known_wrong/*.cpp | head -n 1)
expect 1 "$KBEAM" check "$file" --problem softmax --json
holds "r['verdict'] in '$(sed -n '1s/^\/\/ expect: //p' "$file")'.split()"
KBEAM_CXX=/no/such/compiler expect 3 "$KBEAM" check "$file" --problem softmax
says 'no such program'
