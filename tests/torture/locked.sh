# Another process that keeps the archive locked: a clear error after a while, nothing lost, and it goes on afterwards.
source "$(dirname "$0")/faults.sh"
begin runs
until_evaluated runs 3
python3 - runs/*/archive.sqlite <<'PYTHON' &
import sqlite3, sys, threading
base = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
base.execute("BEGIN IMMEDIATE")
threading.Event().wait(600)
PYTHON
holder=$!
ends 3
kill $holder
wait $holder 2>/dev/null || true
says "could not (record( .*)? in|use) archive"
says "another process holds it locked"
says "end that process, then try again; what was recorded before is whole"
goes_on runs 3
