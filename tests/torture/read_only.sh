# A folder that cannot be written: refused before anything is built; one that turns so later loses nothing.
source "$(dirname "$0")/faults.sh"
chmod 755 .
mkdir -m 777 cache runs
mkdir -m 555 sealed
as_user=()
if [ "$(id -u)" -eq 0 ]; then  # root may write anywhere
  as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  owner=65534:65534
fi
export XDG_CACHE_HOME=$work/cache
expect 3 "${as_user[@]}" "$KBEAM" run template --evaluations 1 --dir sealed
says "could not begin a run in .*sealed: Permission denied"
says "make it writable, or choose another place with --dir"
[ -z "$(ls sealed)" ] || fail "something was written"
begin runs "${as_user[@]}"
until_evaluated runs 3
chmod 555 runs/*/
ends 3
says "could not write .*(report.html|attempts_log.md)"
says "check free space and permissions"
expect 3 "${as_user[@]}" "$KBEAM" resume --dir runs
# The archive's own files lie there already, so it may be the report that cannot be written first.
says "could not write .*attempts_log.md: create: Permission denied|exists and can be written"
"${as_user[@]}" "$KBEAM" status --dir runs >status.txt || fail "a folder that cannot be written can be read"
chmod 755 runs/*/
expect 0 "$KBEAM" replay --only-recorded --dir runs --json
holds 'r["mistakes"] == [] and r["choices"] >= 6'
got=0
"$KBEAM" report --dir runs >out.txt 2>err.txt || got=$?
[ "$got" -eq 0 ] && [ -s "$(echo runs/*/report.html)" ] || fail "the report cannot be written now: $(cat err.txt)"
