// Layout, guard zones, poison and seals, without any process.
#include "target/cpu/call_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <set>

namespace kbeam {
namespace {

using ::testing::HasSubstr;

std::vector<TensorShape> two_tensors(std::int64_t length) {
  return {{"A", KBEAM_INPUT, KBEAM_F32, {length}, {1}},
          {"H", KBEAM_OUTPUT, KBEAM_F64, {length}, {1}}};
}

CallMemory make_memory(int slots, std::uint64_t key = 1) {
  auto memory = CallMemory::make(1 << 20, 1 << 20);
  EXPECT_TRUE(memory.ok());
  EXPECT_TRUE(memory->lay_out(two_tensors(777), slots, key).ok());
  return std::move(memory).value();
}

TEST(CallMemory, TensorsAreAlignedApartAndAtDifferentOffsets) {
  const CallMemory memory = make_memory(8);
  std::set<std::uintptr_t> offsets;
  for (const Slot& slot : memory.slots())
    for (const TensorView& view : {slot.inputs.at(0), slot.outputs.at(0)}) {
      const auto address = reinterpret_cast<std::uintptr_t>(view.data);
      EXPECT_EQ(address % 64, 0u);
      offsets.insert(address % 4096);
    }
  EXPECT_GT(offsets.size(), 8u);
  for (const control::Extent& extent : memory.extents()) {
    EXPECT_GE(extent.tensor_begin - extent.begin, 4096u);
    EXPECT_EQ(extent.begin % 4096, 0u);
    for (const control::Extent& other : memory.extents())
      if (other.region == extent.region && other.begin > extent.begin) {
        EXPECT_GT(other.begin, extent.begin + extent.bytes) << "a page without access lies between";
      }
  }
}

TEST(CallMemory, AnotherKeyGivesAnotherLayout) {
  const CallMemory one = make_memory(4, 1);
  const CallMemory two = make_memory(4, 2);
  bool differs = false;
  for (std::size_t index = 0; index < one.extents().size(); ++index)
    differs |= one.extents()[index].tensor_begin != two.extents()[index].tensor_begin;
  EXPECT_TRUE(differs);
}

TEST(CallMemory, PoisonCoversOutputsAndInspectSeesBothGuards) {
  CallMemory memory = make_memory(2);
  memory.poison(1, 11);
  auto* h = static_cast<double*>(memory.slots()[1].outputs[0].data);
  EXPECT_TRUE(std::isnan(h[0]));
  EXPECT_TRUE(std::isnan(h[776]));
  std::fill(h, h + 777, 1.0);
  EXPECT_FALSE(memory.inspect(1));
  EXPECT_FALSE(memory.find_unwritten(1));
  h[777] = 1;
  EXPECT_THAT(memory.inspect(1)->sentence, HasSubstr("past the end of output H (slot 1)"));
  EXPECT_EQ(memory.inspect(1)->verdict, Verdict::wrote_outside);
  memory.poison(1, 12);
  EXPECT_FALSE(memory.inspect(1));
  h[-1] = 1;
  EXPECT_THAT(memory.inspect(1)->sentence, HasSubstr("before the start of output H (slot 1)"));
  EXPECT_THAT(memory.inspect(0)->sentence, HasSubstr("output H (slot 1)")) << "all guards count";
}

TEST(CallMemory, UnwrittenElementsAreNamed) {
  CallMemory memory = make_memory(1);
  memory.poison(0, 5);
  auto* h = static_cast<double*>(memory.slots()[0].outputs[0].data);
  std::fill(h, h + 17, 0.0);
  std::fill(h + 18, h + 777, 0.0);
  EXPECT_EQ(memory.find_unwritten(0), "H element 17 was never written");
}

TEST(CallMemory, FlushLeavesTheContentAlone) {
  CallMemory memory = make_memory(1);
  memory.slots()[0].inputs[0].f32()[5] = 3.f;
  memory.poison(0, 5);
  memory.flush(0);
  EXPECT_EQ(memory.slots()[0].inputs[0].f32()[5], 3.f);
  EXPECT_EQ(memory.find_unwritten(0), "H element 0 was never written");
}

TEST(CallMemory, InputsCannotBeMappedForWritingAndSizesAreSealed) {
  const CallMemory memory = make_memory(1);
  const int inputs = memory.inputs().descriptor();
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, inputs, 0), MAP_FAILED);
  void* read_only = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, inputs, 0);
  ASSERT_NE(read_only, MAP_FAILED);
  EXPECT_NE(mprotect(read_only, 4096, PROT_READ | PROT_WRITE), 0);
  munmap(read_only, 4096);
  EXPECT_LT(write(inputs, "x", 1), 0);
  for (const int descriptor : {inputs, memory.outputs().descriptor()}) {
    EXPECT_NE(ftruncate(descriptor, 0), 0);
    EXPECT_NE(fcntl(descriptor, F_ADD_SEALS, F_SEAL_WRITE), 0);
  }
}

TEST(CallMemory, TooLargeOrTooManyTensorsAreErrors) {
  auto memory = CallMemory::make(1 << 20, 1 << 20);
  ASSERT_TRUE(memory.ok());
  EXPECT_THAT(memory->lay_out(two_tensors(100'000'000), 1, 1).error().text(),
              HasSubstr("the inputs need"));
  EXPECT_THAT(memory->lay_out(two_tensors(1), 100'000, 1).error().text(), HasSubstr("fewer slots"));
  EXPECT_FALSE(memory->lay_out({}, 1, 1).ok());
}

}  // namespace
}  // namespace kbeam
