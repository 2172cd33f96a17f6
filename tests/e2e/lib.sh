# Shared by the end-to-end tests: each gets a folder and a compile cache of its own and fails on the first surprise.
# ctest sets KBEAM (the binary) and SOURCE (the tree).
set -euo pipefail
work=$(mktemp -d /tmp/kbeam-e2e-XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "FAILED: $*" >&2; exit 1; }
# expect CODE COMMAND...: runs it, keeps stdout in out.txt and stderr in err.txt, and wants that exit code.
expect() {
  local code=$1 got=0
  shift
  "$@" >out.txt 2>err.txt || got=$?
  [ "$got" -eq "$code" ] || fail "'$*' ended with $got, not $code: $(tail -n 20 out.txt err.txt)"
}
says() { grep -qE -- "$1" out.txt err.txt || fail "nothing says '$1': $(cat out.txt err.txt | tail -n 20)"; }
# json EXPRESSION: evaluates a Python expression over the object on the last line of out.txt.
json() { tail -n 1 out.txt | python3 -c "import json,sys; r=json.load(sys.stdin); print($1)"; }
holds() { [ "$(json "$1")" = True ] || fail "not so: $1 in $(tail -n 1 out.txt | head -c 2000)"; }
