#include "build/ptxas_report.h"

#include <gmock/gmock.h>

namespace kbeam {
namespace {

using testing::IsEmpty;

constexpr char kReport[] = R"(ptxas info    : 16 bytes gmem
ptxas info    : Compiling entry function '_Z6smooth' for 'sm_90a'
ptxas info    : Function properties for _Z6smooth
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 400 bytes smem
ptxas info    : Compile time = 1.176 ms
a.cu(3): warning #177-D: variable "registers" was declared but never referenced
ptxas info    : Compiling entry function '_ZN1a4fullEPf' for 'sm_90a'
ptxas info    : Function properties for _ZN1a4fullEPf
    1072 bytes stack frame, 1416 bytes spill stores, 1884 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 1200 bytes cumulative stack size
ptxas info    : Compile time = 38.172 ms
ptxas info    : Function properties for _ZN1a6helperEPf
    64 bytes stack frame, 8000 bytes spill stores, 8000 bytes spill loads
)";

TEST(PtxasReport, gives_each_kernel_its_own_numbers) {
  const auto kernels = read_ptxas_report(kReport);
  ASSERT_EQ(kernels.size(), 2u);
  const KernelResources& smooth = kernels.at("_Z6smooth");
  EXPECT_EQ(smooth.registers, 10);
  EXPECT_EQ(smooth.static_shared_bytes, 400);
  EXPECT_EQ(smooth.spill_bytes, 0);
  EXPECT_EQ(smooth.stack_bytes, 0);
  EXPECT_EQ(smooth.max_threads, 1024);
  const KernelResources& full = kernels.at("_ZN1a4fullEPf");
  EXPECT_EQ(full.registers, 255);
  EXPECT_EQ(full.static_shared_bytes, 0);
  EXPECT_EQ(full.spill_bytes, 1884);  // not those of the function that it calls
  EXPECT_EQ(full.stack_bytes, 1200);  // calls included
}

TEST(PtxasReport, several_architectures_leave_the_largest) {
  const auto kernels = read_ptxas_report(
      "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
      "ptxas info    : Used 40 registers, 512 bytes smem\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Used 32 registers, 1024 bytes smem\n");
  EXPECT_EQ(kernels.at("k").registers, 40);
  EXPECT_EQ(kernels.at("k").static_shared_bytes, 1024);
}

TEST(PtxasReport, odd_text_is_no_kernel) {
  EXPECT_THAT(read_ptxas_report(""), IsEmpty());
  EXPECT_THAT(read_ptxas_report("Used 40 registers\n0 bytes stack frame, 1 bytes spill stores\n"),
              IsEmpty());
  const auto kernels = read_ptxas_report(
      "Compiling entry function 'k' for\nUsed many registers, 99999999999999999999 bytes smem\n");
  EXPECT_EQ(kernels.at("k").registers, 0);
  EXPECT_EQ(kernels.at("k").static_shared_bytes, 0);
}

TEST(PtxasReport, launch_bounds_come_from_the_ptx) {
  std::map<std::string, KernelResources> kernels{{"free", {}}, {"bounded", {}}, {"fixed", {}}};
  read_launch_bounds(R"(.visible .entry free(
	.param .u64 free_param_0
)
{
.maxntid 32, 1, 1
}
.entry bounded(
	.param .u64 bounded_param_0
)
.maxntid 512, 1, 1
.minnctapersm 2
{
}
.entry fixed(
)
.blocksareclusters
.reqntid 8, 8, 2
{
}
.entry unknown()
.maxntid 64, 1, 1
{
)",
                     kernels);
  EXPECT_EQ(kernels.at("free").max_threads, 1024);
  EXPECT_EQ(kernels.at("bounded").max_threads, 512);
  EXPECT_EQ(kernels.at("fixed").max_threads, 128);
  EXPECT_EQ(kernels.size(), 3u);
}

}  // namespace
}  // namespace kbeam
