# A candidate is built, planned and packed without a GPU; what comes back from its folder is collected.
source "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME="$work/cache"
good=$(ls "$SOURCE"/problems/batched_qr/known_good_cuda/*.cu | head -n 1)
case=$(python3 - "$SOURCE/problems/batched_qr/problem.toml" <<'PY'
import sys, tomllib
cases = tomllib.load(open(sys.argv[1], 'rb'))['case']
print(next(c['name'] for c in cases if 'cuda' in c.get('targets', []) and not c.get('timed', False)))
PY
)
expect 0 "$KBEAM" bundle --file "$good" --problem batched_qr --kind check --case "$case" --out tasks --json
folder=$(json "r[0]['folder']")
[ -f "$folder/task.json" ] || fail "there is no task"
[ "$(ls "$folder/images" | wc -l)" -le 3 ] || fail "an image is stored more than once"
[ -z "$(ls -A tasks | grep '^\.part')" ] || fail "a half-written folder was left"
"$CARRY" fake-result "$folder"
expect 0 "$KBEAM" collect tasks --to kept
expect 1 "$KBEAM" collect tasks --to kept
says "repeated"

# From a run: its candidates, and only into that run.
"$CARRY" make-run runs/r1 "$good" "$SOURCE/problems/batched_qr"
expect 0 "$KBEAM" bundle r1 --kind check --case "$case" --out carried --json
"$CARRY" fake-result "$(json "r[0]['folder']")"
expect 0 "$KBEAM" collect carried --run r1
expect 1 "$KBEAM" collect tasks --run r1
says "this run did not bundle it"

expect 2 "$KBEAM" bundle --file "$good" --problem batched_qr --case nosuch --out more
says "nosuch"
expect 2 "$KBEAM" bundle --file "$good" --out more
says "--problem is missing"
