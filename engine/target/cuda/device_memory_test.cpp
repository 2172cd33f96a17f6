#include "target/cuda/device_memory.h"

#include <gmock/gmock.h>

#include "target/cuda/fake_driver_fixture.h"

namespace kbeam {
namespace {

TEST(GuardedLayoutTest, GuardsEachSideAndFillsWholePages) {
  for (const std::uint64_t bytes : {1ull, 4096ull, (2ull << 20) - 1, 5ull << 20}) {
    const GuardedBuffer buffer = guarded_layout(bytes, 2 << 20, 768);
    EXPECT_EQ(buffer.at % 1024, 768u) << bytes;
    EXPECT_GE(buffer.front_bytes(), kGuardBytes) << bytes;
    EXPECT_GE(buffer.tail_bytes(), kGuardBytes) << bytes;
    EXPECT_EQ(buffer.mapped_bytes % (2 << 20), 0u) << bytes;
    EXPECT_EQ(buffer.front_bytes() + buffer.bytes + buffer.tail_bytes(), buffer.mapped_bytes);
  }
}

class DeviceMemoryTest : public testing::Test {
 protected:
  FakeDriver fake_;
  Driver cuda_ = fake_.driver();
};

TEST_F(DeviceMemoryTest, AroundACandidatesBufferNothingIsMapped) {
  CandidateMemory memory(cuda_, 0, MemoryMode::guarded);
  const GuardedBuffer buffer = memory.add(1000);
  memory.add(2000);
  const auto mapped = [&](CUdeviceptr address) {
    for (const auto& [begin, bytes] : fake_.mapped)
      if (address >= begin && address < begin + bytes) return true;
    return false;
  };
  EXPECT_TRUE(mapped(buffer.begin));
  EXPECT_TRUE(mapped(buffer.begin + buffer.mapped_bytes - 1));
  EXPECT_FALSE(mapped(buffer.begin - 1));
  EXPECT_FALSE(mapped(buffer.begin + buffer.mapped_bytes));
  memory.clear();
  EXPECT_TRUE(fake_.mapped.empty());
  EXPECT_TRUE(fake_.files.empty());
}

TEST_F(DeviceMemoryTest, TheJudgesMemoryKeepsAddressesAndContent) {
  JudgeMemory memory(cuda_, 0, MemoryMode::guarded);
  const CUdeviceptr first = memory.place(100);
  const CUdeviceptr second = memory.place(100);
  EXPECT_EQ(second - first, 256u);
  memory.commit();
  *reinterpret_cast<int*>(second) = 42;
  memory.unmap();
  EXPECT_FALSE(memory.mapped());
  EXPECT_TRUE(fake_.mapped.empty());
  memory.map();
  EXPECT_EQ(*reinterpret_cast<int*>(second), 42);
  memory.clear();
  EXPECT_EQ(memory.place(10), first);
}

TEST_F(DeviceMemoryTest, PlainMemoryHasExactSizesAndNeverGoesAway) {
  CandidateMemory candidate(cuda_, 0, MemoryMode::plain);
  const GuardedBuffer buffer = candidate.add(1000);
  EXPECT_EQ(buffer.mapped_bytes, 1000u);
  EXPECT_EQ(buffer.front_bytes(), 0u);
  EXPECT_EQ(buffer.tail_bytes(), 0u);
  JudgeMemory judge(cuda_, 0, MemoryMode::plain);
  *reinterpret_cast<int*>(judge.place(4)) = 1;
  judge.commit();
  judge.unmap();
  EXPECT_TRUE(judge.mapped());
}

}  // namespace
}  // namespace kbeam
