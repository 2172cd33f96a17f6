# The examples of docs/mcp.md against a live campaign, and the protocol's rules, message by message.
# With the official client library (mcp in $KBEAM_MCP_PYTHON, or in a virtual environment at ~/.cache/kbeam/mcp-venv)
# the examples go through that as well.
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
python3 "$tests/examples.py" "$KBEAM" "$SOURCE/docs/mcp.md" || fail "examples"
library=${KBEAM_MCP_PYTHON:-$HOME/.cache/kbeam/mcp-venv/bin/python}
if [ -x "$library" ] && "$library" -c 'import mcp' 2>/dev/null; then
  "$library" "$tests/official_client.py" "$KBEAM" || fail "the official client library"
else
  echo "the official client library is not here: only our own conformance script ran"
fi
cd ..
expect 0 "$KBEAM" status --dir my_sum/runs --json
holds 'any(m["text"] == "short rows matter most" and m["who"].startswith("mcp client") for m in r["steering"])'
kill -INT $run
wait $run || true
