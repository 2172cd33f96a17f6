// The gate with a stand-in for kbeam-worker: a script that answers as the worker does, finds what
// it is told to find, and keeps a line of every run.
#include "session/sanitizer_gate.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>

#include "base/files.h"

namespace kbeam {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Runs as `worker --plain FOLDER --device 0 --json [--wrapper COMMAND]`. FOLDER/cases names the
// cases; finds.TOOL beside the script names those on which a tool complains, "all" of it where it
// does so only about several at once.
constexpr std::string_view kWorker = R"sh(#!/bin/bash
here=$(dirname "$0") folder=$2 tool=none
[ $# -gt 5 ] && tool=$(echo "$7" | sed 's/.*--tool \([a-z]*\).*/\1/')
cases=$(cat "$folder/cases")
echo "$tool $cases" >> "$here/runs"
hashes="" exit_code=0
for name in $cases; do
  hashes="$hashes${hashes:+,}\"$name\":\"of $name\""
  grep -qx "$name" "$here/finds.$tool" 2> /dev/null && exit_code=86
done
[ "$(echo $cases | wc -w)" -gt 1 ] && grep -qx all "$here/finds.$tool" 2> /dev/null && exit_code=86
echo "{\"verdict\":\"accepted\",\"reason\":\"\",\"output_hashes\":{$hashes},\"wrapper_exit_code\":$exit_code,"
echo "\"wrapper_output\":\"========= COMPUTE-SANITIZER\\n========= $tool complains\\n\"}"
)sh";

class SanitizerGateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = make_temporary_folder(std::filesystem::temp_directory_path(), "kbeam-gate-");
    ASSERT_TRUE(folder.ok());
    folder_ = *folder;
    std::ofstream(folder_ / "worker") << kWorker;
    std::filesystem::permissions(folder_ / "worker", std::filesystem::perms::owner_all);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void let_find(const std::string& tool, const std::string& on) const {
    std::ofstream(folder_ / ("finds." + tool), std::ios::app) << on << '\n';
  }
  SanitizerFindings pass(const std::vector<std::string>& cases) {
    const SanitizerGate gate{.sanitizer = "compute-sanitizer",
                             .worker = folder_ / "worker",
                             .device = 0,
                             .timeout_s = 60,
                             .watch_initialisation = true,
                             .give_up = {},
                             .say = [this](std::string_view line) { said_.emplace_back(line); },
                             .kept = folder_ / "kept",
                             .launches_of = launches_of_};
    int written = 0;
    auto findings = pass_sanitizers(
        gate, cases, [&](const std::vector<std::string>& chosen) -> Result<std::filesystem::path> {
          const std::filesystem::path task = folder_ / fmt::format("task{}", written++);
          std::filesystem::create_directory(task);
          std::ofstream file(task / "cases");
          for (const std::string& name : chosen) file << (&name == &chosen[0] ? "" : " ") << name;
          return task;
        });
    EXPECT_TRUE(findings.ok());
    return findings.ok() ? *findings : SanitizerFindings{};
  }
  std::vector<std::string> runs() const {
    std::vector<std::string> lines;
    std::ifstream file(folder_ / "runs");
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  std::filesystem::path folder_;
  std::vector<std::string> said_;
  std::function<std::string(const std::string&)> launches_of_;  // none: nothing is kept
};

TEST_F(SanitizerGateTest, QuickToolsSeeAllCasesAtOnceAndTheSlowOneEachAlone) {
  const SanitizerFindings findings = pass({"small", "large"});
  EXPECT_THAT(runs(),
              ElementsAre("none small large", "memcheck small large", "racecheck small",
                          "racecheck large", "initcheck small large", "synccheck small large"));
  ASSERT_EQ(findings.results.size(), 4U);
  for (const GateResult& result : findings.results) {
    EXPECT_EQ(result.verdict, Verdict::accepted) << result.name;
    EXPECT_EQ(result.cases, 2) << result.name;
  }
  EXPECT_THAT(findings.failed_case, IsEmpty());
}

TEST_F(SanitizerGateTest, ABrokenOffGateDoesNotWaitAgainForWhatItKnows) {
  std::map<std::string, std::string> launches{{"small", "a"}, {"middle", "b"}, {"large", "c"}};
  launches_of_ = [&](const std::string& name) { return launches.at(name); };
  let_find("racecheck", "large");
  pass({"small", "middle", "large"});
  std::filesystem::remove(folder_ / "runs");
  std::filesystem::remove(folder_ / "finds.racecheck");
  launches["middle"] = "another plan";
  const SanitizerFindings again = pass({"small", "middle", "large"});
  EXPECT_THAT(again.failed_case, IsEmpty());
  EXPECT_EQ(again.results.size(), 4U);
  EXPECT_THAT(runs(), ElementsAre("none small middle large", "memcheck small middle large",
                                  "racecheck middle", "racecheck large",
                                  "initcheck small middle large", "synccheck small middle large"))
      << "what was found, and what has changed, is watched again";
}

TEST_F(SanitizerGateTest, ARaceEndsTheGateAtItsCase) {
  let_find("racecheck", "middle");
  const SanitizerFindings findings = pass({"small", "middle", "large"});
  EXPECT_EQ(findings.failed_case, "middle");
  EXPECT_EQ(findings.results.back().verdict, Verdict::race);
  EXPECT_THAT(findings.results.back().sentence, HasSubstr("racecheck complains"));
  EXPECT_EQ(runs().back(), "racecheck middle");
}

TEST_F(SanitizerGateTest, AQuickToolsFindingIsSoughtCaseByCase) {
  let_find("memcheck", "large");
  const SanitizerFindings findings = pass({"small", "large", "huge"});
  EXPECT_EQ(findings.failed_case, "large");
  EXPECT_EQ(findings.results.back().verdict, Verdict::wrote_outside);
  EXPECT_THAT(runs(), ElementsAre("none small large huge", "memcheck small large huge",
                                  "memcheck small", "memcheck large"));
}

TEST_F(SanitizerGateTest, WhatNoCaseShowsAloneStillFails) {
  let_find("synccheck", "all");
  const SanitizerFindings findings = pass({"small", "large"});
  EXPECT_THAT(findings.failed_case, IsEmpty());
  EXPECT_EQ(findings.results.back().name, "synccheck");
  EXPECT_EQ(findings.results.back().verdict, Verdict::race);
}

TEST_F(SanitizerGateTest, SaysWhichToolAndCaseBegins) {
  pass({"small", "large"});
  EXPECT_THAT(said_, ElementsAre("memcheck: 2 cases", "racecheck: case 1 of 2, small",
                                 "racecheck: case 2 of 2, large", "initcheck: 2 cases",
                                 "synccheck: 2 cases"));
}

}  // namespace
}  // namespace kbeam
