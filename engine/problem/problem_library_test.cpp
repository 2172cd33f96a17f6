#include "problem/problem_library.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "base/files.h"
#include "base/process.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kProblem[] = R"(#include <kbeam/problem.h>
class Doubling final : public kbeam::ProblemCode {
  void generate(const kbeam::CaseView&, std::uint64_t, std::span<const kbeam::TensorView>) override {}
  void freshen(const kbeam::CaseView&, std::uint64_t, std::span<const kbeam::TensorView>,
               std::span<const kbeam::TensorView>) override {}
  void check(const kbeam::CaseView&, const kbeam::CheckRequest&, std::span<const kbeam::TensorView>,
             std::span<const kbeam::TensorView>, kbeam::CheckSink&) override {}
  double flops(const kbeam::CaseView& c) override { return 2.0 * c.axis("n"); }
  double bytes(const kbeam::CaseView& c) override { return c.family() == "dense" && c.name() == "n3" ? 5 : 0; }
};
)";

class ProblemLibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = make_temporary_folder(testing::TempDir(), "kbeam_library_test_");
    ASSERT_TRUE(made.ok());
    folder_ = *made;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path compile(const std::string& source) {
    EXPECT_TRUE(write_file(folder_ / "problem.cpp", source).ok());
    const auto outcome = run_process(
        {.command = {"g++", "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-I",
                     KBEAM_SOURCE_DIR "/contract/include", "-o", "problem.so", "problem.cpp"},
         .folder = folder_,
         .environment = {"PATH=/usr/bin:/bin"}});
    EXPECT_TRUE(outcome.ok() && outcome->exit_code == 0)
        << (outcome.ok() ? outcome->output : outcome.error().text());
    return folder_ / "problem.so";
  }

  fs::path folder_;
};

TEST_F(ProblemLibraryTest, loads_and_sees_cases) {
  const auto library =
      ProblemLibrary::load(compile(std::string(kProblem) + "KBEAM_PROBLEM(Doubling)\n"));
  ASSERT_TRUE(library.ok()) << library.error().text();
  const Case the_case{.name = "n3", .axes = {{"n", 3}}, .family = "dense"};
  EXPECT_EQ((*library)->code().flops(CaseAdapter(the_case)), 6.0);
  EXPECT_EQ((*library)->code().bytes(CaseAdapter(the_case)), 5.0);
}

TEST_F(ProblemLibraryTest, an_unknown_axis_is_named) {
  const auto library =
      ProblemLibrary::load(compile(std::string(kProblem) + "KBEAM_PROBLEM(Doubling)\n"));
  ASSERT_TRUE(library.ok());
  const Case the_case{.name = "m3", .axes = {{"m", 3}}};
  try {
    (*library)->code().flops(CaseAdapter(the_case));
    FAIL() << "no exception";
  } catch (const std::out_of_range& error) {
    EXPECT_THAT(error.what(), HasSubstr("axis 'n'"));
  }
}

TEST_F(ProblemLibraryTest, refuses_another_version_of_the_contract) {
  const auto library = ProblemLibrary::load(
      compile(std::string(kProblem) +
              "extern \"C\" __attribute__((visibility(\"default\"))) int kbeam_problem_abi() { "
              "return 99; }\n"
              "extern \"C\" __attribute__((visibility(\"default\"))) kbeam::ProblemCode* "
              "kbeam_make_problem() { return new Doubling; }\n"));
  ASSERT_FALSE(library.ok());
  EXPECT_THAT(library.error().text(), HasSubstr("version 99"));
}

TEST_F(ProblemLibraryTest, says_what_is_missing) {
  const auto empty = ProblemLibrary::load(compile("int nothing;\n"));
  ASSERT_FALSE(empty.ok());
  EXPECT_THAT(empty.error().text(), HasSubstr("KBEAM_PROBLEM(YourClass)"));
  const auto absent = ProblemLibrary::load(folder_ / "absent.so");
  ASSERT_FALSE(absent.ok());
  EXPECT_THAT(absent.error().text(), HasSubstr("absent.so"));
  const auto undefined =
      ProblemLibrary::load(compile("int elsewhere(); __attribute__((visibility(\"default\"))) int "
                                   "use() { return elsewhere(); }\n"));
  ASSERT_FALSE(undefined.ok());
  EXPECT_THAT(undefined.error().text(), HasSubstr("elsewhere"));
}

}  // namespace
}  // namespace kbeam
