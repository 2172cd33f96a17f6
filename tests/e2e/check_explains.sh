# A wrong candidate is told case, matrix, column, value and limit, and the command that shows the same failure again.
source "$(dirname "$0")/lib.sh"
candidate=$SOURCE/problems/batched_qr/known_wrong/bf16_updates.cpp
expect 1 "$KBEAM" check "$candidate" --problem batched_qr
says 'wrong_value: case [a-z0-9_]+ .*matrix [0-9]+, column [0-9]+.*the limit is'
replay=$(sed -n 's/^to see the same failure again: kbeam //p' out.txt)
[ -n "$replay" ] || fail "no replay command"
grep wrong_value: out.txt >first.txt
expect 1 "$KBEAM" $replay
grep wrong_value: out.txt >second.txt
cmp first.txt second.txt || fail "the replay shows another failure"
expect 2 "$KBEAM" check "$candidate" --problem batched_qr --case no_such_case
expect 2 "$KBEAM" check "$work/missing.cpp" --problem batched_qr
echo '#include <kbeam/candidate.h>
KBEAM_PLAN(plan, args) { plan.nonsense(); }' >broken.cpp
expect 1 "$KBEAM" check broken.cpp --problem batched_qr
says 'build_failed'
says 'broken.cpp:2'
