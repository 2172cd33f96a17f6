# A limit on file sizes that the archive reaches: as a full disk, and everywhere without privileges.
source "$(dirname "$0")/faults.sh"
begin runs
until_evaluated runs 3
log=$(echo runs/*/archive.sqlite-wal)
prlimit --pid $run --fsize="$(stat -c %s "$log"):"
ends 3
says "could not record( .*)? in archive .*runs/"
says "what was recorded before is whole"
says "go on with: kbeam resume"
goes_on runs 3
