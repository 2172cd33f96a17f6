// The device code of the seat's own kernels and of the self test, inside the binary.
#include <string_view>

#include "target/cuda/seat_kernels.h"

// KBEAM_SEAT_IMAGE and KBEAM_SELF_TEST_IMAGE are the files that nvcc wrote.
#define KBEAM_EMBED(symbol, file)           \
  asm(".section .rodata\n"                  \
      ".balign 64\n"                        \
      ".global " #symbol "_begin\n" #symbol \
      "_begin:\n"                           \
      ".incbin \"" file                     \
      "\"\n"                                \
      ".global " #symbol "_end\n" #symbol   \
      "_end:\n"                             \
      ".byte 0\n"                           \
      ".previous\n");                       \
  extern "C" const char symbol##_begin[];   \
  extern "C" const char symbol##_end[]

KBEAM_EMBED(kbeam_seat_image, KBEAM_SEAT_IMAGE);
KBEAM_EMBED(kbeam_self_test_image, KBEAM_SELF_TEST_IMAGE);

namespace kbeam {

std::string_view seat_kernel_image() {
  return {kbeam_seat_image_begin,
          static_cast<std::size_t>(kbeam_seat_image_end - kbeam_seat_image_begin)};
}
std::string_view self_test_image() {
  return {kbeam_self_test_image_begin,
          static_cast<std::size_t>(kbeam_self_test_image_end - kbeam_self_test_image_begin)};
}

}  // namespace kbeam
