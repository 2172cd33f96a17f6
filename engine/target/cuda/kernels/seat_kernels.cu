// The trusted kernels of a seat: poison and its inspection, comparison, fill and copy, cache and
// shared-memory scrubbing, a spin and a probe. Launched by seat_kernels.cpp; never by a candidate.
#include <stdint.h>

#include "seat_kernel_types.h"

namespace {

using kbeam::kNothingFound;
using kbeam::SeatFinding;

__device__ __forceinline__ uint64_t thread_index() {
  return static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ uint64_t thread_count() {
  return static_cast<uint64_t>(gridDim.x) * blockDim.x;
}

__device__ __forceinline__ uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

// Quiet NaNs with random payloads for floating point, random bits for integers; a function of key
// and position alone, so that no copy is needed to recognise it.
__device__ __forceinline__ uint32_t poison_word(uint64_t word, uint64_t key, int type) {
  const uint32_t random =
      mix((static_cast<uint32_t>(word) ^ static_cast<uint32_t>(key)) +
          static_cast<uint32_t>(key >> 32) + 0x9e3779b9u * static_cast<uint32_t>(word >> 32));
  // Never a NaN that arithmetic makes (0x7fffffff, 0x7fc00000): an honest one is no poison.
  if (type == kbeam::kPoisonF32) return (random & 0x801fffffu) | 0x7fc00001u;
  if (type == kbeam::kPoisonF64 && (word & 1)) return (random & 0x8007ffffu) | 0x7ff80000u;
  return random;
}

__device__ __forceinline__ void report(SeatFinding* finding, uint64_t count, uint64_t first) {
  if (count == 0) return;
  atomicAdd(&finding->count, static_cast<unsigned long long>(count));
  atomicMin(&finding->first, static_cast<unsigned long long>(first));
}

}  // namespace

extern "C" __global__ void kbeam_poison(uint32_t* words, uint64_t count, uint64_t first_word,
                                        uint64_t key, int type) {
  for (uint64_t i = thread_index(); i < count; i += thread_count())
    words[i] = poison_word(first_word + i, key, type);
}

// Bytes of [skip, 4 count) that are not the pattern; `first` is a byte offset from `words`.
extern "C" __global__ void kbeam_find_damage(const uint32_t* words, uint64_t count,
                                             uint64_t first_word, uint64_t key, int type,
                                             uint32_t skip, SeatFinding* finding) {
  uint64_t damaged = 0;
  uint64_t first = kNothingFound;
  for (uint64_t i = thread_index(); i < count; i += thread_count()) {
    uint32_t wrong = words[i] ^ poison_word(first_word + i, key, type);
    if (i == 0) wrong &= 0xffffffffu << (8 * skip);
    if (wrong == 0) continue;
    for (int byte = 3; byte >= 0; --byte)
      if ((wrong >> (8 * byte)) & 0xffu) {
        ++damaged;
        if (4 * i + byte < first) first = 4 * i + byte;
      }
  }
  report(finding, damaged, first);
}

// Elements that still hold the pattern. One 32-bit integer alone may be luck: its neighbour of the
// pair must hold it too.
extern "C" __global__ void kbeam_find_poison(const uint32_t* words, uint64_t elements, uint64_t key,
                                             int type, SeatFinding* finding) {
  uint64_t untouched = 0;
  uint64_t first = kNothingFound;
  const auto holds = [&](uint64_t word) { return words[word] == poison_word(word, key, type); };
  for (uint64_t i = thread_index(); i < elements; i += thread_count()) {
    bool same;
    if (type == kbeam::kPoisonF32)
      same = holds(i);
    else if (type == kbeam::kPoisonI32)
      same = (i ^ 1) < elements && holds(i) && holds(i ^ 1);
    else
      same = holds(2 * i) && holds(2 * i + 1);
    if (!same) continue;
    ++untouched;
    if (i < first) first = i;
  }
  report(finding, untouched, first);
}

// Bytes in which two ranges differ; both start at a multiple of 16.
extern "C" __global__ void kbeam_compare(const uint8_t* a, const uint8_t* b, uint64_t bytes,
                                         SeatFinding* finding) {
  uint64_t different = 0;
  uint64_t first = kNothingFound;
  const uint64_t whole = bytes / 16;
  const auto* a16 = reinterpret_cast<const uint4*>(a);
  const auto* b16 = reinterpret_cast<const uint4*>(b);
  const auto look = [&](uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end; ++at)
      if (a[at] != b[at]) {
        ++different;
        if (at < first) first = at;
      }
  };
  for (uint64_t i = thread_index(); i < whole; i += thread_count()) {
    const uint4 x = a16[i];
    const uint4 y = b16[i];
    if (((x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w)) != 0) look(16 * i, 16 * i + 16);
  }
  if (thread_index() == 0) look(16 * whole, bytes);
  report(finding, different, first);
}

// The fill and copy nodes of plans: any address, any length.
extern "C" __global__ void kbeam_fill(uint8_t* to, uint64_t bytes, uint32_t byte_value) {
  const uint64_t head = min(bytes, (16 - reinterpret_cast<uint64_t>(to) % 16) % 16);
  const uint64_t whole = (bytes - head) / 16;
  const uint32_t word = byte_value * 0x01010101u;
  auto* middle = reinterpret_cast<uint4*>(to + head);
  for (uint64_t i = thread_index(); i < whole; i += thread_count())
    middle[i] = make_uint4(word, word, word, word);
  const uint64_t rest = bytes - 16 * whole;  // fewer than 32 bytes: head, then tail
  for (uint64_t i = thread_index(); i < rest; i += thread_count())
    to[i < head ? i : i + 16 * whole] = static_cast<uint8_t>(byte_value);
}

extern "C" __global__ void kbeam_copy(uint8_t* to, const uint8_t* from, uint64_t bytes) {
  const bool aligned =
      (reinterpret_cast<uint64_t>(to) | reinterpret_cast<uint64_t>(from)) % 16 == 0;
  const uint64_t whole = aligned ? bytes / 16 : 0;
  for (uint64_t i = thread_index(); i < whole; i += thread_count())
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  for (uint64_t i = 16 * whole + thread_index(); i < bytes; i += thread_count()) to[i] = from[i];
}

// Takes every line of the cache: written once (dirty lines go out), then read again.
extern "C" __global__ void kbeam_flush_write(uint4* memory, uint64_t count, uint32_t value) {
  for (uint64_t i = thread_index(); i < count; i += thread_count())
    memory[i] = make_uint4(value, value + static_cast<uint32_t>(i), value, value);
}
extern "C" __global__ void kbeam_flush_read(const uint4* memory, uint64_t count, uint32_t* sink) {
  uint32_t sum = 0;
  for (uint64_t i = thread_index(); i < count; i += thread_count()) {
    const uint4 line = memory[i];
    sum ^= line.x ^ line.y;
  }
  if (sum == 0x5eed1e55u) atomicAdd(sink, 1);  // keeps the loads alive
}

// Overwrites the shared memory that a block can have, so that nothing is found there by the next.
extern "C" __global__ void kbeam_scrub_shared(uint32_t words, uint32_t value) {
  extern __shared__ uint32_t shared[];
  for (uint32_t i = threadIdx.x; i < words; i += blockDim.x)
    *static_cast<volatile uint32_t*>(shared + i) = value ^ i;
}

// Overwrites the frame that a thread of a kernel with up to kBytes of local memory has; `shift` is
// known at run time only, so that the frame stays in memory.
template <int kBytes>
__device__ __forceinline__ void scrub_frame(uint32_t value, uint32_t shift) {
  constexpr uint32_t kWords = kBytes / 4;
  volatile uint32_t frame[kWords];
  for (uint32_t i = 0; i < kWords; ++i) frame[(i + shift) % kWords] = value ^ i;
}
#define KBEAM_SCRUB_LOCAL(name, bytes)                                                      \
  extern "C" __global__ void __launch_bounds__(1024) name(uint32_t value, uint32_t shift) { \
    scrub_frame<bytes>(value, shift);                                                       \
  }
KBEAM_SCRUB_LOCAL(kbeam_scrub_local_1k, 1 << 10)
KBEAM_SCRUB_LOCAL(kbeam_scrub_local_4k, 4 << 10)
KBEAM_SCRUB_LOCAL(kbeam_scrub_local_16k, 16 << 10)
KBEAM_SCRUB_LOCAL(kbeam_scrub_local_64k, 64 << 10)

// Keeps the stream busy while the host enqueues what follows.
extern "C" __global__ void kbeam_spin(uint64_t nanoseconds) {
  uint64_t begin;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  for (uint64_t now = begin; now - begin < nanoseconds;)
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
}

// Integer and double arithmetic with one right answer: probe_term of seat_kernel_types.h, summed.
extern "C" __global__ void kbeam_probe(unsigned long long* sum) {
  atomicAdd(sum, static_cast<unsigned long long>(
                     kbeam::probe_term(static_cast<uint32_t>(thread_index()))));
}
