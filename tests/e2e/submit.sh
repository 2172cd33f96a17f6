# A candidate handed to a running campaign is judged in it; two campaigns at once share the timing lock.
source "$(dirname "$0")/lib.sh"
"$KBEAM" run template --budget 120s --evaluations 14 --seed 5 --json >one.txt 2>one.err &
one=$!
until "$KBEAM" status >/dev/null 2>&1; do kill -0 $one || fail "$(cat one.err)"; sleep 0.1; done
"$KBEAM" run template --budget 120s --evaluations 6 --seed 6 --dir other --json >two.txt 2>two.err &
two=$!
cp "$(ls "$SOURCE"/problems/template/known_good/*.cpp | head -n 1)" mine.cpp
expect 0 "$KBEAM" submit mine.cpp --idea "a plain loop" --family by_hand
expect 2 "$KBEAM" submit missing.cpp --idea "nothing"
echo "no candidate" >text.cpp
expect 2 "$KBEAM" submit text.cpp --idea "nothing"
expect 2 "$KBEAM" submit mine.cpp --idea "$(printf 'two\nlines')"
expect 2 "$KBEAM" submit mine.cpp --idea "a line" --family "$(printf '\033[31mred')"
cp mine.cpp mine.cu
expect 2 "$KBEAM" submit mine.cu --idea "for the other target"
says 'is not for target cpu'
sed 's/\bargs\b/arguments/g' mine.cpp >other.cpp
expect 0 "$KBEAM" submit other.cpp --idea "another loop" --family unwanted
expect 0 "$KBEAM" drop unwanted
expect 2 "$KBEAM" submit other.cpp --idea "a line" --family unwanted
says 'unwanted was dropped'
# Without a winner they end with 1; whether there is one is a matter of speed and not asked here.
wait $one || [ $? -eq 1 ] || fail "$(cat one.err)"
wait $two || [ $? -eq 1 ] || fail "$(cat two.err)"
run=$(ls runs)
grep -q "mine.cpp" "runs/$run/attempts_log.md" || fail "the submission is not in the log"
[ -z "$(ls "runs/$run/inbox" 2>/dev/null)" ] || fail "the inbox is not empty"
