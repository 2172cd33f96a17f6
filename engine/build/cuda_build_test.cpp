// Builds of small .cu files with the toolkit of this machine. Runs no kernel.
#include "build/cuda_build.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "build/compiler.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kContract[] = KBEAM_SOURCE_DIR "/contract/include";

class CudaBuildTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto made = make_temporary_folder(testing::TempDir(), "kbeam_cuda_build_test_");
    ASSERT_TRUE(made.ok());
    folder() = *made;
    const fs::path preludes = KBEAM_BINARY_DIR "/tests/preludes/g++";
    fs::create_directories(preludes);
    fs::create_directory_symlink(preludes, *made / "preludes");
    compiler() = make_compiler({});
  }
  static void TearDownTestSuite() {
    compiler().reset();
    fs::remove_all(folder());
  }
  static fs::path& folder() {
    static fs::path folder;
    return folder;
  }
  static std::unique_ptr<Compiler>& compiler() {
    static std::unique_ptr<Compiler> compiler;
    return compiler;
  }
  static std::unique_ptr<Compiler> make_compiler(Compiler::Options options) {
    options.contract_include = kContract;
    options.cache = folder();
    auto made = Compiler::make(options);
    EXPECT_TRUE(made.ok()) << made.error().text();
    return made.ok() ? std::move(*made) : nullptr;
  }
  static Artifact build(const BuildRequest& request) {
    auto artifact = compiler()->build(request);
    EXPECT_TRUE(artifact.ok()) << artifact.error().text();
    return artifact.ok() ? *artifact : Artifact{};
  }
  static Artifact build(const std::string& source) {
    return build(BuildRequest{.source = source, .source_name = "mine.cu"});
  }
};

// `code` stands before the plan; `tag` makes the source unlike any other test's.
std::string candidate(const std::string& tag, const std::string& code = "",
                      const std::string& in_plan = "") {
  return "#include <kbeam/candidate.h>\n// " + tag + "\n" + code +
         "\nKBEAM_KNOB(int, kFactor, 3, 3, 5);\n"
         "namespace {\n"
         "template <int factor> __global__ void __launch_bounds__(128)\n"
         "scale(const float* x, float* y, long n) {\n"
         "  __shared__ float part[128];\n"
         "  const long i = blockIdx.x * 128L + threadIdx.x;\n"
         "  part[threadIdx.x] = i < n ? x[i] : 0;\n"
         "  __syncthreads();\n"
         "  if (i < n) y[i] = part[threadIdx.x ^ 1] * factor;\n"
         "} }\n"
         "KBEAM_PLAN(plan, args) {\n"
         "  const auto x = args.input<float>(\"x\");\n" +
         in_plan +
         "  plan.launch(scale<kFactor>, {.grid = (x.dim(0) + 127) / 128, .block = 128}, x,\n"
         "              args.output<float>(\"y\"), static_cast<long>(x.dim(0)));\n"
         "}\n";
}

TEST_F(CudaBuildTest, builds_once_finds_it_again_and_knows_its_kernels) {
  const Artifact first = build(candidate("once"));
  ASSERT_EQ(first.verdict, Verdict::accepted) << first.reason << first.log;
  EXPECT_FALSE(first.from_cache);
  EXPECT_TRUE(fs::is_regular_file(first.module));
  ASSERT_EQ(first.kernels.size(), 1u);
  const auto& [name, kernel] = *first.kernels.begin();
  EXPECT_THAT(name, HasSubstr("scale"));
  EXPECT_GT(kernel.registers, 4);
  EXPECT_EQ(kernel.static_shared_bytes, 512);
  EXPECT_EQ(kernel.max_threads, 128);
  EXPECT_EQ(kernel.spill_bytes, 0);
  EXPECT_THAT(first.log, Not(HasSubstr("ptxas info")));

  const Artifact second =
      build(BuildRequest{.source = candidate("once"), .source_name = "other_name.cu"});
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(second.module, first.module);
  EXPECT_EQ(second.kernels.at(name).registers, kernel.registers);
  int files = 0;
  for (const auto& entry : fs::directory_iterator(first.module.parent_path()))
    files += entry.exists() ? 1 : 0;
  EXPECT_EQ(files, 2) << "module.so and artifact.json, nothing that nvcc left";
}

// In two folders, so that nothing comes from a cache: equal sources are equal modules, byte by
// byte.
TEST_F(CudaBuildTest, builds_are_reproducible_and_comments_do_not_matter) {
  const Artifact plain = build(candidate("same"));
  const Artifact commented = build(candidate("the same with another comment"));
  ASSERT_EQ(plain.verdict, Verdict::accepted) << plain.log;
  EXPECT_NE(plain.key, commented.key);
  EXPECT_EQ(plain.object_hash, commented.object_hash);
  EXPECT_EQ(*read_file(plain.module), *read_file(commented.module));
  EXPECT_EQ(plain.kernels.begin()->first, commented.kernels.begin()->first);
}

TEST_F(CudaBuildTest, knobs_reach_device_code) {
  BuildRequest request{.source = candidate("knobs"), .source_name = "mine.cu"};
  const Artifact plain = build(request);
  request.knobs = {{"kFactor", "5"}};
  const Artifact five = build(request);
  ASSERT_EQ(five.verdict, Verdict::accepted) << five.log;
  EXPECT_NE(five.key, plain.key);
  EXPECT_NE(five.object_hash, plain.object_hash);
  EXPECT_THAT(five.kernels.begin()->first, HasSubstr("ILi5E"));
}

TEST_F(CudaBuildTest, exports_the_plan_and_nothing_else) {
  const Artifact artifact =
      build(candidate("exports", "#include <algorithm>\n#include <vector>\n",
                      "  std::vector<int> order(static_cast<std::size_t>(x.dim(0)));\n"
                      "  std::sort(order.begin(), order.end());\n  plan.table(order);\n"));
  ASSERT_EQ(artifact.verdict, Verdict::accepted) << artifact.reason << artifact.log;
  const std::string module = *read_file(artifact.module);
  EXPECT_THAT(module, HasSubstr("kbeam_candidate_plan"));
  EXPECT_THAT(module, Not(HasSubstr("_M_data_ptr")));  // of vector: hidden, stripped
  EXPECT_THAT(module, Not(HasSubstr("tmpxft")));
}

TEST_F(CudaBuildTest, admits_what_honest_device_code_uses) {
  const Artifact artifact = build(candidate(
      "honest",
      "#include <cooperative_groups.h>\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n"
      "#include <cuda_fp8.h>\n#include <mma.h>\n#include <cuda/barrier>\n#include <cuda/pipeline>\n"
      "#include <cuda/ptx>\n#include <cub/block/block_reduce.cuh>\n"
      "#define DEVICE static __device__ __forceinline__\n"
      "DEVICE unsigned lane() { unsigned r; asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(r)); return r; "
      "}\n"
      "namespace { __device__ float state[4]; __constant__ float table[8];\n"
      "struct Tile { float v[4]; __device__ float sum() const { return v[0] + v[3]; } };\n"
      "int blocks(long n) { return static_cast<int>(n / 4); }\n"
      "__global__ void uses(float* y) {\n"
      "  namespace cg = cooperative_groups;\n"
      "  typedef cub::BlockReduce<float, 128> Reduce;\n"
      "  __shared__ typename Reduce::TempStorage storage;\n"
      "  Tile tile{{table[0], 1, 2, state[lane() % 4]}};\n"
      "  auto warp = cg::tiled_partition<32>(cg::this_thread_block());\n"
      "  const float total = Reduce(storage).Sum(__half2float(__float2half(tile.sum())));\n"
      "  if (warp.thread_rank() == 0) y[0] = total + __bfloat162float(__float2bfloat16(total));\n"
      "  state[1] = total;\n"
      "} }\n",
      "  plan.launch(uses, {.grid = blocks(x.dim(0)), .block = 128}, "
      "args.output<float>(\"y\"));\n"));
  EXPECT_EQ(artifact.verdict, Verdict::accepted) << artifact.reason << artifact.log;
  EXPECT_EQ(artifact.kernels.size(), 2u);
}

TEST_F(CudaBuildTest, the_log_names_the_users_file_and_line) {
  const Artifact artifact = build(candidate("broken", "__device__ no_such_type x;"));
  EXPECT_EQ(artifact.verdict, Verdict::build_failed);
  EXPECT_THAT(artifact.reason, HasSubstr("mine.cu(3): "));
  EXPECT_THAT(artifact.reason, HasSubstr("no_such_type"));
  EXPECT_THAT(artifact.log, HasSubstr("mine.cu(3)"));
}

TEST_F(CudaBuildTest, names_what_the_assembler_refuses) {
  const Artifact artifact = build(
      candidate("ptx",
                "namespace { __device__ void odd() { asm volatile(\"no_such_instruction;\"); } }\n"
                "namespace { __global__ void runs() { odd(); } }\n",
                "  plan.launch(runs, {.grid = 1, .block = 1});\n"));
  EXPECT_EQ(artifact.verdict, Verdict::build_failed);
  EXPECT_THAT(artifact.reason, HasSubstr("no_such_instruction"));
}

struct Refused {
  const char* code;
  const char* in_plan;
  Verdict verdict;
  const char* reason;
};
const Refused kRefused[] = {
    {"__global__ void outer(float* y) { y[0] = 1; }",
     "  plan.launch(outer, {.grid = 1, .block = 1}, args.output<float>(\"y\"));\n",
     Verdict::refused_object, "outer(float*) has external linkage"},
    {"#include <cuda_runtime.h>", "  void* p = nullptr;\n  cudaMalloc(&p, 16);\n",
     Verdict::refused_object, "host code calls cudaMalloc"},
    {"", "  cuInit(0);\n", Verdict::refused_object, "host code calls cuInit"},
    {"namespace { __managed__ int counter; }\n", "  counter = 1;\n", Verdict::refused_object,
     "host code calls __cudaRegisterManagedVar"},
    {"namespace { __attribute__((constructor)) void early() { asm volatile(\"\"); } }", "",
     Verdict::refused_object, "mine.cu:3: assembly in host code"},
    {"namespace { int count(); __attribute__((constructor)) void early() { count(); }\n"
     "int number; int count() { return ++number; } }",
     "", Verdict::refused_object, "code runs when the object is loaded"},
    {"#include <cstdlib>\n#include <string>\nnamespace { int noise = std::rand(); }",
     "  plan.note(\"n\", "
     "std::to_string(noise));\n",
     Verdict::refused_object, "code runs when the object is loaded"},
    {"#define STAMP __asm__ volatile(\"rdtsc\" : \"=a\"(low) : : \"rdx\")",
     "  int low;\n  STAMP;\n", Verdict::refused_object, "mine.cu:17: assembly in host code"},
    {"asm(\".globl foo\");", "", Verdict::refused_object, "mine.cu:3: assembly in host code"},
    {"#include <cuda_profiler_api.h>", "", Verdict::refused_object, "is not allowed"},
    {"#include <cub/device/device_reduce.cuh>", "", Verdict::refused_object, "is not allowed"},
    {"#include <thrust/sort.h>", "", Verdict::refused_object, "is not allowed"},
    {"#include \"other.cuh\"", "", Verdict::refused_object, "is not allowed"},
    {"#line 7 \"/usr/include/math.h\"\n", "", Verdict::refused_object, "#line is not allowed"},
    {"#include <string>\nint elsewhere(long n);",
     "  plan.note(\"n\", std::to_string(elsewhere(x.dim(0))));\n", Verdict::build_failed,
     "undefined reference to 'elsewhere(long)'"},
    {"extern __device__ float elsewhere(float);\nnamespace { __global__ void calls(float* y) "
     "{ y[0] = elsewhere(y[0]); } }",
     "  plan.launch(calls, {.grid = 1, .block = 1}, args.output<float>(\"y\"));\n",
     Verdict::build_failed, "elsewhere"},
};

TEST_F(CudaBuildTest, refuses_with_a_typed_reason) {
  for (const Refused& refused : kRefused) {
    const Artifact artifact = build(candidate("refused", refused.code, refused.in_plan));
    EXPECT_EQ(artifact.verdict, refused.verdict) << refused.code << refused.in_plan << artifact.log;
    EXPECT_THAT(artifact.reason, HasSubstr(refused.reason)) << refused.code << refused.in_plan;
  }
}

TEST_F(CudaBuildTest, limits_end_a_build_that_never_ends) {
  const auto small = make_compiler({.cuda_limits = {.timeout_s = 1}});
  const auto artifact = small->build(
      {.source = candidate("bomb",
                           "template <unsigned long n, int k> struct Bomb {\n"
                           "  static constexpr unsigned long value = Bomb<n * 2, k - 1>::value + "
                           "Bomb<n * 2 + 1, k - 1>::value; };\n"
                           "template <unsigned long n> struct Bomb<n, 0> { static constexpr "
                           "unsigned long value = n; };\n"
                           "static_assert(Bomb<1, 40>::value != 0);"),
       .source_name = "mine.cu"});
  ASSERT_TRUE(artifact.ok()) << artifact.error().text();
  EXPECT_EQ(artifact->verdict, Verdict::build_timed_out) << artifact->log;
}

TEST_F(CudaBuildTest, architectures_are_part_of_the_build) {
  const auto both = make_compiler({.cuda_architectures = {"80", "90a"}});
  const auto artifact = both->build({.source = candidate("once"), .source_name = "mine.cu"});
  ASSERT_TRUE(artifact.ok()) << artifact.error().text();
  EXPECT_EQ(artifact->verdict, Verdict::accepted) << artifact->log;
  EXPECT_FALSE(artifact->from_cache);
  EXPECT_EQ(artifact->kernels.begin()->second.max_threads, 128);

  const auto odd = make_compiler({.cuda_architectures = {"12x"}});
  const auto none = odd->build({.source = candidate("once"), .source_name = "mine.cu"});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::bad_input);
  EXPECT_THAT(none.error().text(), HasSubstr("GPU architecture 12x"));
  EXPECT_EQ(cuda_architecture(80), "80");
  EXPECT_EQ(cuda_architecture(90), "90a");
  EXPECT_EQ(cuda_architecture(100), "100a");
}

TEST_F(CudaBuildTest, problem_code_exports_its_generator_and_checker) {
  const fs::path home = folder() / "problem";
  fs::create_directories(home);
  std::ofstream(home / "limit.cuh") << "constexpr double kLimit = 3;\n";
  std::ofstream(home / "problem.cu")
      << "#include <kbeam/problem_cuda.h>\n#include \"limit.cuh\"\n"
         "static __global__ void fill(float* x, const kbeam::Control* c) { x[0] = c->seed; }\n"
         "static __global__ void judge(const float* y, kbeam::FigureCell* cell) {\n"
         "  kbeam::raise_figure(cell, y[0] - kLimit, 0); }\n"
         "KBEAM_GENERATE(plan, args) { plan.launch(fill, {.grid = 1, .block = 1}, "
         "args.output<float>(\"x\"), plan.control(args)); }\n"
         "KBEAM_CHECK(plan, args) { plan.launch(judge, {.grid = 1, .block = 1}, "
         "args.input<float>(\"y\"), plan.figure({.name = \"error\", .unit = \"eps\", .limit = "
         "3})); }\n";
  const auto first = compiler()->build_problem(home / "problem.cu");
  ASSERT_TRUE(first.ok()) << first.error().text();
  const std::string module = *read_file(*first);
  EXPECT_THAT(module, HasSubstr("kbeam_generate_plan"));
  EXPECT_THAT(module, HasSubstr("kbeam_check_plan"));
  EXPECT_EQ(*compiler()->build_problem(home / "problem.cu"), *first);
  std::ofstream(home / "limit.cuh") << "constexpr double kLimit = 4;\n";
  const auto changed = compiler()->build_problem(home / "problem.cu");
  ASSERT_TRUE(changed.ok());
  EXPECT_NE(*changed, *first);
  std::ofstream(home / "problem.cu") << "int x = y;\n";
  const auto broken = compiler()->build_problem(home / "problem.cu");
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(broken.error().text(), HasSubstr("problem.cu(1): "));
}

TEST_F(CudaBuildTest, says_what_is_missing_without_nvcc) {
  const auto without = make_compiler({.cuda_command = "no-such-nvcc"});
  const auto artifact = without->build({.source = candidate("none"), .source_name = "mine.cu"});
  ASSERT_FALSE(artifact.ok());
  EXPECT_EQ(artifact.error().code, ErrorCode::unavailable);
  EXPECT_THAT(artifact.error().text(), HasSubstr("install the CUDA toolkit"));
  EXPECT_FALSE(without->cuda_version().ok());
  const auto version = compiler()->cuda_version();
  ASSERT_TRUE(version.ok()) << version.error().text();
  EXPECT_THAT(*version, HasSubstr("nvcc release "));
}

}  // namespace
}  // namespace kbeam
