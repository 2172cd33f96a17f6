// The sizes of one convolution and where its elements lie; all tensors are dense.
#pragma once

#include <cstdint>
#include <string>

namespace conv2d {

struct Layer {
  std::int64_t batch, channels, height, width, filters, kernel_height, kernel_width, stride,
      padding, out_height, out_width;

  std::int64_t taps() const { return channels * kernel_height * kernel_width; }
  std::int64_t image() const { return channels * height * width; }
  std::int64_t out_image() const { return out_height * out_width; }
  std::int64_t inputs() const { return batch * image(); }
  std::int64_t weights() const { return filters * taps(); }

  std::string place(std::int64_t b, std::int64_t f, std::int64_t pixel) const {
    return "image " + std::to_string(b) + ", filter " + std::to_string(f) + ", pixel " +
           std::to_string(pixel / out_width) + " " + std::to_string(pixel % out_width);
  }
};

}  // namespace conv2d
