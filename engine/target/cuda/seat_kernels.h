// Host side of the trusted kernels (kernels/seat_kernels.cu): loads their image and launches them
// in one stream. Decides nothing; what a finding means is the caller's.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "target/cuda/driver.h"
#include "target/cuda/kernels/seat_kernel_types.h"

namespace kbeam {

// The images that are compiled into the binary.
std::string_view seat_kernel_image();
std::string_view self_test_image();

struct DevicePoison {
  std::uint64_t key = 0;
  PoisonType type = kPoisonI32;
};

class SeatKernels {
 public:
  SeatKernels(const Driver& cuda, CUstream stream, std::string_view image);
  ~SeatKernels();
  SeatKernels(const SeatKernels&) = delete;
  SeatKernels& operator=(const SeatKernels&) = delete;

  // Where searches and the probe leave what they found: kFindingBytes of the judge's memory, mapped
  // whenever they run.
  void use_findings(CUdeviceptr findings) { findings_ = findings; }
  static constexpr int kMostSearches = 4096;
  static constexpr std::uint64_t kFindingBytes = kMostSearches * sizeof(SeatFinding);

  // `first_word` is the position of `at` in the pattern; `at` is a multiple of 4, and bytes are
  // rounded up to one.
  void poison(CUdeviceptr at, std::uint64_t bytes, std::uint64_t first_word,
              const DevicePoison& poison) const;
  // Searches are queued: begin, any number of finds, then finish() drains the stream and returns
  // what each of them found, in order.
  void begin_searches();
  void find_damage(CUdeviceptr at, std::uint64_t bytes, std::uint64_t first_word,
                   std::uint32_t skip_bytes, const DevicePoison& poison);
  void find_poison(CUdeviceptr at, std::uint64_t elements, const DevicePoison& poison);
  void compare(CUdeviceptr a, CUdeviceptr b, std::uint64_t bytes);
  std::vector<SeatFinding> finish_searches();

  void fill(CUdeviceptr to, std::uint64_t bytes, std::uint8_t value) const;
  void flush(CUdeviceptr memory, std::uint64_t bytes, std::uint32_t value) const;
  void scrub_shared(int blocks, std::uint32_t bytes, std::uint32_t value) const;
  // `bytes` of local memory a thread, kMostLocalBytes at most.
  void scrub_local(int blocks, std::uint32_t bytes, std::uint32_t value) const;
  static constexpr std::uint32_t kMostLocalBytes = 64 << 10;
  void spin(std::uint64_t nanoseconds) const;
  // False when the device computes a known sum wrongly.
  bool probe();

  // For the fill and copy nodes of plans.
  CUfunction fill_function() const { return fill_; }
  CUfunction copy_function() const { return copy_; }
  static unsigned blocks_for(std::uint64_t bytes);
  static constexpr unsigned kThreads = 256;

 private:
  template <typename... Arguments>
  void launch(CUfunction function, unsigned blocks, unsigned shared_bytes,
              Arguments... arguments) const;
  CUdeviceptr next_finding();

  const Driver& cuda_;
  CUstream stream_;
  CUmodule module_ = nullptr;
  CUdeviceptr findings_ = 0;
  int searches_ = 0;
  CUfunction poison_ = nullptr, find_damage_ = nullptr, find_poison_ = nullptr, compare_ = nullptr,
             fill_ = nullptr, copy_ = nullptr, flush_write_ = nullptr, flush_read_ = nullptr,
             scrub_ = nullptr, spin_ = nullptr, probe_ = nullptr;
};

// What the probe must sum up to.
std::uint64_t expected_probe_sum();

}  // namespace kbeam
