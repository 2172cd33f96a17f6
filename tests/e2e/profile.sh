# A profile says what a .cu takes and launches without a GPU, and explains measured times that are handed to it.
source "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME="$work/cache"
cat > rows.cu <<'CU'
#include <kbeam/candidate.h>
namespace {
__global__ void __launch_bounds__(256) halve(const float* x, float* y, long n) {
  __shared__ float part[256];
  part[threadIdx.x] = x[threadIdx.x % n];
  __syncthreads();
  y[threadIdx.x % n] = 0.5f * part[255 - threadIdx.x];
}
}  // namespace
KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  const auto y = args.output<float>("y");
  for (int i = 0; i < 3; ++i)
    plan.launch(halve, {.grid = 40, .block = 256}, x, y, static_cast<long>(x.dim(0) * x.dim(1)));
}
CU
shape=rows=64,columns=128
expect 0 "$KBEAM" profile rows.cu --problem softmax --shape $shape
says 'halve +3 +40 +256 +[0-9]+ +0 +1024 +8 +100 % +threads'
says 'Launches: a chain of 3 dependent nodes'
expect 0 "$KBEAM" profile rows.cu --problem softmax --shape $shape --json
holds "r['cases'][0]['nodes'] == 3 and r['cases'][0]['chain'] == 3 and r['cases'][0]['total_ns'] is None"
holds "r['cases'][0]['bytes'] == 2 * 64 * 128 * 4 and r['cases'][0]['launch_share'] == 1"
kernel=$(json "next(iter(r['kernels']))")
holds "r['kernels']['$kernel']['resources']['max_threads'] == 256"

nodes=$(for i in 0 1 2; do echo "{\"node\": $i, \"kernel\": \"$kernel\", \"median_ns\": 4000}"; done | paste -sd,)
echo "{\"device\": \"NVIDIA H200\", \"cases\": [{\"case\": \"$shape\", \"total_ns\": 13000, \"nodes\": [$nodes]}]}" > times.json
expect 0 "$KBEAM" profile rows.cu --problem softmax --shape $shape --measured times.json --json
holds "r['cases'][0]['critical_path_ns'] == 12000 and r['cases'][0]['gaps_ns'] == 1000"
holds "'halve takes 100 %' in r['cases'][0]['bottleneck'] and '40 blocks' in r['cases'][0]['bottleneck']"
sed -i 's/"node": 2/"node": 7/' times.json
expect 2 "$KBEAM" profile rows.cu --problem softmax --shape $shape --measured times.json
says 'its node 7 is'

# Of a .cpp: which instructions it consists of.
expect 0 "$KBEAM" profile "$SOURCE/problems/softmax/known_good/online_float.cpp" --json
holds "r['target'] == 'cpu' and sum(r['instructions'].values()) > 50"
expect 2 "$KBEAM" profile "$SOURCE/problems/batched_qr/problem.cu"
says 'never timed'

# What is wrong with a file or a flag is said once, with what to do.
echo 'x' > broken.cu
expect 2 "$KBEAM" plan broken.cu --problem softmax --shape $shape
says "mend the file where the compiler points"
[ "$(grep -c 'this declaration has no storage class' err.txt)" = 1 ] || fail "the reason is not said once: $(cat err.txt)"
expect 2 "$KBEAM" plan rows.cu --problem softmax --shape $shape --knob nope=3
says "the file declares no knob"
expect 2 "$KBEAM" plan rows.cu --problem softmax --shape $shape --gpu nosuch
says "choose among h200"
