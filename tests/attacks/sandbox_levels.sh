# Every level of the sandbox by itself: what it still stops, what each evaluation says of it, and that without one
# nothing is promoted. Usage: sandbox_levels.sh SOURCE_TREE BUILD_FOLDER CACHE_FOLDER
KBEAM=$2/kbeam SOURCE=$1
source "$1/tests/e2e/lib.sh"
attacks() { "$2/kbeam-attacks" "$1" "$2" "$3" "${@:4}"; }
best=$("$KBEAM" doctor | sed -nE 's/^.*sandbox.*(namespaces|landlock_seccomp|rlimits|none).*$/\1/p' | head -n 1)
good=$SOURCE/problems/softmax/known_good/two_pass.cpp
[ -f "$good" ] || good=$(ls "$SOURCE"/problems/softmax/known_good/*.cpp | head -n 1)

for level in none rlimits landlock_seccomp namespaces; do
  export KBEAM_SANDBOX=$level
  expect 0 "$KBEAM" check "$good" --problem softmax --json
  holds "r['sandbox'] == '$level' or '$best' != 'namespaces'"
  holds "r['weaknesses'] == [] if r['sandbox'] == 'namespaces' else any('namespaces' in w for w in r['weaknesses'])"
done

KBEAM_SANDBOX=nonsense expect 0 "$KBEAM" check "$good" --problem softmax --json
holds "r['sandbox'] == 'none'"

# Nothing is promoted without one; a race that only the gates see would otherwise be named.
KBEAM_SANDBOX=none expect 1 attacks "$@" races_harmlessly
says 'engine_failed \(without a sandbox a candidate may be checked, but not promoted'

# Without namespaces Landlock and the system call filter still stop what they are there for.
if [ "$best" = namespaces ] || [ "$best" = landlock_seccomp ]; then
  KBEAM_SANDBOX=landlock_seccomp expect 0 attacks "$@" keeps_a_thread sets_a_timer starts_a_process reads_a_file \
    opens_a_socket makes_a_file races_harmlessly
  says 'attacks: 7 of 7 rejected'
fi
