// Fibers, barriers and warps of the emulated device. x86-64 only.
#include "emulated_device.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

EmulatedIndex threadIdx, blockIdx, blockDim, gridDim;

// Saves the callee's registers and the stack pointer at *rdi, goes on with the stack at rsi.
asm(R"(
.text
.type kbeam_switch_fiber,@function
kbeam_switch_fiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size kbeam_switch_fiber,.-kbeam_switch_fiber
)");
extern "C" void kbeam_switch_fiber(void** save, void* load);

namespace kbeam {
namespace {

constexpr std::size_t kStackBytes = 128 << 10;
constexpr unsigned kLanes = 32;

enum class Wait { nothing, block, warp, ended };

struct Product {
  double* c;
  double a, b;
};

struct Fiber {
  std::vector<char> stack = std::vector<char>(kStackBytes);
  void* pointer = nullptr;
  EmulatedIndex index;
  Wait wait = Wait::nothing;
  std::uint64_t given[2] = {};  // to this shuffle and to the one before
  unsigned shuffles = 0;
  std::vector<Product> products;  // since the last barrier
};

struct Block {
  std::vector<Fiber> fibers;
  unsigned threads = 0;
  unsigned current = 0;
  void* scheduler = nullptr;
  const std::function<void()>* body = nullptr;

  Fiber& running() { return fibers[current]; }
};
Block g_block;

void yield(Wait wait) {
  Fiber& fiber = g_block.running();
  fiber.wait = wait;
  kbeam_switch_fiber(&fiber.pointer, g_block.scheduler);
}

void fiber_main() {
  (*g_block.body)();
  yield(Wait::ended);
}

// Stacks begin at different places of a page: side by side they would all want the same cache
// lines.
void prepare(Fiber& fiber, unsigned thread) {
  const std::uintptr_t end =
      reinterpret_cast<std::uintptr_t>(fiber.stack.data() + kStackBytes) - thread % 128 * 320;
  const std::uintptr_t top = end & ~std::uintptr_t{15};
  auto* slots = reinterpret_cast<void**>(top);
  slots[-1] = nullptr;  // where fiber_main would return to
  slots[-2] = reinterpret_cast<void*>(&fiber_main);
  for (int i = 3; i <= 8; ++i) slots[-i] = nullptr;
  fiber.pointer = slots - 8;
  fiber.wait = Wait::nothing;
  fiber.shuffles = 0;
  fiber.products.clear();
}

// Zero times anything finite adds nothing: most of a small matrix's tile is such padding.
bool adds_nothing(const double* left, const double* right) {
  double left_size = 0, right_size = 0;
  for (unsigned e = 0; e < kLanes; ++e) {
    left_size += std::fabs(left[e]);
    right_size += std::fabs(right[e]);
  }
  return left_size * right_size == 0;  // NaN where 0 meets an infinity
}

// Lane l holds A[l / 4][l % 4], B[l % 4][l / 4], and C[l / 4][2 (l % 4)] and the next.
void multiply_fragments_of(unsigned first) {
  Fiber* lanes = &g_block.fibers[first];
  const std::size_t count = lanes[0].products.size();
  for (unsigned lane = 1; lane < kLanes; ++lane)
    if (lanes[lane].products.size() != count)
      throw std::logic_error("lanes of a warp disagree on the number of fragment products");
  for (std::size_t p = 0; p < count; ++p) {
    double left[kLanes], right[kLanes];
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      left[lane] = lanes[lane].products[p].a;
      right[lane] = lanes[lane].products[p].b;
    }
    if (adds_nothing(left, right)) continue;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      for (unsigned part = 0; part < 2; ++part)
        for (unsigned depth = 0; depth < 4; ++depth)
          lanes[lane].products[p].c[part] +=
              left[lane / 4 * 4 + depth] * right[(2 * (lane % 4) + part) * 4 + depth];
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) lanes[lane].products.clear();
}

bool all_wait(unsigned first, unsigned end, Wait wait) {
  bool some = false;
  for (unsigned t = first; t < end; ++t) {
    const Wait found = g_block.fibers[t].wait;
    if (found != wait && found != Wait::ended) return false;
    some |= found == wait;
  }
  return some;
}

void release(unsigned first, unsigned end) {
  for (unsigned t = first; t < end; ++t)
    if (g_block.fibers[t].wait != Wait::ended) g_block.fibers[t].wait = Wait::nothing;
}

// Lets whoever can run do so once; false when all have ended.
bool advance() {
  bool ran = false;
  for (unsigned t = 0; t < g_block.threads; ++t) {
    Fiber& fiber = g_block.fibers[t];
    if (fiber.wait != Wait::nothing) continue;
    ran = true;
    g_block.current = t;
    threadIdx = fiber.index;
    kbeam_switch_fiber(&g_block.scheduler, fiber.pointer);
  }
  bool released = false;
  for (unsigned first = 0; first < g_block.threads; first += kLanes)
    if (all_wait(first, std::min(first + kLanes, g_block.threads), Wait::warp)) {
      release(first, std::min(first + kLanes, g_block.threads));
      released = true;
    }
  if (all_wait(0, g_block.threads, Wait::block)) {
    for (unsigned first = 0; first < g_block.threads; first += kLanes)
      if (!g_block.fibers[first].products.empty()) multiply_fragments_of(first);
    release(0, g_block.threads);
    released = true;
  }
  if (ran || released) return true;
  for (unsigned t = 0; t < g_block.threads; ++t)
    if (g_block.fibers[t].wait != Wait::ended)
      throw std::logic_error("threads of a block wait for each other at different places");
  return false;
}

}  // namespace

void run_emulated_grid(const LaunchShape& shape, const std::function<void()>& thread) {
  blockDim = {shape.block.x, shape.block.y, shape.block.z};
  gridDim = {shape.grid.x, shape.grid.y, shape.grid.z};
  g_block.threads = shape.block.x * shape.block.y * shape.block.z;
  g_block.body = &thread;
  if (g_block.fibers.size() < g_block.threads) g_block.fibers.resize(g_block.threads);
  for (unsigned z = 0; z < gridDim.z; ++z)
    for (unsigned y = 0; y < gridDim.y; ++y)
      for (unsigned x = 0; x < gridDim.x; ++x) {
        blockIdx = {x, y, z};
        for (unsigned t = 0; t < g_block.threads; ++t) {
          prepare(g_block.fibers[t], t);
          g_block.fibers[t].index = {t % blockDim.x, t / blockDim.x % blockDim.y,
                                     t / blockDim.x / blockDim.y};
        }
        while (advance()) {
        }
      }
}

void emulated_block_barrier() {
  yield(Wait::block);
}

int emulated_lane() {
  return static_cast<int>(g_block.current % kLanes);
}

std::uint64_t emulated_exchange(std::uint64_t bits, int lane) {
  // Two places by turns: a lane may be one shuffle ahead of one that has not read yet.
  const unsigned place = g_block.running().shuffles++ % 2;
  g_block.running().given[place] = bits;
  yield(Wait::warp);  // all lanes have given
  const std::uint64_t got =
      g_block.fibers[g_block.current / kLanes * kLanes + static_cast<unsigned>(lane)].given[place];
  return got;
}

void emulated_multiply_fragment(double (&c)[2], double a, double b) {
  g_block.running().products.push_back({c, a, b});
}

}  // namespace kbeam
