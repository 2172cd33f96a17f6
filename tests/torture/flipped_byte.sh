# kbeam replay rebuilds the winner, checks it on new seeds and measures it anew; and whatever stored byte is flipped
# before that (a source, samples, an evaluation, an object of the build cache), it refuses by name.
source "$(dirname "$0")/faults.sh"
# The campaign of e2e/campaign.sh, with the builds that it left.
cp -r "$BINARY/tests/ended/." .
export XDG_CACHE_HOME=$work/cache
expect 0 "$KBEAM" status --json
winner=$(json 'r["winner"]["candidate_id"]')
expect 0 "$KBEAM" replay --json
holds "r['winner'] == '$winner' and r['mistakes'] == [] and r['choices'] >= 4"
holds 'r["measured"]["verdict"] == "accepted" and r["measured"]["confirmed"]'
[ -z "$(ls cache/kbeam/replays)" ] || fail "replay left its builds behind"

archive=$(echo runs/*/archive.sqlite)
cp "$archive" whole.sqlite
# flip WHAT: changes one byte, in the file, of a value that the archive holds.
flip() {
  cp whole.sqlite "$archive"
  python3 - "$archive" "$1" <<'PYTHON'
import pathlib, sqlite3, sys
path, what = sys.argv[1:]
base = sqlite3.connect(path)
values = {
    "source": "SELECT bytes FROM blobs JOIN rows ON source_hash = hash JOIN candidates ON id = candidate_id "
              "WHERE length(bytes) > 400 ORDER BY candidates.sequence LIMIT 1",
    "samples": "SELECT bytes FROM blobs JOIN measurements ON samples_hash = hash LIMIT 1",
    "event": "SELECT body FROM events WHERE kind = 'evaluation' LIMIT 1",
    "row": "SELECT id || candidate_id || stage || verdict FROM evaluations LIMIT 1"}
value = base.execute(values[what]).fetchone()[0]
base.close()
needle = (value if isinstance(value, bytes) else value.encode())[:24]
# The row of the table lies apart from the event of the same words: the id is followed by its sequence number.
content = bytearray(pathlib.Path(path).read_bytes())
at = content.find(needle)
if what == "row":
    ident = sqlite3.connect(path).execute("SELECT candidate_id, stage FROM evaluations LIMIT 1").fetchone()
    at = content.find((ident[0] + ident[1]).encode()) + len(ident[0])
assert at >= 0, what
content[at + 3] ^= 1
pathlib.Path(path).write_bytes(content)
PYTHON
}
for what in source samples event row; do
  flip $what
  expect 3 "$KBEAM" replay --json
  says "is not as it was written"
  case $what in
    source | samples) says "blob [0-9a-f]{64}" ;;
    event) says "event [0-9]+ \(evaluation\)" ;;
    row) says "table evaluations" ;;
  esac
done
cp whole.sqlite "$archive"

key=$(python3 -c "import sqlite3; print(sqlite3.connect('$archive').execute('SELECT key FROM artifacts WHERE candidate_id = \'$winner\' ORDER BY sequence DESC').fetchone()[0])")
module=cache/kbeam/builds/${key:0:2}/$key/module.so
python3 - "$module" <<'PYTHON'
import pathlib, sys
content = bytearray(pathlib.Path(sys.argv[1]).read_bytes())
content[len(content) // 2] ^= 1
pathlib.Path(sys.argv[1]).write_bytes(content)
PYTHON
expect 3 "$KBEAM" replay --json
says "could not read the object .*$key/module.so: it is not as it was built"
rm -r "$(dirname "$module")"
expect 0 "$KBEAM" replay --only-recorded
says "all as recorded"
