// One sealed memfd that judge and runner map: the judge's mapping, and the descriptor that the
// runner inherits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace kbeam {

// What the runner may do with the memory. Sizes are sealed either way: a runner that could shrink
// the file would kill the judge with SIGBUS.
enum class RegionAccess { runner_reads, runner_writes };

class SharedRegion {
 public:
  static Result<SharedRegion> make(const char* name, std::size_t bytes, RegionAccess access);
  SharedRegion(SharedRegion&& other) noexcept;
  SharedRegion& operator=(SharedRegion&& other) noexcept;
  ~SharedRegion();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }

 private:
  SharedRegion(int descriptor, std::byte* data, std::size_t bytes)
      : descriptor_(descriptor), data_(data), bytes_(bytes) {}
  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace kbeam
