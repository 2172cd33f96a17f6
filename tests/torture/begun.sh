# A campaign that was killed after two of six evaluations: what the tests of this folder go on with.
source "$(dirname "$0")/faults.sh"
"$KBEAM" run template --evaluations 6 --budget 1000s --seed 3 --dir runs >run.txt 2>&1 &
run=$!
until_evaluated runs 2
kill -KILL $run
wait $run 2>/dev/null || true
rm -rf "$begun"
mkdir -p "$begun"
cp -r runs "$begun"
