// Device memory of a seat in two kinds. CandidateMemory is what the candidate's plan works on:
// every buffer between guard zones, with unmapped pages around them. JudgeMemory holds what a
// candidate must not reach (pristine inputs, snapshots, figures, check scratch, the flush buffer);
// it keeps its addresses and its content but is unmapped while candidate kernels can run. Neither
// launches anything.
#pragma once

#include <cstdint>
#include <vector>

#include "target/cuda/driver.h"

namespace kbeam {

enum class MemoryMode {
  guarded,  // virtual memory management: guard zones, unmapping
  plain,    // cuMemAlloc of exact sizes, no guard zones, always mapped: what a sanitizer can watch
};

// One buffer of the candidate and the mapped range around it; plain: the range is the buffer.
struct GuardedBuffer {
  CUdeviceptr begin = 0;
  std::uint64_t mapped_bytes = 0;
  CUdeviceptr at = 0;
  std::uint64_t bytes = 0;

  std::uint64_t front_bytes() const { return at - begin; }
  std::uint64_t tail_bytes() const { return mapped_bytes - front_bytes() - bytes; }
};

constexpr std::uint64_t kGuardBytes = 64 << 10;  // at least, on each side

// Where a buffer of `bytes` lies in whole pages: begin 0 stands for the mapping's start. `shift` is
// added to the guard zone in front.
GuardedBuffer guarded_layout(std::uint64_t bytes, std::uint64_t granularity, std::uint64_t shift);

enum class DeviceAccess { read_only, read_write };  // of kernels and copies on the device

// Physical memory at an address range of its own. Moves, never copies.
class DeviceMapping {
 public:
  // Reserves `reserved_bytes` of addresses; nothing is mapped yet.
  DeviceMapping(const Driver& cuda, CUdevice device, std::uint64_t reserved_bytes);
  ~DeviceMapping();
  DeviceMapping(const DeviceMapping&) = delete;
  DeviceMapping& operator=(const DeviceMapping&) = delete;

  // Creates `bytes` of physical memory for the place `offset` of the range and maps it.
  void back(std::uint64_t offset, std::uint64_t bytes);
  void release();  // unmaps and gives the physical memory back; the addresses stay
  void map();      // for reading and writing
  void unmap();
  void allow(DeviceAccess access);  // mapped, and the context is idle

  CUdeviceptr address() const { return address_; }
  bool mapped() const { return mapped_; }

 private:
  void set_access(DeviceAccess access);

  const Driver& cuda_;
  CUdevice device_;
  std::uint64_t reserved_bytes_ = 0;
  CUdeviceptr address_ = 0;
  std::uint64_t offset_ = 0;
  std::uint64_t bytes_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
  bool backed_ = false;
  bool mapped_ = false;
  DeviceAccess access_ = DeviceAccess::read_write;
};

std::uint64_t allocation_granularity(const Driver& cuda, CUdevice device);

class CandidateMemory {
 public:
  CandidateMemory(const Driver& cuda, CUdevice device, MemoryMode mode);
  ~CandidateMemory();
  CandidateMemory(const CandidateMemory&) = delete;
  CandidateMemory& operator=(const CandidateMemory&) = delete;

  // The address is a multiple of 256, in guarded mode of no more than that: callers' pointers are
  // not those of a judge.
  const GuardedBuffer& add(std::uint64_t bytes);
  const std::vector<GuardedBuffer>& buffers() const { return buffers_; }
  // What may be done with a buffer and the guard zones around it, in guarded mode; the context is
  // idle.
  void allow(const GuardedBuffer& buffer, DeviceAccess access);
  void clear();

 private:
  const Driver& cuda_;
  CUdevice device_;
  MemoryMode mode_;
  std::vector<GuardedBuffer> buffers_;
  std::vector<std::unique_ptr<DeviceMapping>> mappings_;
};

class JudgeMemory {
 public:
  JudgeMemory(const Driver& cuda, CUdevice device, MemoryMode mode);
  ~JudgeMemory();
  JudgeMemory(const JudgeMemory&) = delete;
  JudgeMemory& operator=(const JudgeMemory&) = delete;

  // The address that `bytes` will have, a multiple of 256; valid for use after commit().
  CUdeviceptr place(std::uint64_t bytes);
  void commit();  // makes the memory and maps it
  void clear();   // gives it back: every place is void
  void map();
  void unmap();  // the context must be idle
  bool mapped() const;
  std::uint64_t bytes() const { return placed_bytes_; }

 private:
  const Driver& cuda_;
  CUdevice device_;
  MemoryMode mode_;
  std::unique_ptr<DeviceMapping> range_;
  std::vector<CUdeviceptr> plain_;
  std::uint64_t placed_bytes_ = 0;
};

// Copies in stream order from and to ordinary host memory; a download drains the stream.
void upload(const Driver& cuda, CUstream stream, CUdeviceptr to, const void* from,
            std::uint64_t bytes);
void download(const Driver& cuda, CUstream stream, void* to, CUdeviceptr from, std::uint64_t bytes);

}  // namespace kbeam
