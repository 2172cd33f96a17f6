#include "build/compiler.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <thread>

#include "base/files.h"
#include "base/hash.h"
#include "build/compiler_run.h"
#include "build/compiler_sandbox.h"
#include "build/prelude.h"
#include "build/toolchain.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kContract[] = KBEAM_SOURCE_DIR "/contract/include";

// Each test program has a cache of its own, but for the preludes, which are slow to make and lie
// beside the tests.
class CompilerTest : public testing::TestWithParam<const char*> {
 protected:
  static fs::path& shared_cache() {
    static fs::path folder;
    return folder;
  }
  static void SetUpTestSuite() {
    auto made = make_temporary_folder(testing::TempDir(), "kbeam_compiler_test_");
    ASSERT_TRUE(made.ok());
    shared_cache() = *made;
    const fs::path preludes = KBEAM_BINARY_DIR "/tests/preludes";
    for (const char* command : {"g++", "clang++"}) {
      fs::create_directories(preludes / command);
      fs::create_directories(*made / command);
      fs::create_directory_symlink(preludes / command, *made / command / "preludes");
    }
  }
  static void TearDownTestSuite() { fs::remove_all(shared_cache()); }

  void SetUp() override {
    if (!find_toolchain(GetParam(), "native").ok())
      GTEST_SKIP() << GetParam() << " is not installed";
    make_compiler({});
  }
  void make_compiler(BuildLimits limits) {
    auto made = Compiler::make({.contract_include = kContract,
                                .cache = shared_cache() / GetParam(),
                                .command = GetParam(),
                                .limits = limits});
    ASSERT_TRUE(made.ok()) << made.error().text();
    compiler_ = std::move(*made);
  }
  Artifact build(const BuildRequest& request) {
    auto artifact = compiler_->build(request);
    EXPECT_TRUE(artifact.ok()) << artifact.error().text();
    return artifact.ok() ? *artifact : Artifact{};
  }
  Artifact build(const std::string& source) {
    return build(BuildRequest{.source = source, .source_name = "mine.cpp"});
  }

  std::vector<fs::path> files_in_cache() const {
    std::vector<fs::path> files;
    std::error_code none_yet;
    for (const fs::directory_entry& entry :
         fs::recursive_directory_iterator(shared_cache() / GetParam() / "builds", none_yet))
      if (entry.is_regular_file()) files.push_back(entry.path());
    return files;
  }

  std::unique_ptr<Compiler> compiler_;
};

INSTANTIATE_TEST_SUITE_P(With, CompilerTest, testing::Values("g++", "clang++"),
                         [](const auto& tested) {
                           return tested.param[0] == 'g' ? "gcc" : "clang";
                         });

// `code` stands between the includes and the plan; `tag` makes the source unlike any other test's.
std::string candidate(const std::string& tag, const std::string& code = "") {
  return "#include <kbeam/candidate.h>\n// " + tag + "\n" + code +
         "\nKBEAM_KNOB(int, kFactor, 3, 3, 5);\n"
         "namespace { void scale(const float* x, float* y, long n) {\n"
         "  for (long i = 0; i < n; ++i) y[i] = x[i] * kFactor;\n"
         "} }\n"
         "KBEAM_PLAN(plan, args) {\n"
         "  const auto x = args.input<float>(\"x\");\n"
         "  plan.call(scale, x, args.output<float>(\"y\"), static_cast<long>(x.dim(0)));\n"
         "}\n";
}

TEST_P(CompilerTest, builds_once_and_finds_the_result_again) {
  const Artifact first = build(candidate("once"));
  ASSERT_EQ(first.verdict, Verdict::accepted) << first.reason << first.log;
  EXPECT_FALSE(first.from_cache);
  EXPECT_TRUE(fs::is_regular_file(first.module));
  EXPECT_EQ(first.key.size(), 64u);
  EXPECT_EQ(first.object_hash.size(), 64u);
  EXPECT_GT(first.build_s, 0);
  const Artifact second =
      build(BuildRequest{.source = candidate("once"), .source_name = "other_name.cpp"});
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(second.module, first.module);
  EXPECT_EQ(second.object_hash, first.object_hash);
}

TEST_P(CompilerTest, a_knob_changes_key_and_code_and_a_comment_only_the_key) {
  BuildRequest request{.source = candidate("knobs"), .source_name = "mine.cpp"};
  const Artifact plain = build(request);
  request.knobs = {{"kFactor", "5"}};
  const Artifact five = build(request);
  ASSERT_EQ(five.verdict, Verdict::accepted) << five.log;
  EXPECT_NE(five.key, plain.key);
  EXPECT_NE(five.object_hash, plain.object_hash);
  request.knobs = {{"kFactor", "3"}};
  EXPECT_EQ(build(request).object_hash, plain.object_hash);
  const Artifact commented = build(candidate("knobs with another comment"));
  EXPECT_NE(commented.key, plain.key);
  EXPECT_EQ(commented.object_hash, plain.object_hash);
}

TEST_P(CompilerTest, different_imports_are_different_code) {
  const auto with = [&](const std::string& function) {
    return build(candidate(
        "imports",
        "namespace { [[gnu::used]] float apply(float y) { return std::" + function + "(y); } }"));
  };
  const Artifact sine = with("sin");
  ASSERT_EQ(sine.verdict, Verdict::accepted) << sine.reason << sine.log;
  EXPECT_NE(sine.object_hash, with("cos").object_hash);
}

TEST_P(CompilerTest, the_log_names_the_users_file_and_line_also_from_the_cache) {
  const std::string source = candidate("broken", "int x = no_such_name;");
  const Artifact first = build(source);
  EXPECT_EQ(first.verdict, Verdict::build_failed);
  EXPECT_THAT(first.reason, HasSubstr("mine.cpp:3:9: "));
  EXPECT_THAT(first.reason, HasSubstr("no_such_name"));
  EXPECT_THAT(first.log, HasSubstr("mine.cpp:3"));
  const Artifact second = build(BuildRequest{.source = source, .source_name = "yours.cpp"});
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(second.verdict, Verdict::build_failed);
  EXPECT_THAT(second.reason, HasSubstr("yours.cpp:3:9: "));
}

TEST_P(CompilerTest, a_broken_requirement_shows_its_sentence) {
  BuildRequest request{.source = candidate("require",
                                           "KBEAM_KNOB(int, kWide, 8, 8, 16);\n"
                                           "KBEAM_REQUIRE(kWide < 16, \"a row fits a register\");"),
                       .source_name = "mine.cpp",
                       .knobs = {{"kWide", "16"}}};
  const Artifact artifact = build(request);
  EXPECT_EQ(artifact.verdict, Verdict::build_failed);
  EXPECT_THAT(artifact.reason, HasSubstr("a row fits a register"));
}

TEST_P(CompilerTest, knobs_carry_no_code_and_must_exist) {
  BuildRequest request{.source = candidate("injection"), .source_name = "mine.cpp"};
  request.knobs = {{"kFactor", "3; int evil = 1"}};
  EXPECT_EQ(build(request).verdict, Verdict::build_failed);
  EXPECT_THAT(build(request).reason, HasSubstr("is no number, name, true or false"));
  request.knobs = {{"kFacter", "3"}};
  EXPECT_THAT(build(request).reason, HasSubstr("did you mean kFactor?"));
  request.knobs = {{"kFactor=1 -include /etc/passwd", "3"}};
  EXPECT_EQ(build(request).verdict, Verdict::build_failed);
}

TEST_P(CompilerTest, refuses_a_source_that_reaches_outside) {
  const Artifact artifact = build(candidate("include", "#include \"/etc/passwd\""));
  EXPECT_EQ(artifact.verdict, Verdict::refused_object);
  EXPECT_THAT(artifact.reason, HasSubstr("mine.cpp:3: include of \"/etc/passwd\" is not allowed"));
  EXPECT_THAT(artifact.reason, EndsWith("[header]"));
}

struct RefusedObject {
  const char* code;
  const char* reason;
  const char* rule;
};
const RefusedObject kRefusedObjects[] = {
    {"int helper(int x) { return x + 1; }", "function helper(int) has external linkage",
     "[external_linkage]"},
    {"extern \"C\" int memcmp(const void*, const void*, unsigned long) noexcept { return 0; }",
     "memcmp has external linkage", "[external_linkage]"},
    {"float table[4];", "variable table has external linkage", "[external_linkage]"},
    {"inline int shared(int x) { static int n = x; return n++; } namespace { [[gnu::used]] int "
     "u(int x) { return shared(x); } }",
     "has external linkage", "[external_linkage]"},
    {"namespace std { int bad_idea(int x) { return x; } }",
     "std::bad_idea(int) has external linkage", "[external_linkage]"},
    {"namespace { [[gnu::constructor]] void early() { asm volatile(\"\"); } }",
     "code runs when the object is loaded", "[constructor]"},
    {"namespace { [[gnu::destructor]] void late() { asm volatile(\"\"); } }",
     "code runs when the object is loaded", "[constructor]"},
    {"#include <cstdlib>\nnamespace { int noise = std::rand(); [[gnu::used]] int* use() { return "
     "&noise; } }",
     "code runs when the object is loaded", "[constructor]"},
    {"asm(\".section .init,\\\"ax\\\"\\n nop\\n .text\");", "code runs when the object is loaded",
     "[constructor]"},
    {"asm(\".text\\n.type chosen,@gnu_indirect_function\\nchosen: ret\\n\");", "chosen", "[ifunc]"},
    {"asm(\".section .note.GNU-stack,\\\"x\\\",@progbits\\n .text\");", "executable stack",
     "[executable_stack]"},
};

TEST_P(CompilerTest, refuses_objects_with_a_typed_reason) {
  for (const RefusedObject& refused : kRefusedObjects) {
    const Artifact artifact = build(candidate("object", refused.code));
    EXPECT_EQ(artifact.verdict, Verdict::refused_object) << refused.code << "\n" << artifact.log;
    EXPECT_THAT(artifact.reason, HasSubstr(refused.reason)) << refused.code;
    EXPECT_THAT(artifact.reason, EndsWith(refused.rule)) << refused.code;
  }
}

TEST_P(CompilerTest, admits_what_the_standard_library_leaves_behind) {
  const Artifact artifact = build(
      candidate("library",
                "#include <algorithm>\n#include <vector>\n#include <cstring>\nnamespace {\n"
                "struct Item { float key; int at; };\n"
                "[[gnu::used]] void order(std::vector<float>& v, std::vector<Item>& w) {\n"
                "  std::sort(v.begin(), v.end()); v.push_back(1);\n"
                "  std::sort(w.begin(), w.end(), [](const Item& a, const Item& b) { return a.key < "
                "b.key; });\n"
                "  w.resize(7); std::memset(v.data(), 0, 4);\n"
                "}\nconstexpr int kTable[3] = {1, 2, 3};\n[[gnu::used]] const int* table() { "
                "return kTable; }\n"
                "thread_local float slot = 0; [[gnu::used]] float* get() { return &slot; }\n}\n"));
  EXPECT_EQ(artifact.verdict, Verdict::accepted) << artifact.reason << artifact.log;
}

TEST_P(CompilerTest, admits_local_statics_of_standard_functions) {
  const Artifact artifact = build(candidate(
      "to_string",
      "#include <string>\nnamespace { [[gnu::used]] std::string name(unsigned long n) { return "
      "\"n\" + std::to_string(n); } }"));
  EXPECT_EQ(artifact.verdict, Verdict::accepted) << artifact.reason;
}

TEST_P(CompilerTest, a_file_without_a_plan_is_told_so) {
  const Artifact artifact = build("#include <kbeam/candidate.h>\n");
  EXPECT_EQ(artifact.verdict, Verdict::refused_object);
  EXPECT_THAT(artifact.reason, HasSubstr("no KBEAM_PLAN"));
}

TEST_P(CompilerTest, an_undefined_function_is_a_failed_build) {
  const Artifact artifact = build(candidate(
      "undefined",
      "int elsewhere(int); namespace { [[gnu::used]] int use(int x) { return elsewhere(x); } }"));
  EXPECT_EQ(artifact.verdict, Verdict::build_failed);
  EXPECT_THAT(artifact.reason, HasSubstr("elsewhere"));
}

TEST_P(CompilerTest, a_template_bomb_times_out_and_is_not_cached) {
  make_compiler({.timeout_s = 1});
  const std::string bomb = candidate("bomb",
                                     "template <unsigned long n, int k> struct Bomb {\n"
                                     "  static constexpr unsigned long value = Bomb<n * 2, k - "
                                     "1>::value + Bomb<n * 2 + 1, k - 1>::value; };\n"
                                     "template <unsigned long n> struct Bomb<n, 0> { static "
                                     "constexpr unsigned long value = n; };\n"
                                     "static_assert(Bomb<1, 40>::value != 0);");
  const std::size_t files = files_in_cache().size();
  const Artifact artifact = build(bomb);
  EXPECT_EQ(artifact.verdict, Verdict::build_timed_out) << artifact.log;
  EXPECT_THAT(artifact.reason, HasSubstr("more than its 1 s"));
  EXPECT_FALSE(build(bomb).from_cache);
  EXPECT_EQ(files_in_cache().size(), files);
}

TEST_P(CompilerTest, memory_and_output_have_limits) {
  make_compiler({.memory_bytes = 200 << 20});
  const Artifact hungry = build(candidate(
      "hungry",
      "template <int n> struct Deep { static constexpr int value = Deep<n - 1>::value + 1; };\n"
      "template <> struct Deep<0> { static constexpr int value = 0; };\n"
      "constexpr int grow() { int sum = 0; for (int i = 0; i < 30000000; ++i) { int* p = new "
      "int[64]; sum += i; "
      "delete[] p; } return sum; }\nstatic_assert(grow() != 1);"));
  EXPECT_EQ(hungry.verdict, Verdict::build_failed);
  make_compiler({.output_bytes = 1 << 20});
  const Artifact large = build(candidate(
      "large",
      "namespace { float big[4000000] = {1}; [[gnu::used]] float* get() { return big; } }"));
  EXPECT_EQ(large.verdict, Verdict::build_failed);
  EXPECT_THAT(large.reason, HasSubstr("larger than 1 MiB"));
}

TEST_P(CompilerTest, a_damaged_entry_is_built_again) {
  const std::string source = candidate("damaged");
  const Artifact first = build(source);
  ASSERT_EQ(first.verdict, Verdict::accepted);
  std::fstream(first.module, std::ios::in | std::ios::out | std::ios::binary).seekp(2000).put('!');
  EXPECT_FALSE(build(source).from_cache);
  EXPECT_TRUE(build(source).from_cache);
  fs::remove(first.module);
  EXPECT_FALSE(build(source).from_cache);
  ASSERT_TRUE(write_file(first.module.parent_path() / "artifact.json", "{").ok());
  const Artifact last = build(source);
  EXPECT_FALSE(last.from_cache);
  EXPECT_EQ(last.object_hash, first.object_hash);
}

TEST_P(CompilerTest, builds_of_one_source_at_once_end_with_one_entry) {
  const std::string source = candidate("race");
  Artifact results[2];
  {
    std::jthread one([&] { results[0] = build(source); });
    std::jthread two([&] { results[1] = build(source); });
  }
  EXPECT_EQ(results[0].verdict, Verdict::accepted);
  EXPECT_EQ(results[0].module, results[1].module);
  for (const fs::directory_entry& entry :
       fs::directory_iterator(shared_cache() / GetParam() / "builds"))
    EXPECT_THAT(entry.path().filename().string(), testing::Not(testing::StartsWith("draft-")));
  EXPECT_TRUE(build(source).from_cache);
}

TEST_P(CompilerTest, flags_of_the_problem_reach_the_compiler) {
  BuildRequest request{.source = candidate("flags", "static_assert(PROBLEM_SAYS == 7);"),
                       .source_name = "mine.cpp",
                       .flags = {"-DPROBLEM_SAYS=7"}};
  EXPECT_EQ(build(request).verdict, Verdict::accepted);
  request.flags = {"-fno-such-flag-at-all"};
  const auto artifact = compiler_->build(request);
  ASSERT_FALSE(artifact.ok());
  EXPECT_THAT(artifact.error().text(), HasSubstr("check [build] flags"));
}

TEST_P(CompilerTest, a_baseline_may_link_what_it_names_and_a_candidate_nothing) {
  const std::string source =
      "#include <cblas.h>\n" + candidate("baseline",
                                         "namespace { [[gnu::used]] float dot(int n, const float* "
                                         "x) { return cblas_sdot(n, x, 1, x, 1); } }");
  if (!fs::exists("/usr/include/x86_64-linux-gnu/cblas.h")) GTEST_SKIP() << "no OpenBLAS headers";
  BuildRequest request{.source = source, .source_name = "mine.cpp", .link = {"openblas"}};
  const Artifact linked = build(request);
  EXPECT_EQ(linked.verdict, Verdict::accepted) << linked.reason << linked.log;
  request.link = {};
  EXPECT_EQ(build(request).verdict, Verdict::refused_object);
}

TEST_P(CompilerTest, compiles_problem_code_and_reports_its_errors) {
  const fs::path folder = shared_cache() / (std::string("problem_") + GetParam());
  fs::create_directories(folder);
  ASSERT_TRUE(write_file(folder / "limits.h", "constexpr int kLimit = 3;\n").ok());
  ASSERT_TRUE(write_file(folder / "problem.cpp",
                         "#include <kbeam/problem.h>\n#include \"limits.h\"\n"
                         "extern \"C\" int limit() { return kLimit; }\n")
                  .ok());
  const auto first = compiler_->build_problem(folder / "problem.cpp");
  ASSERT_TRUE(first.ok()) << first.error().text();
  EXPECT_EQ(*compiler_->build_problem(folder / "problem.cpp"), *first);
  ASSERT_TRUE(write_file(folder / "limits.h", "constexpr int kLimit = 4;\n").ok());
  const auto changed = compiler_->build_problem(folder / "problem.cpp");
  ASSERT_TRUE(changed.ok());
  EXPECT_NE(*changed, *first);
  ASSERT_TRUE(write_file(folder / "problem.cpp", "int x = y;\n").ok());
  const auto broken = compiler_->build_problem(folder / "problem.cpp");
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(broken.error().text(), HasSubstr("problem.cpp:1:9: "));
}

// The cache of preludes outlives a change of the contract.
std::string hash_of_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Hasher hasher;
  for (const fs::path& file : files) hasher.field(*read_file(file));
  return hasher.hex();
}

TEST_P(CompilerTest, the_prelude_is_really_used) {
  const auto toolchain = find_toolchain(GetParam(), "native");
  ASSERT_TRUE(toolchain.ok());
  const CompilerSandbox sandbox = CompilerSandbox::detect({toolchain->prefix()});
  const std::vector<std::string> flags = {"-std=c++20", "-O1", "-I", kContract};
  const auto prelude = make_prelude({.toolchain = *toolchain,
                                     .sandbox = sandbox,
                                     .cache = BuildCache(shared_cache() / GetParam() / "preludes"),
                                     .contract_include = kContract,
                                     .contract_hash = hash_of_folder(kContract),
                                     .flags = flags});
  ASSERT_TRUE(prelude.ok()) << prelude.error().text();
  const auto draft = make_temporary_folder(shared_cache(), "use-");
  ASSERT_TRUE(draft.ok());
  ASSERT_TRUE(write_file(*draft / "a.cpp", candidate("prelude")).ok());
  CompilerRun run{.arguments = flags, .folder = *draft, .read = prelude->folders};
  run.read.emplace_back(kContract);
  run.arguments.insert(run.arguments.end(), prelude->flags.begin(), prelude->flags.end());
  for (const char* argument : {"-DKBEAM_SET_kFactor=~,5", "-H", "-c", "a.cpp"})
    run.arguments.emplace_back(argument);
  const auto outcome = run_compiler(*toolchain, sandbox, run);
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_EQ(outcome->exit_code, 0) << outcome->output;
  // A header that is opened is listed; those of the prelude are not, and GCC marks the prelude
  // itself as valid.
  EXPECT_THAT(outcome->output, testing::Not(HasSubstr("immintrin.h")));
  if (!toolchain->is_clang) {
    EXPECT_THAT(outcome->output, HasSubstr("! " + prelude->folders.front().string()));
  }
}

TEST_P(CompilerTest, the_compiler_sees_its_own_files_only) {
  const auto toolchain = find_toolchain(GetParam(), "native");
  ASSERT_TRUE(toolchain.ok());
  const CompilerSandbox sandbox = CompilerSandbox::detect({toolchain->prefix()});
  if (!sandbox.weaknesses().empty()) GTEST_SKIP() << sandbox.weaknesses().front();
  const auto inside = make_temporary_folder(shared_cache(), "inside-");
  const auto outside = make_temporary_folder(shared_cache(), "outside-");
  ASSERT_TRUE(inside.ok() && outside.ok());
  ASSERT_TRUE(write_file(*outside / "secret.h", "int leaked;\n").ok());
  ASSERT_TRUE(
      write_file(*inside / "a.cpp", "#include \"" + (*outside / "secret.h").string() + "\"\n")
          .ok());
  CompilerRun run{.arguments = {"-c", "a.cpp", "-o", "a.o"}, .folder = *inside};
  const auto reading = run_compiler(*toolchain, sandbox, run);
  ASSERT_TRUE(reading.ok());
  EXPECT_NE(reading->exit_code, 0);
  run.read = {*outside};
  const auto allowed = run_compiler(*toolchain, sandbox, run);
  ASSERT_TRUE(allowed.ok());
  EXPECT_EQ(allowed->exit_code, 0) << allowed->output;
  run.arguments.back() = (*outside / "a.o").string();
  const auto writing = run_compiler(*toolchain, sandbox, run);
  ASSERT_TRUE(writing.ok());
  EXPECT_NE(writing->exit_code, 0);
  EXPECT_FALSE(fs::exists(*outside / "a.o"));
}

TEST(Compiler, a_missing_compiler_is_an_error_with_advice) {
  const auto made = Compiler::make(
      {.contract_include = kContract, .cache = testing::TempDir(), .command = "no-such-g++"});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::unavailable);
  EXPECT_THAT(made.error().text(), HasSubstr("could not find the compiler no-such-g++"));
}

TEST_P(CompilerTest, text_from_the_source_reaches_people_as_plain_text) {
  for (int look = 0; look < 2; ++look) {  // the second from the cache
    const Artifact artifact = build(candidate("escape", "#error \x1b[31m \xff \xe2\x82\xac\n"));
    EXPECT_EQ(artifact.verdict, Verdict::build_failed);
    EXPECT_EQ(artifact.log.find('\x1b'), std::string::npos);
    EXPECT_EQ(artifact.log.find('\xff'), std::string::npos);
    EXPECT_EQ(artifact.from_cache, look == 1);
  }
  EXPECT_THAT(build(candidate("escape", "#include \"\x1b\xff\"")).reason, HasSubstr("\"??\""));
}

TEST(Compiler, a_cache_that_cannot_be_made_is_an_error) {
  const fs::path file = testing::TempDir() + "kbeam_compiler_test_file";
  ASSERT_TRUE(write_file(file, "").ok());
  const auto made = Compiler::make({.contract_include = kContract, .cache = file / "cache"});
  fs::remove(file);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::io);
  EXPECT_THAT(made.error().text(), HasSubstr("kbeam_compiler_test_file/cache"));
}

TEST(Compiler, printable_keeps_utf8_and_replaces_the_rest) {
  const std::string good = "a\tb\n\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80";
  EXPECT_EQ(printable(good), good);
  EXPECT_EQ(printable("\x1b[1m\r\x7f"), "?[1m??");
  EXPECT_EQ(printable("\xc2\x9b"), "?");                    // a control character in UTF-8
  EXPECT_EQ(printable("\xc0\xaf \xed\xa0\x80"), "?? ???");  // overlong, surrogate
  EXPECT_EQ(printable("\xe2\x82"), "??");                   // cut short
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "????");         // beyond Unicode
}

TEST(Compiler, explains_failures_that_are_not_the_sources) {
  const BuildLimits limits;
  EXPECT_EQ(
      explain_failure(
          {.exit_code = 4, .output = "g++: fatal error: Killed signal terminated program cc1plus"},
          limits)
          .repeatable,
      false);
  EXPECT_THAT(explain_failure(
                  {.exit_code = 1, .output = "cc1plus: out of memory allocating 9 bytes"}, limits)
                  .reason,
              HasSubstr("4096 MiB"));
  EXPECT_EQ(explain_failure({.timed_out = true}, limits).verdict, Verdict::build_timed_out);
}

}  // namespace
}  // namespace kbeam
