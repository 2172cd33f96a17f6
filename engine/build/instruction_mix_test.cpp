#include "build/instruction_mix.h"

#include <gmock/gmock.h>

namespace kbeam {
namespace {

using testing::IsEmpty;

std::int64_t count(const InstructionMix& mix, const std::string& group) {
  for (const InstructionGroup& one : mix.groups)
    if (one.name == group) return one.count;
  return 0;
}

constexpr char kSass[] = R"(
Fatbin elf code:
================
arch = sm_90a
	code for sm_90a
		Function : _Z5firstPf
	.headerflags	@"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                     /* 0x00000a00ff017b82 */
                                                                              /* 0x000fe20000000800 */
        /*0010*/                   LDG.E R0, desc[UR4][R2.64] ;               /* 0x0000000402007981 */
        /*0020*/              @!P0 FFMA.FTZ R5, R0, 4, R1 ;                   /* 0x4080000000057820 */
        /*0030*/                   SHFL.BFLY PT, R5, R4, 0x1, 0x1f ;          /* 0x4080000000057820 */
        /*0040*/              @P1  STS.128 [R2], R5 ;                         /* 0x0000000502007986 */
        /*0050*/                   LDS.U R2, [R2] ;                           /* 0x0000000502007986 */
        /*0060*/                   LDL R2, [R1] ;                             /* 0x0000000502007986 */
        /*0070*/                   HGMMA.64x64x16.F32 R24, gdesc[UR4], R24 ;  /* 0x0000000502007986 */
        /*0080*/                   UTMALDG.2D [UR8], [UR4] ;                  /* 0x0000000502007986 */
        /*0090*/                   BRA 0x20 ;                                 /* 0x0000000502007986 */
        /*00a0*/                   NOP;                                       /* 0x0000000000007918 */
        /*00b0*/                   EXIT ;                                     /* 0x000000000000794d */
        /*00c0*/                   BRA 0xc0;                                  /* 0xfffffffc00fc7947 */
        /*00d0*/                   NOP;                                       /* 0x0000000000007918 */
        /*00e0*/                   NOP;                                       /* 0x0000000000007918 */
		..........

		Function : second
        /*0000*/                   IMAD.WIDE R2, R5, 0x4, R2 ;                /* 0x00000a00ff017b82 */
        /*0010*/                   IMAD.MOV.U32 R2, RZ, RZ, R4 ;              /* 0x00000a00ff017b82 */
        /*0020*/                   HFMA2.MMA R3, -RZ, RZ, 0, 0 ;              /* 0x00000a00ff017b82 */
        /*0030*/                   HFMA2 R3, R4, R5, R6 ;                     /* 0x00000a00ff017b82 */
        /*0040*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;              /* 0x00000a00ff017b82 */
)";

TEST(InstructionMix, counts_sass_by_kernel_and_unit) {
  const auto mixes = read_sass(kSass);
  ASSERT_EQ(mixes.size(), 2u);
  const InstructionMix& first = mixes.at("_Z5firstPf");
  EXPECT_EQ(first.total, 12);  // not the branch to itself and what fills up behind it
  EXPECT_EQ(count(first, "fp32"), 1);
  EXPECT_EQ(count(first, "load global"), 1);
  EXPECT_EQ(count(first, "shuffle"), 1);
  EXPECT_EQ(count(first, "store shared"), 1);
  EXPECT_EQ(count(first, "load shared"), 1);
  EXPECT_EQ(count(first, "load local"), 1);
  EXPECT_EQ(count(first, "wgmma"), 1);
  EXPECT_EQ(count(first, "tma"), 1);
  EXPECT_EQ(count(first, "branch"), 2);
  EXPECT_EQ(count(first, "nothing"), 1);
  EXPECT_EQ(count(mixes.at("second"), "integer"), 1);
  EXPECT_EQ(count(mixes.at("second"), "barrier"), 1);
  EXPECT_EQ(count(mixes.at("second"), "move"), 2);
  EXPECT_EQ(count(mixes.at("second"), "fp16"), 1);
  EXPECT_EQ(first.groups.front().name, "branch") << "the largest first";
  EXPECT_EQ(first.groups.front().opcodes.at("EXIT"), 1);
}

TEST(InstructionMix, odd_text_is_no_kernel) {
  EXPECT_THAT(read_sass(""), IsEmpty());
  EXPECT_THAT(read_sass("/*0010*/ FFMA R1 ;\n"), IsEmpty());
  EXPECT_EQ(read_sass("Function : k\n/*00\n  /**/\n/*0000*/\n").at("k").total, 0);
}

TEST(InstructionMix, counts_x86_by_width) {
  const InstructionMix mix = read_x86(
      "\n0000000000001120 <f>:\n"
      "    1120:\tendbr64 \n"
      "    1124:\tvmovups (%rdi,%rax,1),%zmm0\n"
      "    112b:\tvfmadd231ps 0x40(%rsi),%zmm0,%zmm1\n"
      "    1132:\tvfnmadd213ps %ymm2,%ymm0,%ymm1\n"
      "    1136:\tvmulss %xmm1,%xmm0,%xmm0\n"
      "    113a:\tvsqrtss %xmm1,%xmm0,%xmm0\n"
      "    113e:\tvgatherdps (%rax,%ymm1,4),%ymm0{%k1}\n"
      "    1142:\tadd    $0x40,%rax\n"
      "    1146:\tjne    1124 <f+0x4>\n"
      "    1148:\tret    \n"
      "    1149:\tnopw   0x0(%rax,%rax,1)\n");
  EXPECT_EQ(mix.total, 9);
  EXPECT_EQ(count(mix, "512 bit fma"), 1);
  EXPECT_EQ(count(mix, "256 bit fma"), 1);
  EXPECT_EQ(count(mix, "512 bit memory"), 1);
  EXPECT_EQ(count(mix, "one of 128 arithmetic"), 1);
  EXPECT_EQ(count(mix, "one of 128 divide"), 1);
  EXPECT_EQ(count(mix, "256 bit gather"), 1);
  EXPECT_EQ(count(mix, "scalar"), 1);
  EXPECT_EQ(count(mix, "branch"), 2);
}

}  // namespace
}  // namespace kbeam
