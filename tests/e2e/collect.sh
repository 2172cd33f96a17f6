# Results that were carried here are taken once, and only when they are what a worker wrote for that very task.
source "$(dirname "$0")/lib.sh"
task() { "$CARRY" make-task "$1" "${1##*/}"; }
flip() { # FILE OFFSET: changes one byte
  python3 - "$1" "$2" <<'PY'
import sys
name, at = sys.argv[1], int(sys.argv[2])
data = bytearray(open(name, 'rb').read())
data[at] ^= 1
open(name, 'wb').write(data)
PY
}
# refused FOLDER WORDS: collecting it ends with 1 and the reason.
refused() { expect 1 "$KBEAM" collect "$1" --to kept; says "$2"; }

task tasks/one
refused tasks/one "it was not run"
"$CARRY" fake-result tasks/one
task tasks/two
"$CARRY" fake-result tasks/two
expect 0 "$KBEAM" collect tasks --to kept --json
holds "len(r) == 2 and all(x['evaluation']['verdict'] == 'accepted' for x in r)"
holds "len(r[0]['evaluation']['measurements'][0]['samples']['candidate_ns']) == 27"
grep -q candidate_ns kept/one.json || fail "the raw samples are not kept"
grep -q "key of one" kept/one.json && fail "the key of the seal was published"
refused tasks/one "it is repeated: collected before, in kept/one.json"

task void; "$CARRY" fake-result void void; refused void "it is void: the device failed its probe"
task ours; "$CARRY" fake-result ours engine_failed; refused ours "failed on our side: the reference crashed"
task other; "$CARRY" fake-result other other_candidate; refused other "it is foreign: of another candidate"
task sealed
"$CARRY" fake-result sealed negative_time; refused sealed "it cannot stand: case large has a time of -1 ns"
"$CARRY" fake-result sealed fewer_references; refused sealed "27 times of the candidate, 26 of the reference"
"$CARRY" fake-result sealed negative_noise; refused sealed "case large has the noise floor -1"

# What is read lies in the folder itself.
task linked; "$CARRY" fake-result linked; mv linked/result.json elsewhere.json
ln -s ../elsewhere.json linked/result.json; refused linked "result.json is a symbolic link"
ln -sf result.json linked/result.json; refused linked "result.json is a symbolic link"
rm linked/result.json; mkfifo linked/result.json; refused linked "it is no regular file"
rm linked/result.json; mkdir linked/result.json; refused linked "it is no regular file"
rmdir linked/result.json; mv elsewhere.json linked/result.json
mv linked/plans plans_elsewhere; ln -s ../plans_elsewhere linked/plans; refused linked "plans is a symbolic link"
rm linked/plans; mv plans_elsewhere linked/plans
mv linked/task.json aside.json; ln -s ../aside.json linked/task.json; refused linked "task.json is a symbolic link"
rm linked/task.json; mv aside.json linked/task.json
mkdir carried; ln -s ../linked carried/link; refused carried "refused carried/link: .*it is a symbolic link"
expect 0 "$KBEAM" collect linked --to kept

task changed; "$CARRY" fake-result changed; cp changed/result.json genuine.json
size=$(stat -c %s genuine.json)
for at in 2 60 $((size / 3)) $((size / 2)) $((size - 2)); do
  cp genuine.json changed/result.json; flip changed/result.json "$at"; refused changed "refused changed"
done
cp genuine.json changed/result.json; sed -i 's/1001\.0/0501.0/' changed/result.json; refused changed "it was changed after it was sealed"
head -c $((size / 2)) genuine.json >changed/result.json; refused changed "it is truncated"
sed 's/"seal":"[0-9a-f]*"/"seal":""/' genuine.json >changed/result.json; refused changed "it is unsealed"
cp tasks/two/result.json changed/result.json; refused changed "it is foreign: a result of task 'two'"
cp genuine.json changed/result.json
for file in changed/task.json changed/plans/*.json changed/images/*.fatbin changed/problem/problem.so; do
  cp "$file" kept_aside; flip "$file" 5; refused changed "$(basename "$file")"
  cp kept_aside "$file"
  [ "$file" = changed/task.json ] && continue
  rm "$file"; refused changed "$(basename "$file")"; cp kept_aside "$file"
done
expect 0 "$KBEAM" collect changed --to kept
expect 2 "$KBEAM" collect nowhere --to kept
says "there is none|No such file"

# Into a run: only what it bundled, and once.
printf '#include <kbeam/candidate.h>\n' >mine.cu
"$CARRY" make-run runs/r1 mine.cu "$SOURCE/problems/template"
expect 1 "$KBEAM" collect tasks/one --run r1
says "it is foreign: this run did not bundle it"
"$CARRY" note runs/r1 tasks/one
expect 0 "$KBEAM" collect tasks/one --run r1
says "kept as evaluation e00001"
expect 1 "$KBEAM" collect tasks/one --run r1
says "it is repeated: collected before, as evaluation e00001"
expect 0 "$KBEAM" status r1 --json
holds "r['collected'] == 1 and r['evaluations'] == 0"
# Bundled, then changed: the same id, another task.
rm -r tasks/one; task tasks/one; "$CARRY" fake-result tasks/one
"$CARRY" make-task three three; "$CARRY" note runs/r1 three; rm -r three
"$CARRY" make-task three three; "$CARRY" fake-result three
sed -i 's/.*/0000/' runs/r1/bundles/three.sha256
expect 1 "$KBEAM" collect three --run r1
says "the task was changed since this run bundled it"
