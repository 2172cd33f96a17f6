# A disk that fills up under a campaign: a clear error, nothing lost, and with room again it goes on.
if [ -z "${OWN_MOUNTS:-}" ]; then
  export OWN_MOUNTS=1
  unshare -rm mount -t tmpfs none /mnt 2>/dev/null && exec unshare -rm bash "$0"
  unshare -m mount -t tmpfs none /mnt 2>/dev/null && exec unshare -m bash "$0"
  echo "nothing may be mounted here; file_limit.sh tests the same without" >&2
  exit 77
fi
source "$(dirname "$0")/faults.sh"
mkdir disk
mount -t tmpfs -o size=32m none disk
trap 'umount -l "$work/disk"; rm -rf "$work"' EXIT
begin disk/runs
until_evaluated disk/runs 3
cat /dev/zero >disk/filler 2>/dev/null || true
ends 3
says "could not (record( .*)? in archive|create archive|write) .*disk/runs"
says "disk is full|No space left on device"
says "go on with: kbeam resume"
rm disk/filler
goes_on disk/runs 3
