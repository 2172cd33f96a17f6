# Tuners on a recorded space, and a file tuned by the judge, recorded, and gone on with.
source "$(dirname "$0")/lib.sh"
space=$SOURCE/bench/spaces/layer_norm_two_pass_c768.json.gz
expect 0 "$KBEAM" tune --simulate "$space" --strategy all --seeds 3 --evaluations 30 --json
holds 'set(r["strategies"]) == {"auto", "model", "local_search", "evolutionary", "random"}'
holds 'all(len(s["tunings"]) == 3 for s in r["strategies"].values())'
holds 'r["settings"] >= 1000'
cp out.txt first.txt
expect 0 "$KBEAM" tune --simulate "$space" --strategy all --seeds 3 --evaluations 30 --json
cmp -s first.txt out.txt || fail "the same seeds gave other tunings"
expect 0 "$KBEAM" tune --simulate "$space" --seeds 2 --evaluations 10
says 'median of 2 tunings'

expect 2 "$KBEAM" tune --simulate "$space" --strategy modle
says 'did you mean model'
echo '{"cache": 1}' >odd.json
expect 2 "$KBEAM" tune --simulate odd.json
says 'neither a cache'
sketch=$SOURCE/problems/template/sketches/rows_together.cpp
expect 2 "$KBEAM" tune "$sketch"
says 'no problem is named'
expect 2 "$KBEAM" tune "$sketch" --problem template --choices kRow=1,2
says 'did you mean kRows'

# Whether a setting beats the default is the machine's business; that some were judged is ours.
code=0
"$KBEAM" tune "$sketch" --problem template --knob kWidth=8 --evaluations 2 --record mine.json.gz --json >out.txt 2>err.txt ||
  code=$?
[ "$code" -le 1 ] || fail "tune ended with $code: $(tail -n 5 err.txt)"
holds 'r["evaluations"] == 2 and all(s["knobs"]["kWidth"] == "8" for s in r["settings"])'
holds '(r["best"] is None) == (not any(f["faster"] for f in r["finalists"]))'
expect 0 "$KBEAM" tune --simulate mine.json.gz --seeds 1
expect 0 "$KBEAM" tune "$sketch" --problem template --knob kWidth=8 --exhaustive --record mine.json.gz
says 'all there are'
[ ! -e mine.json.gz.partial ] || fail "a complete recording left its partial file"
