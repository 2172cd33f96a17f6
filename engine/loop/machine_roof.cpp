#include "loop/machine_roof.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "base/affinity.h"

namespace kbeam {
namespace {

constexpr int kRepeats = 4;
constexpr double kBytesMargin = 1.5;
constexpr double kFlopsMargin = 4;

// Keeps the compiler from leaving out what nobody reads.
void keep(const void* memory) {
  asm volatile("" : : "r"(memory) : "memory");
}

// The quickest of all pieces: short enough that a busy machine leaves some of them alone.
template <typename Work>
double least_ns(const Clock& clock, std::size_t pieces, Work work) {
  double least = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < kRepeats; ++repeat)
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const std::int64_t began_ns = clock.monotonic_ns();
      work(piece);
      least = std::min(least, static_cast<double>(clock.monotonic_ns() - began_ns));
    }
  return least;
}

using Vector __attribute__((vector_size(64))) = float;

#if defined(__x86_64__)
#define KBEAM_EVERY_X86 \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KBEAM_EVERY_X86
#endif

KBEAM_EVERY_X86 void read_all(const float* values, std::size_t count) {
  Vector sums[4] = {};
  for (std::size_t i = 0; i + 64 <= count; i += 64)
    for (std::size_t j = 0; j < 4; ++j) {
      Vector next;
      std::memcpy(&next, values + i + 16 * j, sizeof next);  // of any alignment
      sums[j] += next;
    }
  keep(sums);
}

// Twelve chains: more than two units of five cycles can keep busy.
KBEAM_EVERY_X86 void multiply_and_add(std::size_t rounds) {
  constexpr std::size_t kChains = 12;
  Vector sums[kChains] = {};
  Vector factor = Vector{} + 0.999F;
  keep(&factor);
  for (std::size_t round = 0; round < rounds; ++round)
    for (Vector& sum : sums) sum = sum * factor + factor;
  keep(sums);
}

double measure_bytes_per_ns(const Clock& clock) {
  constexpr std::size_t kFloats = std::size_t{1} << 24;  // 64 MiB: beyond the cache share of a CPU
  constexpr std::size_t kPieces = 64;
  constexpr std::size_t kPiece = kFloats / kPieces;
  constexpr double kPieceBytes = kPiece * sizeof(float);
  std::vector<float> from(kFloats, 1.0F);
  std::vector<float> to(kFloats, 2.0F);
  const double read_ns =
      least_ns(clock, kPieces, [&](std::size_t piece) { read_all(&from[piece * kPiece], kPiece); });
  const double write_ns = least_ns(clock, kPieces, [&](std::size_t piece) {
    std::memset(&to[piece * kPiece], 0, kPiece * sizeof(float));
    keep(to.data());
  });
  const double copy_ns = least_ns(clock, kPieces, [&](std::size_t piece) {
    std::memcpy(&to[piece * kPiece], &from[piece * kPiece], kPiece * sizeof(float));
    keep(to.data());
  });
  return std::max({kPieceBytes / read_ns, kPieceBytes / write_ns, 2 * kPieceBytes / copy_ns});
}

double measure_flops_per_ns(const Clock& clock) {
  constexpr std::size_t kRounds = 5'000;
  constexpr std::size_t kPieces = 64;
  constexpr double kFlops = kRounds * 12.0 * 16 * 2;
  return kFlops / least_ns(clock, kPieces, [](std::size_t) { multiply_and_add(kRounds); });
}

}  // namespace

MachineRoof measure_machine_roof(int cpu, const Clock& clock) {
  MachineRoof roof;
  std::thread([&] {
    pin_this_thread(cpu);
    roof = {measure_bytes_per_ns(clock), measure_flops_per_ns(clock)};
  }).join();
  return roof;
}

double least_time_ns(const MachineRoof& roof, double bytes, double flops) {
  const double bytes_ns = roof.bytes_per_ns > 0 ? bytes / (kBytesMargin * roof.bytes_per_ns) : 0;
  const double flops_ns = roof.flops_per_ns > 0 ? flops / (kFlopsMargin * roof.flops_per_ns) : 0;
  return std::max(bytes_ns, flops_ns);
}

}  // namespace kbeam
