#include "target/cuda/seat_kernels.h"

#include <algorithm>
#include <utility>

namespace kbeam {

SeatKernels::SeatKernels(const Driver& cuda, CUstream stream, std::string_view image)
    : cuda_(cuda), stream_(stream) {
  DRIVER(cuda_, cuModuleLoadData, &module_, image.data());
  const auto find = [this](CUfunction& function, const char* name) {
    DRIVER(cuda_, cuModuleGetFunction, &function, module_, name);
    // Loaded now: a first launch between two calls must not stop to load code.
    DRIVER(cuda_, cuFuncLoad, function);
  };
  find(poison_, "kbeam_poison");
  find(find_damage_, "kbeam_find_damage");
  find(find_poison_, "kbeam_find_poison");
  find(compare_, "kbeam_compare");
  find(fill_, "kbeam_fill");
  find(copy_, "kbeam_copy");
  find(flush_write_, "kbeam_flush_write");
  find(flush_read_, "kbeam_flush_read");
  find(scrub_, "kbeam_scrub_shared");
  find(spin_, "kbeam_spin");
  find(probe_, "kbeam_probe");
}

SeatKernels::~SeatKernels() {
  if (module_ != nullptr) cuda_.cuModuleUnload(module_);
}

unsigned SeatKernels::blocks_for(std::uint64_t bytes) {
  constexpr std::uint64_t kBytesPerBlock = kThreads * 64;
  return static_cast<unsigned>(
      std::clamp<std::uint64_t>((bytes + kBytesPerBlock - 1) / kBytesPerBlock, 1, 4096));
}

template <typename... Arguments>
void SeatKernels::launch(CUfunction function, unsigned blocks, unsigned shared_bytes,
                         Arguments... arguments) const {
  void* pointers[] = {&arguments...};
  DRIVER(cuda_, cuLaunchKernel, function, blocks, 1, 1, kThreads, 1, 1, shared_bytes, stream_,
         pointers, nullptr);
}

void SeatKernels::poison(CUdeviceptr at, std::uint64_t bytes, std::uint64_t first_word,
                         const DevicePoison& poison) const {
  if (bytes == 0) return;
  const std::uint64_t words = (bytes + 3) / 4;
  launch(poison_, blocks_for(bytes), 0, at, words, first_word, poison.key,
         static_cast<int>(poison.type));
}

void SeatKernels::begin_searches() {
  static const std::vector<SeatFinding> kNothing(kMostSearches, {0, kNothingFound});
  DRIVER(cuda_, cuMemcpyHtoDAsync, findings_, kNothing.data(), kFindingBytes, stream_);
  searches_ = 0;
}

CUdeviceptr SeatKernels::next_finding() {
  if (searches_ == kMostSearches)
    throw DriverFailure(CUDA_ERROR_INVALID_VALUE, "search", "the plan has too many buffers");
  return findings_ + static_cast<CUdeviceptr>(searches_++) * sizeof(SeatFinding);
}

void SeatKernels::find_damage(CUdeviceptr at, std::uint64_t bytes, std::uint64_t first_word,
                              std::uint32_t skip_bytes, const DevicePoison& poison) {
  const CUdeviceptr finding = next_finding();
  if (bytes == 0) return;
  launch(find_damage_, blocks_for(bytes), 0, at, bytes / 4, first_word, poison.key,
         static_cast<int>(poison.type), skip_bytes, finding);
}

void SeatKernels::find_poison(CUdeviceptr at, std::uint64_t elements, const DevicePoison& poison) {
  const CUdeviceptr finding = next_finding();
  if (elements == 0) return;
  launch(find_poison_, blocks_for(elements * 4), 0, at, elements, poison.key,
         static_cast<int>(poison.type), finding);
}

void SeatKernels::compare(CUdeviceptr a, CUdeviceptr b, std::uint64_t bytes) {
  const CUdeviceptr finding = next_finding();
  if (bytes == 0) return;
  launch(compare_, blocks_for(bytes), 0, a, b, bytes, finding);
}

std::vector<SeatFinding> SeatKernels::finish_searches() {
  std::vector<SeatFinding> found(static_cast<std::size_t>(searches_));
  if (!found.empty())
    DRIVER(cuda_, cuMemcpyDtoHAsync, found.data(), findings_, found.size() * sizeof(SeatFinding),
           stream_);
  DRIVER(cuda_, cuStreamSynchronize, stream_);
  return found;
}

void SeatKernels::fill(CUdeviceptr to, std::uint64_t bytes, std::uint8_t value) const {
  if (bytes == 0) return;
  launch(fill_, blocks_for(bytes), 0, to, bytes, static_cast<std::uint32_t>(value));
}

void SeatKernels::flush(CUdeviceptr memory, std::uint64_t bytes, std::uint32_t value) const {
  const std::uint64_t lines = bytes / 16;
  launch(flush_write_, blocks_for(bytes), 0, memory, lines, value);
  launch(flush_read_, blocks_for(bytes), 0, memory, lines, findings_);
}

void SeatKernels::scrub_shared(int blocks, std::uint32_t bytes, std::uint32_t value) const {
  DRIVER(cuda_, cuFuncSetAttribute, scrub_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
         static_cast<int>(bytes));
  launch(scrub_, static_cast<unsigned>(blocks), bytes, bytes / 4, value);
}

// Looked up where it is needed: a large frame makes the driver keep as much for every thread.
void SeatKernels::scrub_local(int blocks, std::uint32_t bytes, std::uint32_t value) const {
  constexpr std::pair<std::uint32_t, const char*> kDepths[] = {
      {1 << 10, "kbeam_scrub_local_1k"},
      {4 << 10, "kbeam_scrub_local_4k"},
      {16 << 10, "kbeam_scrub_local_16k"},
      {kMostLocalBytes, "kbeam_scrub_local_64k"}};
  constexpr unsigned kMostThreads = 1024;
  const auto* depth =
      std::ranges::find_if(kDepths, [&](const auto& d) { return bytes <= d.first; });
  CHECK(depth != std::end(kDepths), "plans with deeper frames are refused");
  CUfunction scrub = nullptr;
  DRIVER(cuda_, cuModuleGetFunction, &scrub, module_, depth->second);
  std::uint32_t shift = value % 7;
  void* pointers[] = {&value, &shift};
  DRIVER(cuda_, cuLaunchKernel, scrub, static_cast<unsigned>(blocks), 1, 1, kMostThreads, 1, 1, 0,
         stream_, pointers, nullptr);
}

void SeatKernels::spin(std::uint64_t nanoseconds) const {
  void* pointers[] = {&nanoseconds};
  DRIVER(cuda_, cuLaunchKernel, spin_, 1, 1, 1, 1, 1, 1, 0, stream_, pointers, nullptr);
}

bool SeatKernels::probe() {
  begin_searches();
  CUdeviceptr sum = next_finding();
  void* pointers[] = {&sum};
  DRIVER(cuda_, cuLaunchKernel, probe_, kProbeBlocks, 1, 1, kProbeThreads, 1, 1, 0, stream_,
         pointers, nullptr);
  return finish_searches()[0].count == expected_probe_sum();
}

std::uint64_t expected_probe_sum() {
  static const std::uint64_t sum = [] {
    std::uint64_t total = 0;
    for (std::uint32_t i = 0; i < kProbeBlocks * kProbeThreads; ++i) total += probe_term(i);
    return total;
  }();
  return sum;
}

}  // namespace kbeam
