# The protocol's rules message by message, and the examples of docs/mcp.md against a live campaign by way of the official
# client library, which `tools/setup test` installs. Without it our own client runs the examples, and the test says that
# it was skipped.
source "$(dirname "$0")/lib.sh"
tests=$SOURCE/tests/e2e/mcp
expect 0 "$KBEAM" setup my_sum --problem template
"$KBEAM" run template --budget 600s --evaluations 1000 --seed 4 --dir my_sum/runs >run.txt 2>&1 &
run=$!
trap 'kill -KILL $run 2>/dev/null || true; rm -rf "$work"' EXIT
until "$KBEAM" status --dir my_sum/runs >/dev/null 2>&1; do kill -0 $run || fail "$(cat run.txt)"; sleep 0.1; done
expect 0 "$KBEAM" pause --dir my_sum/runs # measurements of examples and campaign would wait for each other
cd my_sum
python3 "$tests/conformance.py" "$KBEAM" || fail "conformance"
library=${KBEAM_MCP_PYTHON:-$("$SOURCE/tools/mcp_client" path)}
if "$library" -c 'import mcp' 2>/dev/null; then
  "$library" "$tests/official_client.py" "$KBEAM" "$SOURCE/docs/mcp.md" || fail "the official client library"
else
  python3 "$tests/examples.py" "$KBEAM" "$SOURCE/docs/mcp.md" || fail "examples"
fi
cd ..
expect 0 "$KBEAM" status --dir my_sum/runs --json
holds 'any(m["text"] == "short rows matter most" and m["who"].startswith("mcp client") for m in r["steering"])'
kill -INT $run
wait $run || true
if ! "$library" -c 'import mcp' 2>/dev/null; then
  echo "SKIPPED: nothing ran against the official client library, which is not here: run 'tools/setup test' where the" >&2
  echo "registry of Python packages can be reached, or name a Python that has it in KBEAM_MCP_PYTHON." >&2
  exit 77
fi
