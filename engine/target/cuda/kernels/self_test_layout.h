// The made-up problem of the self test, as its kernels and its plans know it: Y = 2 A + 1, and a
// word of `marks` for each feature of a plan, with the value that it must have.
#pragma once

#include <stdint.h>

namespace kbeam::self_test {

constexpr int kSide = 256;
constexpr int kElements = kSide * kSide;  // of A and Y
constexpr int kMarks = 1024;
constexpr int kBox = 32;  // side of the tile that the tensor map fetches
constexpr int kMatrices = 4;
constexpr int kMatrixSide = 128;  // kMatrices of them fill A

// Where each feature writes its marks.
constexpr int kCluster4 = 0;       // 64 words: the right neighbour within the cluster of 4
constexpr int kCluster16 = 64;     // 32 words
constexpr int kFixedCluster = 96;  // 8 words: blocks in the cluster
constexpr int kLate = 128;         // 64 words: what the early kernel wrote, plus one
constexpr int kCooperative = 192;  // 64 words: blocks that arrived
constexpr int kBigShared = 256;    // 16 words: the last word of shared memory
constexpr int kTile = 272;         // 1 word: elements that the tensor map fetched rightly
constexpr int kCounters = 273;     // 2 words: device variables after one increment
constexpr int kTaken = 275;        // 1 word: the branch of the first condition
constexpr int kNotTaken = 276;     // 1 word: of the second
constexpr int kTable = 277;        // 1 word: the sum of the plan's table
constexpr int kScratch = 278;      // 1 word: words of scratch that fill and copy set rightly
constexpr int kFilled = 512;       // the rest: set by a fill node

constexpr int kEarlyValue = 41;
constexpr int kCooperativeBlocks = 64;
constexpr int kSharedWords = 40 * 1024;
constexpr int kTableSum = 60;
constexpr uint64_t kScratchBytes = 8 << 20;
constexpr uint32_t kScratchByte = 0x3f;
constexpr uint32_t kFilledWord = 0x07070707u;
constexpr uint64_t kStreamBytes = 24 << 20;  // what the cold-cache subjects read: fits the L2
constexpr uint64_t kEarlyEndNs = 3'000'000;

// Words that no feature names are set by the fill node too.
#ifdef __CUDACC__
__host__ __device__
#endif
    inline uint32_t
    expected_mark(int i) {
  if (i < kCluster16) return static_cast<uint32_t>(i / 4 * 4 + (i + 1) % 4);
  if (i < kFixedCluster) {
    const int block = i - kCluster16;
    return static_cast<uint32_t>(block / 16 * 16 + (block + 1) % 16);
  }
  if (i < kFixedCluster + 8) return 2;
  if (i >= kLate && i < kCooperative) return kEarlyValue + 1;
  if (i >= kCooperative && i < kBigShared) return kCooperativeBlocks;
  if (i >= kBigShared && i < kTile) return kSharedWords - 1;
  switch (i) {
    case kTile:
      return kBox * kBox;
    case kCounters:
      return 6;
    case kCounters + 1:
      return 1;
    case kTaken:
      return 111;
    case kNotTaken:
      return 222;
    case kTable:
      return kTableSum;
    case kScratch:
      return kScratchBytes / 4;
    default:
      return kFilledWord;
  }
}

// A parameter with padding, passed by value.
struct Affine {
  float scale[4];
  int elements;
  double offset;
};

}  // namespace kbeam::self_test
