// The numbers are those of the driver's documentation of cuTensorMapEncodeTiled, spelt out here so
// that a plan can be checked where no cuda.h is.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "target/cuda/plan_mistakes.h"

namespace kbeam {
namespace {

constexpr int kMostRank = 5;
constexpr std::uint64_t kMostDim = 1ULL << 32;
constexpr std::uint64_t kMostStride = 1ULL << 40;
constexpr std::uint32_t kMostBox = 256;
constexpr std::uint32_t kMostElementStride = 8;
constexpr std::uint64_t kStrideUnit = 16;
// CUtensorMapDataType in order: U8 U16 U32 I32 U64 I64 F16 F32 F64 BF16 F32_FTZ TF32 TF32_FTZ.
constexpr std::array<std::uint64_t, 13> kElementBytes{1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
constexpr int kFirstReal = 6;
// CUtensorMapSwizzle: none, 32, 64 and 128 bytes, and three forms of 128 with larger atoms.
constexpr std::array<std::uint64_t, 7> kSwizzleSpan{0, 32, 64, 128, 128, 128, 128};

class Checker {
 public:
  explicit Checker(const PlanTensorMap& map) : map_(map) {}
  std::vector<std::string> run(const std::vector<PlanBuffer>& buffers) {
    if (map_.rank < 1 || map_.rank > kMostRank)
      return {fmt::format("has rank {}; a tensor map has 1 to 5 dimensions", map_.rank)};
    if (map_.data_type < 0 || map_.data_type >= static_cast<int>(kElementBytes.size()))
      return {fmt::format("has the unknown data type {}", map_.data_type)};
    element_ = kElementBytes[static_cast<std::size_t>(map_.data_type)];
    check_dimensions();
    check_box();
    check_modes();
    if (mistakes_.empty()) check_extent(buffers);
    return std::move(mistakes_);
  }

 private:
  template <typename... T>
  void say(fmt::format_string<T...> format, T&&... values) {
    mistakes_.push_back(fmt::format(format, std::forward<T>(values)...));
  }
  std::size_t rank() const { return static_cast<std::size_t>(map_.rank); }

  void check_dimensions() {
    for (std::size_t i = 0; i < rank(); ++i) {
      if (map_.dim[i] < 1 || map_.dim[i] > kMostDim)
        say("has dimension {} of {} elements; it must be 1 to 2^32", i, map_.dim[i]);
      if (i == 0) continue;
      const std::uint64_t stride = map_.stride_bytes[i];
      if (stride % kStrideUnit != 0 || stride == 0 || stride >= kMostStride)
        say("has dimension {} every {} bytes; strides are multiples of 16 below 2^40", i, stride);
    }
  }

  void check_box() {
    for (std::size_t i = 0; i < rank(); ++i) {
      if (map_.box[i] < 1 || map_.box[i] > kMostBox)
        say("has a box of {} elements along dimension {}; it must be 1 to 256", map_.box[i], i);
      if (map_.element_stride[i] < 1 || map_.element_stride[i] > kMostElementStride)
        say("has the element stride {} along dimension {}; it must be 1 to 8",
            map_.element_stride[i], i);
    }
    const std::uint64_t row = map_.box[0] * element_;
    if (map_.interleave == 0 && row % kStrideUnit != 0)
      say("has a box row of {} bytes; without interleave it must be a multiple of 16", row);
  }

  void check_modes() {
    if (map_.interleave < 0 || map_.interleave > 2)
      return say("has the unknown interleave {}", map_.interleave);
    if (map_.swizzle < 0 || map_.swizzle >= static_cast<int>(kSwizzleSpan.size()))
      return say("has the unknown swizzle {}", map_.swizzle);
    const std::uint64_t span = kSwizzleSpan[static_cast<std::size_t>(map_.swizzle)];
    const std::uint64_t row = map_.box[0] * element_;
    if (map_.interleave == 0 && span != 0 && row > span)
      say("has a box row of {} bytes; with a swizzle of {} bytes it may have at most {}", row, span,
          span);
    if (map_.interleave != 0 && map_.rank < 3) say("is interleaved, which needs 3 dimensions");
    if (map_.interleave == 2 && map_.swizzle != 1)
      say("is interleaved by 32 bytes, which needs the swizzle of 32 bytes");
    if (map_.l2_promotion < 0 || map_.l2_promotion > 3)
      say("has the unknown L2 promotion {}", map_.l2_promotion);
    if (map_.fill < 0 || map_.fill > 1 || (map_.fill == 1 && map_.data_type < kFirstReal))
      say("has the fill {}, which its data type does not have", map_.fill);
  }

  void check_extent(const std::vector<PlanBuffer>& buffers) {
    const BufferPlace& base = map_.base;
    if (base.buffer < 0 || static_cast<std::size_t>(base.buffer) >= buffers.size())
      return say("lies in no buffer of the plan");
    const PlanBuffer& buffer = buffers[static_cast<std::size_t>(base.buffer)];
    const std::int64_t unit = map_.interleave == 2 ? 32 : 16;
    if (base.offset_bytes < 0 || base.offset_bytes % unit != 0)
      say("begins {} bytes into {}; it must begin at a multiple of {}", base.offset_bytes,
          buffer.name, unit);
    // Sums of five products below 2^72: exact enough in 128 bits.
    auto end = static_cast<unsigned __int128>(map_.dim[0]) * element_ +
               static_cast<std::uint64_t>(base.offset_bytes);
    for (std::size_t i = 1; i < rank(); ++i)
      end += static_cast<unsigned __int128>(map_.dim[i] - 1) * map_.stride_bytes[i];
    if (end > static_cast<std::uint64_t>(buffer.bytes))
      say("reaches beyond the {} bytes of {}", buffer.bytes, buffer.name);
  }

  const PlanTensorMap& map_;
  std::uint64_t element_ = 0;
  std::vector<std::string> mistakes_;
};

}  // namespace

std::vector<std::string> find_tensor_map_mistakes(const PlanTensorMap& map,
                                                  const std::vector<PlanBuffer>& buffers) {
  return Checker(map).run(buffers);
}

}  // namespace kbeam
