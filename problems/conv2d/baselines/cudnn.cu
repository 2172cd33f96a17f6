// cuDNN's forward convolution in FP32 arithmetic, the fastest of its algorithms for the shape among
// those that sum products as they are. A baseline; nothing here is tuned.
// pointers: X, W, Y; numbers: batch, channels, height, width, filters, kernel height, kernel width,
// stride, padding.
#include <kbeam/candidate.h>

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("X");
  const auto w = args.input<float>("W");
  const auto y = args.output<float>("Y");
  plan.vendor_call("cudnn.conv2d", {x.place, w.place, y.place},
                   {x.dim(0), x.dim(1), x.dim(2), x.dim(3), w.dim(0), w.dim(2), w.dim(3),
                    args.axis("stride"), args.axis("padding")});
}
