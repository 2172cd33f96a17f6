#include "target/cuda/device_memory.h"

#include <algorithm>

#include "base/defence.h"
#include "base/entropy.h"

namespace kbeam {
namespace {

// Addresses cost nothing until they are backed; enough for the largest device's memory.
constexpr std::uint64_t kJudgeAddresses = 256ull << 30;
constexpr std::uint64_t kAlignment = 256;
constexpr std::uint64_t kMostShifts = 256;

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// An odd number of times the alignment that everybody may rely on, and no other.
std::uint64_t random_shift() {
  if (!defence_is_on(Defence::random_addresses)) return 0;
  return kAlignment * (random_bits() % kMostShifts | 1);
}

CUmemAllocationProp pinned_on(CUdevice device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

}  // namespace

std::uint64_t allocation_granularity(const Driver& cuda, CUdevice device) {
  std::size_t bytes = 0;
  const CUmemAllocationProp properties = pinned_on(device);
  DRIVER(cuda, cuMemGetAllocationGranularity, &bytes, &properties,
         CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  return bytes;
}

GuardedBuffer guarded_layout(std::uint64_t bytes, std::uint64_t granularity, std::uint64_t shift) {
  GuardedBuffer buffer;
  buffer.bytes = bytes;
  buffer.at = kGuardBytes + shift;
  buffer.mapped_bytes = round_up(buffer.at + bytes + kGuardBytes, granularity);
  return buffer;
}

DeviceMapping::DeviceMapping(const Driver& cuda, CUdevice device, std::uint64_t reserved_bytes)
    : cuda_(cuda), device_(device), reserved_bytes_(reserved_bytes) {
  DRIVER(cuda_, cuMemAddressReserve, &address_, reserved_bytes_, 0, 0, 0);
}

DeviceMapping::~DeviceMapping() {
  // Errors here mean that the context is gone, and all memory with it.
  if (mapped_) cuda_.cuMemUnmap(address_ + offset_, bytes_);
  if (backed_) cuda_.cuMemRelease(handle_);
  if (address_ != 0) cuda_.cuMemAddressFree(address_, reserved_bytes_);
}

void DeviceMapping::back(std::uint64_t offset, std::uint64_t bytes) {
  const CUmemAllocationProp properties = pinned_on(device_);
  DRIVER(cuda_, cuMemCreate, &handle_, bytes, &properties, 0);
  backed_ = true;
  offset_ = offset;
  bytes_ = bytes;
  map();
}

void DeviceMapping::release() {
  unmap();
  if (backed_) DRIVER(cuda_, cuMemRelease, handle_);
  backed_ = false;
}

void DeviceMapping::map() {
  if (mapped_ || !backed_) return;
  DRIVER(cuda_, cuMemMap, address_ + offset_, bytes_, 0, handle_, 0);
  mapped_ = true;
  set_access(DeviceAccess::read_write);
}

void DeviceMapping::allow(DeviceAccess access) {
  if (access != access_) set_access(access);
}

void DeviceMapping::set_access(DeviceAccess access) {
  CUmemAccessDesc wanted{};
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = device_;
  wanted.flags = access == DeviceAccess::read_only ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                                   : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  DRIVER(cuda_, cuMemSetAccess, address_ + offset_, bytes_, &wanted, 1);
  access_ = access;
}

void DeviceMapping::unmap() {
  if (!mapped_) return;
  DRIVER(cuda_, cuMemUnmap, address_ + offset_, bytes_);
  mapped_ = false;
}

CandidateMemory::CandidateMemory(const Driver& cuda, CUdevice device, MemoryMode mode)
    : cuda_(cuda), device_(device), mode_(mode) {}

CandidateMemory::~CandidateMemory() {
  if (mode_ == MemoryMode::plain)
    for (const GuardedBuffer& buffer : buffers_) cuda_.cuMemFree(buffer.begin);
}

const GuardedBuffer& CandidateMemory::add(std::uint64_t bytes) {
  if (mode_ == MemoryMode::plain) {
    GuardedBuffer buffer;
    buffer.bytes = buffer.mapped_bytes = bytes;
    DRIVER(cuda_, cuMemAlloc, &buffer.begin, std::max<std::uint64_t>(bytes, 1));
    buffer.at = buffer.begin;
    return buffers_.emplace_back(buffer);
  }
  const std::uint64_t page = allocation_granularity(cuda_, device_);
  GuardedBuffer buffer = guarded_layout(bytes, page, random_shift());
  // One page of addresses on each side stays unmapped: what jumps over a guard zone faults.
  auto mapping = std::make_unique<DeviceMapping>(cuda_, device_, buffer.mapped_bytes + 2 * page);
  mapping->back(page, buffer.mapped_bytes);
  buffer.begin = mapping->address() + page;
  buffer.at += buffer.begin;
  mappings_.push_back(std::move(mapping));
  return buffers_.emplace_back(buffer);
}

void CandidateMemory::allow(const GuardedBuffer& buffer, DeviceAccess access) {
  for (std::size_t i = 0; i < mappings_.size(); ++i)
    if (buffers_[i].begin == buffer.begin) mappings_[i]->allow(access);
}

void CandidateMemory::clear() {
  if (mode_ == MemoryMode::plain)
    for (const GuardedBuffer& buffer : buffers_) DRIVER(cuda_, cuMemFree, buffer.begin);
  buffers_.clear();
  mappings_.clear();
}

JudgeMemory::JudgeMemory(const Driver& cuda, CUdevice device, MemoryMode mode)
    : cuda_(cuda), device_(device), mode_(mode) {
  if (mode_ == MemoryMode::guarded)
    range_ = std::make_unique<DeviceMapping>(cuda_, device_, kJudgeAddresses);
}

JudgeMemory::~JudgeMemory() {
  for (const CUdeviceptr address : plain_) cuda_.cuMemFree(address);
}

CUdeviceptr JudgeMemory::place(std::uint64_t bytes) {
  const std::uint64_t room = round_up(std::max<std::uint64_t>(bytes, 1), kAlignment);
  if (mode_ == MemoryMode::plain) {
    CUdeviceptr address = 0;
    DRIVER(cuda_, cuMemAlloc, &address, room);
    plain_.push_back(address);
    placed_bytes_ += room;
    return address;
  }
  const CUdeviceptr address = range_->address() + placed_bytes_;
  placed_bytes_ += room;
  return address;
}

void JudgeMemory::commit() {
  if (mode_ == MemoryMode::plain) return;
  CHECK(!range_->mapped(), "commit() once after the last place()");
  range_->back(0, round_up(placed_bytes_, allocation_granularity(cuda_, device_)));
}

void JudgeMemory::clear() {
  for (const CUdeviceptr address : plain_) DRIVER(cuda_, cuMemFree, address);
  plain_.clear();
  if (range_) range_->release();
  placed_bytes_ = 0;
}

void JudgeMemory::map() {
  if (range_) range_->map();
}
void JudgeMemory::unmap() {
  if (range_) range_->unmap();
}
bool JudgeMemory::mapped() const {
  return !range_ || range_->mapped();
}

void upload(const Driver& cuda, CUstream stream, CUdeviceptr to, const void* from,
            std::uint64_t bytes) {
  if (bytes > 0) DRIVER(cuda, cuMemcpyHtoDAsync, to, from, bytes, stream);
}

void download(const Driver& cuda, CUstream stream, void* to, CUdeviceptr from,
              std::uint64_t bytes) {
  if (bytes > 0) DRIVER(cuda, cuMemcpyDtoHAsync, to, from, bytes, stream);
  DRIVER(cuda, cuStreamSynchronize, stream);
}

}  // namespace kbeam
