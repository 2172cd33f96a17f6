#include "build/source_scan.h"

#include <gmock/gmock.h>

#include "build/cpp_tokens.h"
#include "build/knob_value.h"

namespace kbeam {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

SourceKnobs clean_scan(std::string_view source) {
  SourceKnobs result = scan_knobs(source);
  EXPECT_THAT(result.mistakes, IsEmpty());
  return result;
}

TEST(SourceScan, reads_a_knob) {
  const SourceKnobs found = clean_scan("KBEAM_KNOB(int, kPanel, 32, 16, 32, 64);");
  ASSERT_EQ(found.knobs.size(), 1u);
  EXPECT_EQ(found.knobs[0].name, "kPanel");
  EXPECT_EQ(found.knobs[0].type, "int");
  EXPECT_EQ(found.knobs[0].fallback, "32");
  EXPECT_THAT(found.knobs[0].choices, ElementsAre("16", "32", "64"));
}

TEST(SourceScan, reads_names_words_signs_and_long_types_over_several_lines) {
  const SourceKnobs found = clean_scan(R"text(
    KBEAM_KNOB(const unsigned int, kShift, -1,
               -1,  // none
               0);
    KBEAM_KNOB(bool, kPacked, true, true, false);
    KBEAM_KNOB(kbeam::Order, kOrder, Order::rows, Order::rows, ::Order::columns);
    KBEAM_KNOB(int, kWidth, kbeam::kNativeFloats, 8, kbeam::kNativeFloats);
  )text");
  ASSERT_EQ(found.knobs.size(), 4u);
  EXPECT_EQ(found.knobs[0].type, "const unsigned int");
  EXPECT_THAT(found.knobs[0].choices, ElementsAre("-1", "0"));
  EXPECT_THAT(found.knobs[1].choices, ElementsAre("true", "false"));
  EXPECT_THAT(found.knobs[2].choices, ElementsAre("Order::rows", "::Order::columns"));
  EXPECT_EQ(found.knobs[3].fallback, "kbeam::kNativeFloats");
}

TEST(SourceScan, reads_a_constraint) {
  const SourceKnobs found = clean_scan(R"text(
    KBEAM_REQUIRE(kPanel % kWidth == 0 && kPanel <= std::max(64, kWidth),
                  "a panel holds "
                  "whole vectors, (always)");
  )text");
  ASSERT_EQ(found.constraints.size(), 1u);
  EXPECT_EQ(found.constraints[0].condition,
            "kPanel % kWidth == 0 && kPanel <= std::max(64, kWidth)");
  EXPECT_EQ(found.constraints[0].sentence, "a panel holds whole vectors, (always)");
}

TEST(SourceScan, ignores_comments_strings_raw_strings_and_macro_definitions) {
  const SourceKnobs found = clean_scan(R"text(
    // KBEAM_KNOB(int, a, 1, 1);
    // a comment that goes on \
       KBEAM_KNOB(int, b, 1, 1);
    /* KBEAM_KNOB(int, c, 1, 1); */
    const char* d = "KBEAM_KNOB(int, d, 1, 1) \" KBEAM_KNOB(int, d, 1, 1)";
    const char* e = R"x(KBEAM_KNOB(int, e, 1, 1) )" KBEAM_KNOB(int, e, 1, 1) )x";
    const char f = '"'; KBEAM_KNOB(int, kFound, 1, 1);
    #define KNOB(x) KBEAM_KNOB(int, x, 1, 1)
    #define LONG \
       KBEAM_KNOB(int, g, 1, 1)
    int MY_KBEAM_KNOB(int, int, int, int);
  )text");
  ASSERT_EQ(found.knobs.size(), 1u);
  EXPECT_EQ(found.knobs[0].name, "kFound");
}

TEST(SourceScan, understands_digit_separators) {
  const SourceKnobs found =
      clean_scan("KBEAM_KNOB(int, kBlock, 1'024, 512, 1024, 1'000'000); char c = 'x';");
  EXPECT_EQ(found.knobs[0].fallback, "1024");
  EXPECT_THAT(found.knobs[0].choices, ElementsAre("512", "1024", "1000000"));
}

TEST(SourceScan, a_choice_that_is_no_plain_value_is_named_whole) {
  const SourceKnobs found =
      scan_knobs("\nKBEAM_KNOB(int, kTile, 8, 8, (4 * (2 + 2)), Tile<8, 4>, f(1, 2), {1, 2});");
  EXPECT_THAT(
      found.mistakes,
      ElementsAre("line 2: the choice (4 * (2 + 2)) of kTile is no number, name, true or false",
                  "line 2: the choice Tile<8, 4> of kTile is no number, name, true or false",
                  "line 2: the choice f(1, 2) of kTile is no number, name, true or false",
                  "line 2: the choice {1, 2} of kTile is no number, name, true or false"));
  ASSERT_EQ(found.knobs.size(), 1u);
  EXPECT_THAT(found.knobs[0].choices, ElementsAre("8"));
}

TEST(SourceScan, reports_mistakes_with_their_lines) {
  const SourceKnobs found = scan_knobs(
      "KBEAM_KNOB(int, kPanel, 48, 16, 32);\n"
      "KBEAM_KNOB(int, kWidth, 8, 8, 16, 8);\n"
      "KBEAM_KNOB(int, kWidth, 8, 8);\n"
      "KBEAM_KNOB(int, kAlone, 8);\n"
      "KBEAM_REQUIRE(kWidth > 0);\n"
      "KBEAM_KNOB(int, kOpen, 8, 8;\n");
  EXPECT_THAT(
      found.mistakes,
      ElementsAre("line 1: the default 48 of kPanel is not among its choices 16, 32",
                  "line 2: the choice 8 of kWidth is listed twice",
                  "line 3: the knob kWidth is declared twice",
                  HasSubstr("line 4: KBEAM_KNOB needs a type, a name, a default and the choices"),
                  HasSubstr("line 5: KBEAM_REQUIRE needs a condition and a sentence"),
                  "line 6: the parenthesis of KBEAM_KNOB is never closed"));
  EXPECT_EQ(found.knobs.size(), 2u);
}

TEST(SourceScan, survives_malformed_text) {
  for (const char* text :
       {"", "KBEAM_KNOB", "KBEAM_KNOB(", "KBEAM_KNOB()", "\"open", "'", "R\"x(never closed",
        "/* open", "\\", "#", "# include <", "1'", "KBEAM_REQUIRE(\"only\")", "R\"", "\"\\"})
    static_cast<void>(scan_knobs(text).knobs.size() + normalised_source(text).size());
  EXPECT_THAT(scan_knobs("KBEAM_KNOB()").mistakes, testing::SizeIs(1));
}

TEST(NormalisedSource, drops_comments_and_layout_only) {
  EXPECT_EQ(normalised_source("int a=1;// one\n\n"), normalised_source("int /* two */ a = 1 ;"));
  EXPECT_EQ(normalised_source("int a = 1'000;"), normalised_source("int a = 1000;"));
  EXPECT_EQ(normalised_source("int \\\n a;"), normalised_source("int a;"));
  EXPECT_NE(normalised_source("int a = 1;"), normalised_source("int a = 2;"));
  EXPECT_NE(normalised_source("f(\"a b\")"), normalised_source("f(\"a  b\")"));
  EXPECT_NE(normalised_source("a + +b"), normalised_source("a ++ b"));
  EXPECT_NE(normalised_source("R\"(a\n b)\""), normalised_source("R\"(a b)\""));
}

TEST(NormalisedSource, keeps_directives_on_lines_of_their_own) {
  EXPECT_EQ(normalised_source("#  include <a.h> // x\nint b;"), "#include <a.h>\nint b ;");
  EXPECT_EQ(normalised_source("int a;\n#define X \\\n 1\nint b;"), "int a ;\n#define X 1\nint b ;");
  EXPECT_NE(normalised_source("#define X\n(1)"), normalised_source("#define X (1)"));
}

TEST(CppTokens, counts_lines_through_splices_comments_and_raw_strings) {
  const std::vector<CppToken> tokens = cpp_tokens("/* 1\n2 */ R\"(2\n3)\" \\\n a\n\nb");
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokens[0].line, 2);
  EXPECT_EQ(tokens[1].line, 4);
  EXPECT_EQ(tokens[2].line, 6);
}

TEST(CppTokens, knows_directives_in_every_spelling) {
  for (const char* text :
       {"#include <x>", " # include<x>", "%:include <x>", "/* c */ # /* c */ include /* c */ <x>",
        "#inc\\\nlude <x>", "#\\\ninclude <x>"}) {
    const std::vector<CppToken> tokens = cpp_tokens(text);
    ASSERT_EQ(tokens.size(), 3u) << text;
    EXPECT_EQ(tokens[0].kind, CppToken::Kind::directive) << text;
    EXPECT_EQ(tokens[0].text, "include") << text;
    EXPECT_EQ(tokens[1].content, "x") << text;
  }
}

TEST(KnobValue, admits_plain_values_only) {
  for (const char* good :
       {"16", "-3", "0x1F", "1.5f", "1e-3", "true", "kbeam::kNativeFloats", "::Order::rows"})
    EXPECT_TRUE(is_knob_value(good)) << good;
  for (const char* bad :
       {"",        " ",   "1 2",  "16;int x",        "a b",  "(1)",    "1,2", "f()", "\"s\"",
        "-kPanel", "a::", "::",   "1\n#include <x>", "16//", "16/**/", "a:b", "\\",  "#",
        "Tile<8>", "'a'", "1'000"})
    EXPECT_FALSE(is_knob_value(bad)) << bad;
}

TEST(KnobValue, names_are_identifiers) {
  EXPECT_TRUE(is_knob_name("kPanel"));
  for (const char* bad : {"", "a b", "a=1", "1a", "a,b", "\xc3\xa4"})
    EXPECT_FALSE(is_knob_name(bad)) << bad;
}

}  // namespace
}  // namespace kbeam
