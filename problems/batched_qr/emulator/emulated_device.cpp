// Fibers, barriers, warps, clusters and asynchronous copies of the emulated device. x86-64 only.
#include "emulated_device.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
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
constexpr unsigned kLanes = 32, kWarpgroup = 128;
constexpr std::size_t kShownWords = 12;
// Behind a block's shared memory, so that a write beyond its end is seen.
constexpr std::size_t kGuardBytes = 4096;
constexpr unsigned char kGuard = 0xa5;

enum class Wait { nothing, poll, block, warp, named, warpgroup, barrier, cluster, ended };

struct Product {
  double* c;
  double a, b;
};
struct Copy {
  void* to;
  const void* from;
  int bytes;
};
struct AsyncCopy {
  void* to;
  const void* from;  // null: what `value` holds
  int bytes;
  std::uint64_t* barrier;
  unsigned char value[16];
};

struct Fiber {
  std::unique_ptr<char[]> stack{new char[kStackBytes]};  // pages that are not used are not there
  void* pointer = nullptr;
  EmulatedIndex index;
  Wait wait = Wait::nothing;
  int named = 0, named_threads = 0;
  unsigned mask = ~0u;
  const std::uint64_t* barrier = nullptr;
  std::uint32_t parity = 0;
  std::uint64_t given[2][kShownWords] = {};  // to this exchange and to the one before
  unsigned shuffles = 0;
  std::vector<Product> products;  // since the last barrier
  std::vector<WideProduct> wide;
  std::vector<std::vector<Copy>> copies;  // groups; the last is open
  std::vector<Copy> stores;
};

struct Block {
  EmulatedIndex index;
  unsigned first = 0;  // of its fibers
  std::unique_ptr<char[]> memory;
  char* shared = nullptr;
};

struct Cluster {
  std::vector<Fiber> fibers;
  std::vector<Block> blocks;
  unsigned threads = 0;  // of a block
  std::size_t shared_bytes = 0;
  unsigned current = 0;
  void* scheduler = nullptr;
  const std::function<void()>* body = nullptr;
  std::vector<AsyncCopy> asynchronous;
  std::uint64_t chance = 0;
  std::exception_ptr failure;  // of a thread

  Fiber& running() { return fibers[current]; }
  unsigned count() const { return threads * static_cast<unsigned>(blocks.size()); }
  Block& block() { return blocks[current / threads]; }
  // One of two, by turns that look like chance and are the same in every run.
  bool toss() {
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return chance >> 63 != 0;
  }
};
Cluster g_cluster;

void yield(Wait wait) {
  Fiber& fiber = g_cluster.running();
  fiber.wait = wait;
  kbeam_switch_fiber(&fiber.pointer, g_cluster.scheduler);
}

void fiber_main() {
  try {
    (*g_cluster.body)();
    emulated_wait_copies(0);
    emulated_wait_stores();
  } catch (...) {
    g_cluster.failure = std::current_exception();
  }
  yield(Wait::ended);
}

// Stacks begin at different places of a page: side by side they would all want the same cache
// lines.
void prepare(Fiber& fiber, unsigned thread) {
  const std::uintptr_t end =
      reinterpret_cast<std::uintptr_t>(fiber.stack.get() + kStackBytes) - thread % 128 * 320;
  const std::uintptr_t top = end & ~std::uintptr_t{63};
  auto* slots = reinterpret_cast<void**>(top);
  slots[-1] = nullptr;  // where fiber_main would return to
  slots[-2] = reinterpret_cast<void*>(&fiber_main);
  for (int i = 3; i <= 8; ++i) slots[-i] = nullptr;
  fiber.pointer = slots - 8;
  fiber.wait = Wait::nothing;
  fiber.shuffles = 0;
  fiber.products.clear();
  fiber.wide.clear();
  fiber.copies.assign(1, {});
  fiber.stores.clear();
}

// --- mbarriers ---

struct BarrierState {
  std::uint16_t phase, expected, pending, valid;
};
constexpr std::uint16_t kValid = 0x5a5a;

// Bytes that are still to come, of all barriers that wait for some; they do not fit in 64 bits
// beside the rest.
struct Pending {
  const std::uint64_t* barrier;
  std::int64_t bytes;
};
std::vector<Pending> g_pending;

std::int64_t& bytes_of(const std::uint64_t* barrier) {
  for (Pending& one : g_pending)
    if (one.barrier == barrier) return one.bytes;
  g_pending.push_back({barrier, 0});
  return g_pending.back().bytes;
}
BarrierState state_of(const std::uint64_t* barrier) {
  const auto state = std::bit_cast<BarrierState>(*barrier);
  if (state.valid != kValid) throw std::logic_error("an mbarrier that was not made ready");
  return state;
}
void complete_if_due(std::uint64_t* barrier, BarrierState state) {
  if (state.pending == 0 && bytes_of(barrier) == 0) {
    state.phase ^= 1;
    state.pending = state.expected;
  }
  *barrier = std::bit_cast<std::uint64_t>(state);
}
void complete_bytes(std::uint64_t* barrier, int bytes) {
  const BarrierState state = state_of(barrier);
  bytes_of(barrier) -= bytes;
  complete_if_due(barrier, state);
}

void deliver(const AsyncCopy& copy) {
  std::memcpy(copy.to, copy.from == nullptr ? copy.value : copy.from,
              static_cast<std::size_t>(copy.bytes));
  complete_bytes(copy.barrier, copy.bytes);
}
void submit(const AsyncCopy& copy) {
  if (g_cluster.toss())
    deliver(copy);
  else
    g_cluster.asynchronous.push_back(copy);
}
// In another order than they came.
void deliver_all() {
  std::vector<AsyncCopy> copies;
  copies.swap(g_cluster.asynchronous);
  for (std::size_t i = copies.size(); i > 1; --i) {
    g_cluster.toss();
    std::swap(copies[i - 1], copies[(g_cluster.chance >> 33) % i]);
  }
  for (const AsyncCopy& copy : copies) deliver(copy);
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
  Fiber* lanes = &g_cluster.fibers[first];
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

// --- products of a warpgroup ---

char* at_offset(unsigned first, std::uint64_t offset) {
  return g_cluster.blocks[first / g_cluster.threads].shared + offset;
}

// Element (outer, k) of an operand in pieces of 8 rows of 16 bytes.
float of_operand(unsigned first, std::uint64_t operand, bool turned, unsigned outer, unsigned k) {
  const std::uint64_t address = (operand & 0x3fff) << 4, along = (operand >> 16 & 0x3fff) << 4,
                      across = (operand >> 32 & 0x3fff) << 4;
  const unsigned row = turned ? k % 8 : outer % 8, element = turned ? outer % 8 : k % 8;
  const std::uint64_t place = address + k / 8 * along + outer / 8 * across + row * 16 + element * 2;
  if (place + 2 > g_cluster.shared_bytes)
    throw std::logic_error("a product reads beyond the block's shared memory");
  std::uint16_t half = 0;
  std::memcpy(&half, at_offset(first, place), 2);
  return emulated_from_half(half);
}

void multiply_wide_of(unsigned first) {
  Fiber* threads = &g_cluster.fibers[first];
  const std::size_t count = threads[0].wide.size();
  for (unsigned t = 1; t < kWarpgroup; ++t)
    if (threads[t].wide.size() != count)
      throw std::logic_error("threads of a warpgroup disagree on the number of products");
  static float left[64][16], right[16][128], sums[64][128];
  for (std::size_t p = 0; p < count; ++p) {
    const WideProduct& one = threads[0].wide[p];
    for (unsigned row = 0; row < 64; ++row)
      for (unsigned k = 0; k < 16; ++k)
        if (one.has_fragments) {
          const unsigned thread = row / 16 * kLanes + row % 8 * 4 + k % 8 / 2;
          const std::uint32_t pair = threads[thread].wide[p].fragments[row % 16 / 8 + k / 8 * 2];
          left[row][k] = emulated_from_half(static_cast<std::uint16_t>(pair >> k % 2 * 16));
        } else {
          left[row][k] = of_operand(first, one.a, false, row, k);
        }
    for (unsigned k = 0; k < 16; ++k)
      for (unsigned column = 0; column < 128; ++column)
        right[k][column] = of_operand(first, one.b, one.b_is_turned, column, k);
    for (unsigned row = 0; row < 64; ++row) {
      for (float& sum : sums[row]) sum = 0;
      for (unsigned k = 0; k < 16; ++k)
        for (unsigned column = 0; column < 128; ++column)
          sums[row][column] += left[row][k] * right[k][column];
    }
    for (unsigned t = 0; t < kWarpgroup; ++t) {
      const WideProduct& own = threads[t].wide[p];
      for (unsigned j = 0; j < 16; ++j)
        for (unsigned e = 0; e < 4; ++e) {
          const float sum =
              sums[t / kLanes * 16 + t % kLanes / 4 + e / 2 * 8][8 * j + 2 * (t % 4) + e % 2];
          own.c[j][e] = own.adds ? own.c[j][e] + sum : sum;
        }
    }
  }
  for (unsigned t = 0; t < kWarpgroup; ++t) threads[t].wide.clear();
}

// --- the scheduler ---

bool all_wait(unsigned first, unsigned end, Wait wait) {
  bool some = false;
  for (unsigned t = first; t < end; ++t) {
    const Wait found = g_cluster.fibers[t].wait;
    if (found != wait && found != Wait::ended) return false;
    some |= found == wait;
  }
  return some;
}

void release(unsigned first, unsigned end) {
  for (unsigned t = first; t < end; ++t)
    if (g_cluster.fibers[t].wait != Wait::ended) g_cluster.fibers[t].wait = Wait::nothing;
}

// Lets those lanes of a warp go on whose partners are all there.
bool release_warp(unsigned first, unsigned end) {
  bool released = false;
  for (unsigned t = first; t < end; ++t) {
    const Fiber& fiber = g_cluster.fibers[t];
    if (fiber.wait != Wait::warp) continue;
    const unsigned mask = fiber.mask;
    bool all = true;
    for (unsigned other = first; other < end; ++other) {
      const Fiber& partner = g_cluster.fibers[other];
      if ((mask >> (other - first) & 1) != 0 && partner.wait != Wait::ended)
        all &= partner.wait == Wait::warp && partner.mask == mask;
    }
    if (!all) continue;
    for (unsigned other = first; other < end; ++other)
      if ((mask >> (other - first) & 1) != 0 && g_cluster.fibers[other].wait != Wait::ended)
        g_cluster.fibers[other].wait = Wait::nothing;
    released = true;
  }
  return released;
}

bool release_named(unsigned first, unsigned end) {
  bool released = false;
  for (unsigned t = first; t < end; ++t) {
    const Fiber& fiber = g_cluster.fibers[t];
    if (fiber.wait != Wait::named) continue;
    const int name = fiber.named;
    const auto waits = [&](unsigned other) {
      return g_cluster.fibers[other].wait == Wait::named && g_cluster.fibers[other].named == name;
    };
    int count = 0;
    for (unsigned other = first; other < end; ++other) count += waits(other);
    if (count < fiber.named_threads) continue;
    for (unsigned other = first; other < end; ++other)
      if (waits(other)) g_cluster.fibers[other].wait = Wait::nothing;
    released = true;
  }
  return released;
}

bool release_block(unsigned first, unsigned end) {
  bool released = false;
  for (unsigned warp = first; warp < end; warp += kLanes)
    released |= release_warp(warp, std::min(warp + kLanes, end));
  for (unsigned group = first; group + kWarpgroup <= end; group += kWarpgroup)
    if (all_wait(group, group + kWarpgroup, Wait::warpgroup)) {
      multiply_wide_of(group);
      release(group, group + kWarpgroup);
      released = true;
    }
  released |= release_named(first, end);
  if (all_wait(first, end, Wait::block)) {
    for (unsigned warp = first; warp < end; warp += kLanes)
      if (!g_cluster.fibers[warp].products.empty()) multiply_fragments_of(warp);
    release(first, end);
    released = true;
  }
  return released;
}

bool can_run(Fiber& fiber) {
  if (fiber.wait == Wait::barrier && emulated_barrier_done(fiber.barrier, fiber.parity))
    fiber.wait = Wait::nothing;
  return fiber.wait == Wait::nothing || fiber.wait == Wait::poll;
}

// Lets whoever can run do so once; false when all have ended. Some warps are left out at times, so
// that they do not keep step.
bool advance() {
  bool ran = false, left_out = false;
  const bool several = g_cluster.blocks.size() > 1 || g_cluster.shared_bytes > 0;
  for (Block& block : g_cluster.blocks) {
    for (unsigned warp = 0; warp < g_cluster.threads; warp += kLanes) {
      const unsigned end = block.first + std::min(warp + kLanes, g_cluster.threads);
      bool some = false;
      for (unsigned t = block.first + warp; t < end; ++t) some |= can_run(g_cluster.fibers[t]);
      if (!some) continue;
      if (several && g_cluster.toss() && g_cluster.toss()) {
        left_out = true;
        continue;
      }
      for (unsigned t = block.first + warp; t < end; ++t) {
        Fiber& fiber = g_cluster.fibers[t];
        if (!can_run(fiber)) continue;
        ran |= fiber.wait == Wait::nothing;
        fiber.wait = Wait::nothing;
        g_cluster.current = t;
        blockIdx = block.index;
        threadIdx = fiber.index;
        kbeam_switch_fiber(&g_cluster.scheduler, fiber.pointer);
        if (g_cluster.failure) std::rethrow_exception(std::exchange(g_cluster.failure, nullptr));
      }
    }
  }
  bool released = false;
  for (const Block& block : g_cluster.blocks)
    released |= release_block(block.first, block.first + g_cluster.threads);
  if (all_wait(0, g_cluster.count(), Wait::cluster)) {
    release(0, g_cluster.count());
    released = true;
  }
  if (ran || released || left_out) return true;
  if (!g_cluster.asynchronous.empty()) {
    deliver_all();
    return true;
  }
  for (unsigned t = 0; t < g_cluster.count(); ++t)
    if (g_cluster.fibers[t].wait != Wait::ended)
      throw std::logic_error("threads wait for each other at different places");
  return false;
}

void begin_cluster(const LaunchShape& shape, EmulatedIndex first, unsigned ranks) {
  g_cluster.blocks.resize(ranks);
  g_cluster.asynchronous.clear();
  g_pending.clear();
  const std::size_t bytes = g_cluster.shared_bytes + kGuardBytes + 1024;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    Block& block = g_cluster.blocks[rank];
    block.index = {first.x + rank, first.y, first.z};
    block.first = rank * g_cluster.threads;
    if (shape.shared_bytes > 0) {
      block.memory.reset(new char[bytes]);
      const auto address = reinterpret_cast<std::uintptr_t>(block.memory.get());
      block.shared = block.memory.get() + (1024 - address % 1024);
      std::memset(block.shared, 0xff, g_cluster.shared_bytes);
      std::memset(block.shared + g_cluster.shared_bytes, kGuard, kGuardBytes);
    }
    for (unsigned t = 0; t < g_cluster.threads; ++t) {
      Fiber& fiber = g_cluster.fibers[block.first + t];
      prepare(fiber, t);
      fiber.index = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
    }
  }
}

void end_cluster(const LaunchShape& shape) {
  if (!g_cluster.asynchronous.empty())
    throw std::logic_error("a cluster ended before what was sent to it arrived");
  if (shape.shared_bytes == 0) return;
  for (const Block& block : g_cluster.blocks)
    for (std::size_t i = 0; i < kGuardBytes; ++i)
      if (static_cast<unsigned char>(block.shared[g_cluster.shared_bytes + i]) != kGuard)
        throw std::logic_error("a write beyond the block's shared memory");
}

}  // namespace

void run_emulated_grid(const LaunchShape& shape, const std::function<void()>& thread) {
  const auto blocks = [](std::int64_t count) { return static_cast<unsigned>(count); };
  blockDim = {blocks(shape.block.x), blocks(shape.block.y), blocks(shape.block.z)};
  gridDim = {blocks(shape.grid.x), blocks(shape.grid.y), blocks(shape.grid.z)};
  const unsigned ranks = std::max(1u, blocks(shape.cluster.x));
  if (gridDim.x % ranks != 0 || shape.cluster.y > 1 || shape.cluster.z > 1)
    throw std::logic_error("clusters of this shape are not emulated");
  g_cluster.threads = blockDim.x * blockDim.y * blockDim.z;
  g_cluster.shared_bytes = static_cast<std::size_t>(shape.shared_bytes);
  g_cluster.body = &thread;
  if (g_cluster.fibers.size() < ranks * g_cluster.threads)
    g_cluster.fibers.resize(ranks * g_cluster.threads);
  for (unsigned z = 0; z < gridDim.z; ++z)
    for (unsigned y = 0; y < gridDim.y; ++y)
      for (unsigned x = 0; x < gridDim.x; x += ranks) {
        begin_cluster(shape, {x, y, z}, ranks);
        while (advance()) {
        }
        end_cluster(shape);
      }
}

void emulated_block_barrier() {
  yield(Wait::block);
}
void emulated_cluster_barrier() {
  yield(Wait::cluster);
}
void emulated_warp_barrier(unsigned mask) {
  g_cluster.running().mask = mask;
  yield(Wait::warp);
}
void emulated_named_barrier(int name, int threads) {
  g_cluster.running().named = name;
  g_cluster.running().named_threads = threads;
  yield(Wait::named);
}
void emulated_poll() {
  yield(Wait::poll);
}

int emulated_lane() {
  return static_cast<int>(g_cluster.current % g_cluster.threads % kLanes);
}
int emulated_cluster_rank() {
  return static_cast<int>(g_cluster.current / g_cluster.threads);
}
int emulated_cluster_size() {
  return static_cast<int>(g_cluster.blocks.size());
}

void emulated_show(const void* own, std::size_t bytes) {
  // Two places by turns: a lane may be one exchange ahead of one that has not read yet.
  Fiber& fiber = g_cluster.running();
  std::memcpy(fiber.given[fiber.shuffles++ % 2], own, bytes);
  emulated_warp_barrier(~0u);  // all lanes have given
}
const void* emulated_shown_by(int lane) {
  const unsigned place = (g_cluster.running().shuffles - 1) % 2;
  const unsigned own = g_cluster.current % g_cluster.threads;
  return g_cluster.fibers[g_cluster.current - own % kLanes + static_cast<unsigned>(lane)]
      .given[place];
}
std::uint64_t emulated_exchange(std::uint64_t bits, int lane) {
  emulated_show(&bits, sizeof bits);
  std::uint64_t got = 0;
  std::memcpy(&got, emulated_shown_by(lane), sizeof got);
  return got;
}

void emulated_multiply_fragment(double (&c)[2], double a, double b) {
  g_cluster.running().products.push_back({c, a, b});
}

char* emulated_shared_memory() {
  return g_cluster.block().shared;
}
std::uint32_t emulated_shared_offset(const void* place) {
  return static_cast<std::uint32_t>(static_cast<const char*>(place) - g_cluster.block().shared);
}
char* emulated_place_in(const void* place, int rank) {
  const std::uint32_t offset = emulated_shared_offset(place);
  if (offset >= g_cluster.shared_bytes || rank < 0 || rank >= emulated_cluster_size())
    throw std::logic_error("an address of another block that is not in its shared memory");
  if (emulated_cluster_size() == 1)
    throw std::logic_error("an address of another block where the cluster is one block");
  return g_cluster.blocks[static_cast<unsigned>(rank)].shared + offset;
}

void emulated_barrier_init(std::uint64_t* barrier, int arrivals) {
  const auto count = static_cast<std::uint16_t>(arrivals);
  bytes_of(barrier) = 0;
  *barrier = std::bit_cast<std::uint64_t>(BarrierState{0, count, count, kValid});
}
void emulated_barrier_arrive(std::uint64_t* barrier, int bytes_to_come) {
  BarrierState state = state_of(barrier);
  if (state.pending == 0) throw std::logic_error("more arrivals than a barrier expects");
  bytes_of(barrier) += bytes_to_come;
  --state.pending;
  complete_if_due(barrier, state);
}
bool emulated_barrier_done(const std::uint64_t* barrier, std::uint32_t parity) {
  return state_of(barrier).phase != parity;
}
void emulated_barrier_wait(const std::uint64_t* barrier, std::uint32_t parity) {
  if (emulated_barrier_done(barrier, parity)) return;
  g_cluster.running().barrier = barrier;
  g_cluster.running().parity = parity;
  yield(Wait::barrier);
}

namespace {
// Bulk copies move whole pieces of 16 bytes.
void require_bulk(const void* to, const void* from, int bytes) {
  emulated_require_aligned(to, 16);
  emulated_require_aligned(from, 16);
  if (bytes % 16 != 0) throw std::logic_error("a bulk copy of bytes that are no multiple of 16");
}
}  // namespace
void emulated_require_aligned(const void* place, int bytes) {
  if (reinterpret_cast<std::uintptr_t>(place) % static_cast<unsigned>(bytes) != 0)
    throw std::logic_error("an address that is no multiple of " + std::to_string(bytes) + " bytes");
}

void emulated_copy_async(void* to, const void* from, int bytes, std::uint64_t* barrier) {
  require_bulk(to, from, bytes);
  submit({to, from, bytes, barrier, {}});
}
void emulated_store_async(void* to, const void* value, int bytes, std::uint64_t* barrier) {
  emulated_require_aligned(to, bytes);
  AsyncCopy copy{to, nullptr, bytes, barrier, {}};
  std::memcpy(copy.value, value, static_cast<std::size_t>(bytes));
  submit(copy);
}
void emulated_copy_later(void* to, const void* from, int bytes) {
  emulated_require_aligned(to, bytes);
  emulated_require_aligned(from, bytes);
  g_cluster.running().copies.back().push_back({to, from, bytes});
}
void emulated_commit_copies() {
  g_cluster.running().copies.emplace_back();
}
void emulated_wait_copies(int left) {
  auto& groups = g_cluster.running().copies;
  while (static_cast<int>(groups.size()) > left + 1) {
    for (const Copy& copy : groups.front())
      std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.bytes));
    groups.erase(groups.begin());
  }
}
void emulated_store_later(void* to, const void* from, int bytes) {
  require_bulk(to, from, bytes);
  g_cluster.running().stores.push_back({to, from, bytes});
}
void emulated_wait_stores() {
  for (const Copy& copy : g_cluster.running().stores)
    std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.bytes));
  g_cluster.running().stores.clear();
}

void emulated_multiply_wide(const WideProduct& product) {
  g_cluster.running().wide.push_back(product);
}
void emulated_wait_wide() {
  yield(Wait::warpgroup);
}

float emulated_from_half(std::uint16_t half) {
  const unsigned sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31, rest = half & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | rest << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | rest << 13);
  const float small = static_cast<float>(rest) * 0x1p-24f;
  return sign != 0 ? -small : small;
}
std::uint16_t emulated_to_half(float x) {
  const auto sign = static_cast<std::uint16_t>(std::bit_cast<unsigned>(x) >> 16 & 0x8000u);
  const float size = std::fabs(x);
  if (size != size) return sign | 0x7fff;
  if (size >= 65520.0f) return sign | 0x7c00;
  if (size < 0x1p-14f)
    return static_cast<std::uint16_t>(sign | static_cast<unsigned>(std::nearbyint(size * 0x1p24f)));
  const unsigned bits = std::bit_cast<unsigned>(size);
  const unsigned rounded = bits + 0xfff + (bits >> 13 & 1);
  return static_cast<std::uint16_t>(sign | (rounded - (112u << 23)) >> 13);
}

}  // namespace kbeam
