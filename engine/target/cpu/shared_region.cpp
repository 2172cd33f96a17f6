// memfd_create, map, seal: in this order, because F_SEAL_FUTURE_WRITE leaves only mappings made
// before it writable.
#include "target/cpu/shared_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/defence.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace kbeam {

Result<SharedRegion> SharedRegion::make(const char* name, std::size_t bytes, RegionAccess access) {
  const auto failed = [&](const char* what) {
    return Error{
        ErrorCode::unavailable, std::string("share memory \"") + name + "\" with the runner",
        std::string(what) + ": " + std::strerror(errno), "free memory, or use Linux 5.3 or newer"};
  };
  const int descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return failed("memfd_create");
  SharedRegion region(descriptor, nullptr, bytes);
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) return failed("ftruncate");
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) return failed("mmap");
  region.data_ = static_cast<std::byte*>(data);
  int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (access == RegionAccess::runner_reads && defence_is_on(Defence::read_only_inputs))
    seals |= F_SEAL_FUTURE_WRITE;
  if (fcntl(descriptor, F_ADD_SEALS, seals) != 0) return failed("seal");
  return region;
}

SharedRegion::SharedRegion(SharedRegion&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

SharedRegion& SharedRegion::operator=(SharedRegion&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedRegion::~SharedRegion() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace kbeam
