# The recorded A/A traces, replayed: twice the same, at most 4 of 1000 identical kernels called faster, and the page is theirs.
source "$(dirname "$0")/lib.sh"
expect 0 "$KBEAM" study "$SOURCE/tests/study" --json
cp out.txt first.txt
holds 'all(t["faster"] * 1000 <= 4 * t["comparisons"] for t in r["totals"].values())'
# The traces of `make traces` are long enough for a thousand comparisons.
holds '"idle" not in r["totals"] or sum(t["comparisons"] for t in r["totals"].values()) >= 1000'
holds 'all(t["pairs"] >= (20000 if t["condition"] in ("idle", "compiler", "bursty") else 2000) for t in r["traces"])'
holds 'all(len([t for t in r["traces"] if t["condition"] == c]) == 6 for c in r["totals"])'
holds 'r["simulated"]["found"] >= 0.95'
expect 0 "$KBEAM" study "$SOURCE/tests/study" --json
cmp out.txt first.txt || fail "a second replay of the same traces says something else"
expect 0 "$SOURCE/tools/study_page" --check --kbeam "$KBEAM"
# A trace that is cut short is refused by name.
mkdir cut
cp "$SOURCE"/tests/study/*_softmax_*.trace cut/
victim=$(ls cut | head -n 1)
truncate -s -1 "cut/$victim"
expect 3 "$KBEAM" study cut
says "$victim"
