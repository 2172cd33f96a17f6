#include "build/source_rules.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "build/source_scan.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Refused {
  const char* source;
  SourceRule rule;
  int line;
  const char* words;
};

const Refused kRefused[] = {
    {"#include \"oracle.h\"", SourceRule::header, 1, "include of \"oracle.h\" is not allowed"},
    {"int a;\n#include \"/etc/passwd\"", SourceRule::header, 2, "/etc/passwd"},
    {"#include </etc/passwd>", SourceRule::header, 1, "/etc/passwd"},
    {"#include <kbeam/../../problem.h>", SourceRule::header, 1, ".."},
    {"#include <kbeam/../x>", SourceRule::header, 1, ".."},
    {"#include <chrono>", SourceRule::header, 1, "<chrono>"},
    {"#include <sys/mman.h>", SourceRule::header, 1, "<sys/mman.h>"},
    {"%:include <thread>", SourceRule::header, 1, "<thread>"},
    {"#inc\\\nlude <thread>", SourceRule::header, 2, "<thread>"},
    {"#/**/include/**/<thread>", SourceRule::header, 1, "<thread>"},
    {"#include_next <cmath>", SourceRule::header, 1, "#include_next"},
    {"#import <cmath>", SourceRule::header, 1, "#import"},
    {"#define H <thread>\n#include H", SourceRule::computed_include, 2, "must name its header"},
    {"#if __has_include(\"/root/x\")\n#endif", SourceRule::header, 1, "/root/x"},
    {"#if __has_include(</root/x>)\n#endif", SourceRule::header, 1, "/root/x"},
    {"#if __has_include(H)\n#endif", SourceRule::computed_include, 1, "__has_include must name"},
    {"const char a[] = {\n#embed \"/etc/passwd\"\n};", SourceRule::embedded_file, 2, "#embed"},
    {"asm(\".incbin \\\"/etc/passwd\\\"\");", SourceRule::embedded_file, 1, ".incbin"},
    {"asm(\".inc\" \"bin x\");", SourceRule::embedded_file, 1, ".incbin"},
    {"asm(R\"(\n.include \"x\")\");", SourceRule::embedded_file, 1, ".include"},
    {"#pragma GCC pch_preprocess \"x\"", SourceRule::pragma, 1, "#pragma GCC pch_preprocess"},
    {"#pragma GCC dependency \"/etc/passwd\"", SourceRule::pragma, 1, "dependency"},
    {"_Pragma(\"GCC dependency \\\"x\\\"\")", SourceRule::pragma, 1, "dependency"},
    {"#pragma weak f", SourceRule::pragma, 1, "weak"},
    {"const char* t = __DATE__;", SourceRule::build_time, 1, "__DATE__"},
    // As the compiler joins lines, so does the scan: blanks after the backslash, and `*/` in two.
    {"#inc\\ \t\nlude <thread>", SourceRule::header, 2, "<thread>"},
    {"/* *\\\n/\n#include <thread>\n/* */", SourceRule::header, 3, "<thread>"},
    {"/\\\n/ a comment\n#include <thread>", SourceRule::header, 3, "<thread>"},
    {"auto s = R\"x(\\\n)x\";\n#include <thread>", SourceRule::header, 3, "<thread>"},
    {"auto s = R\"x()\\\nx\" #include <thread>\n)x\";\n__TIME__", SourceRule::build_time, 4,
     "__TIME__"},
    {"bool b = __FILE__[0] == 'c';", SourceRule::build_place, 1, "__FILE__"},
    {"auto w = std::source_location::current();", SourceRule::build_place, 1, "source_location"},
    {"#ifdef __SANITIZE_ADDRESS__\n#endif", SourceRule::build_place, 1, "__SANITIZE_ADDRESS__"},
    {"#define CAT(a, b) a##b", SourceRule::token_paste, 1, "## is not allowed"},
    {"#define CAT(a, b) a %:%: b", SourceRule::token_paste, 1, "## is not allowed"},
    {"# 1 \"s.h\" 3", SourceRule::line_marker, 1, "#line is not allowed"},
    {"#line 7", SourceRule::line_marker, 1, "#line is not allowed"},
};

TEST(SourceRules, refuses_with_rule_line_and_reason) {
  for (const Refused& refused : kRefused) {
    const auto found = find_refusal(refused.source, SourceOrigin::candidate);
    ASSERT_TRUE(found.has_value()) << refused.source;
    EXPECT_EQ(found->rule, refused.rule) << refused.source;
    EXPECT_EQ(found->line, refused.line) << refused.source;
    EXPECT_THAT(found->sentence, HasSubstr(refused.words)) << refused.source;
  }
}

TEST(SourceRules, admits_honest_source) {
  for (const char* source :
       {"#include <kbeam/candidate.h>\n#include <cmath>\n#include <immintrin.h>\n",
        "#pragma GCC unroll 4\n", "_Pragma(\"GCC ivdep\")", "_Pragma(\"GCC optimize(\\\"O1\\\")\")",
        "#pragma GCC optimize(\"O2\")\n", "// #include \"x\"\n", "/*\n#include \"x\"\n*/",
        "const char* s = R\"(\n#include \"x\"\n)\";", "#if __has_include(<immintrin.h>)\n#endif",
        "#ifdef __has_include\n#endif", "asm volatile(\"vzeroupper\");",
        "int included = 1, import = 2;"})
    EXPECT_FALSE(find_refusal(source, SourceOrigin::candidate).has_value()) << source;
}

TEST(SourceRules, admits_every_candidate_of_this_project) {
  int candidates = 0;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(KBEAM_SOURCE_DIR "/problems")) {
    const std::string kind = entry.path().parent_path().filename().string();
    if (entry.path().extension() != ".cpp" || (kind != "sketches" && kind != "known_good"))
      continue;
    const auto source = read_file(entry.path());
    ASSERT_TRUE(source.ok());
    const auto refusal = find_refusal(*source, SourceOrigin::candidate);
    EXPECT_FALSE(refusal.has_value()) << entry.path() << ": " << refusal->sentence;
    EXPECT_THAT(scan_knobs(*source).mistakes, testing::IsEmpty()) << entry.path();
    ++candidates;
  }
  EXPECT_GT(candidates, 0);
}

TEST(SourceRules, a_baseline_may_include_its_library) {
  EXPECT_FALSE(find_refusal("#include <cblas.h>", SourceOrigin::baseline).has_value());
  EXPECT_TRUE(find_refusal("#include <cblas.h>", SourceOrigin::candidate).has_value());
  EXPECT_TRUE(find_refusal("#include \"../x.h\"", SourceOrigin::baseline).has_value());
}

}  // namespace
}  // namespace kbeam
