#include "propose/idea_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"

namespace kbeam {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class IdeaFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = *make_temporary_folder(std::filesystem::temp_directory_path(), "kbeam_ideas_");
    std::filesystem::create_directories(folder_ / "sketches");
    for (const char* name : {"a.cpp", "b.cpp", "blocked.cpp"})
      ASSERT_TRUE(write_file(folder_ / "sketches" / name, std::string("// code of ") + name).ok());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  LoadedIdeas load(const std::string& text) {
    EXPECT_TRUE(write_file(folder_ / "ideas.toml", text).ok());
    auto loaded = load_ideas(folder_);
    EXPECT_TRUE(loaded.ok());
    return *std::move(loaded);
  }

  std::filesystem::path folder_;
};

const char* const kTwoIdeas = R"(# a comment
[[idea]]
family = "plain"
category = "algorithm"
text = "Do it at once."
expected = "1.5 x"
sketch = "sketches/a.cpp"

[[idea]]
family = "blocked"
category = "blocking"
text = "Do it in blocks."
expected = "3 x from 128 on"
sketch = "sketches/blocked.cpp"
parents = ["plain"]
)";

TEST_F(IdeaFile, ReadsIdeasAndSketches) {
  const LoadedIdeas loaded = load(kTwoIdeas);
  EXPECT_THAT(loaded.mistakes, IsEmpty());
  ASSERT_THAT(loaded.sketches, SizeIs(2));
  const SketchFile& plain = loaded.sketches[0];
  EXPECT_EQ(plain.idea.family, "plain");
  EXPECT_EQ(plain.idea.category, "algorithm");
  EXPECT_EQ(plain.idea.text, "Do it at once.");
  EXPECT_EQ(plain.idea.expected, "1.5 x");
  EXPECT_EQ(plain.idea.source, "builtin");
  EXPECT_THAT(plain.idea.id, SizeIs(12));
  EXPECT_EQ(plain.source, "// code of a.cpp");
  EXPECT_EQ(plain.path, folder_ / "sketches/a.cpp");
  EXPECT_THAT(loaded.sketches[1].idea.parents, ElementsAre(plain.idea.id));
}

TEST_F(IdeaFile, TheIdIsOfTheIdeaAndNotOfItsCode) {
  const std::string before = load(kTwoIdeas).sketches[0].idea.id;
  ASSERT_TRUE(write_file(folder_ / "sketches/a.cpp", "// other code").ok());
  EXPECT_EQ(load(kTwoIdeas).sketches[0].idea.id, before);
  std::string reworded = kTwoIdeas;
  reworded.replace(reworded.find("at once"), 7, "quickly");
  EXPECT_NE(load(reworded).sketches[0].idea.id, before);
}

TEST_F(IdeaFile, ReportsEveryMistakeAtOnceInTheOrderOfTheFile) {
  const LoadedIdeas loaded = load(R"(title = "x"
[[idea]]
famly = "plain"
category = 3
text = " "
sketch = "sketches/blokced.cpp"

[[idea]]
family = "Blocked WY"
category = "blocking"
text = "Do it in blocks."
expected = "3 x"
sketch = "../b.cpp"
parents = ["plian", 4]
)");
  EXPECT_THAT(loaded.sketches, IsEmpty());
  EXPECT_THAT(
      loaded.mistakes,
      ElementsAre("ideas.toml:1:1: unknown key 'title'",
                  "ideas.toml:2:1: this [[idea]] has no 'family'",
                  "ideas.toml:2:1: this [[idea]] has no 'expected'",
                  "ideas.toml:3:1: unknown key 'famly'; did you mean 'family'?",
                  "ideas.toml:4:12: 'category' must be a string", "ideas.toml:5:8: 'text' is empty",
                  "ideas.toml:6:10: no file 'sketches/blokced.cpp' in " + folder_.string() +
                      "; did you mean 'sketches/blocked.cpp'?",
                  "ideas.toml:9:10: the family 'Blocked WY' must be lower-case letters, digits and "
                  "'_', a letter first",
                  "ideas.toml:13:10: the sketch '../b.cpp' must lie inside the problem folder",
                  "ideas.toml:14:12: no family 'plian'",
                  "ideas.toml:14:21: 'parents' must be a list of family names"));
}

TEST_F(IdeaFile, ReportsRepetitions) {
  const LoadedIdeas loaded = load(std::string(kTwoIdeas) + R"(
[[idea]]
family = "again"
category = "algorithm"
text = "Do it at once."
expected = "more"
sketch = "sketches/../sketches/a.cpp"
)");
  EXPECT_THAT(
      loaded.mistakes,
      ElementsAre(
          "ideas.toml:20:8: an idea above has the same text: what differs structurally?",
          "ideas.toml:22:10: the sketch 'sketches/../sketches/a.cpp' belongs to an idea above"));
  EXPECT_THAT(loaded.sketches, SizeIs(2));  // the good ones are still there
}

TEST_F(IdeaFile, AFamilyMayHaveSeveralSketchesAndAllAreParents) {
  const LoadedIdeas loaded = load(std::string(kTwoIdeas) + R"(
[[idea]]
family = "plain"
category = "algorithm"
text = "Do it at once, backwards."
expected = "1.6 x"
sketch = "sketches/b.cpp"
parents = ["blocked"]
)");
  EXPECT_THAT(loaded.mistakes, IsEmpty());
  ASSERT_THAT(loaded.sketches, SizeIs(3));
  EXPECT_THAT(loaded.sketches[2].idea.parents, ElementsAre(loaded.sketches[1].idea.id));
}

TEST_F(IdeaFile, ParentsComeBeforeTheirChildren) {
  std::string circular = kTwoIdeas;
  circular.insert(circular.find("\n[[idea]]\nfamily = \"blocked\""),
                  "parents = [\"blocked\", \"plain\", \"blokced\"]\n");
  const LoadedIdeas loaded = load(circular);
  EXPECT_THAT(
      loaded.mistakes,
      ElementsAre(
          "ideas.toml:8:12: the parent 'blocked' must come earlier in the file than its child",
          "ideas.toml:8:23: the parent 'plain' must come earlier in the file than its child",
          "ideas.toml:8:32: no family 'blokced'; did you mean 'blocked'?"));
}

TEST_F(IdeaFile, PointsAtSyntaxErrors) {
  const LoadedIdeas loaded = load("[[idea]]\nfamily = \"plain\ntext = 3\n");
  ASSERT_THAT(loaded.mistakes, SizeIs(1));
  EXPECT_THAT(loaded.mistakes[0], ::testing::StartsWith("ideas.toml:2:"));
  EXPECT_THAT(load("[idea]\nfamily = \"plain\"\n").mistakes,
              ElementsAre("ideas.toml:1:1: ideas are written as [[idea]], with two brackets"));
  EXPECT_THAT(load("").mistakes,
              ElementsAre("ideas.toml:1:1: no [[idea]]: the builtin proposer needs one at least"));
  EXPECT_THAT(load("[[ideas]]\nfamily = \"plain\"\n").mistakes,
              ElementsAre("ideas.toml:1:3: unknown key 'ideas'; did you mean 'idea'?"));
}

TEST_F(IdeaFile, WithoutAFileThereIsAnError) {
  const auto loaded = load_ideas(folder_ / "nowhere");
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, ErrorCode::not_found);
  EXPECT_THAT(loaded.error().text(), ::testing::HasSubstr("there is no ideas.toml"));
}

TEST_F(IdeaFile, TheNamePortfolioIsTaken) {
  std::string text = kTwoIdeas;
  text.replace(text.find("\"plain\""), 7, "\"portfolio\"");
  EXPECT_THAT(
      load(text).mistakes,
      ::testing::Contains("ideas.toml:3:10: the family name 'portfolio' is taken by the engine"));
}

TEST(ShippedIdeas, HaveNoMistakes) {
  int problems = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(KBEAM_SOURCE_DIR) / "problems")) {
    if (!std::filesystem::exists(entry.path() / "ideas.toml")) continue;
    ++problems;
    auto loaded = load_ideas(entry.path());
    ASSERT_TRUE(loaded.ok());
    EXPECT_THAT(loaded->mistakes, IsEmpty()) << entry.path();
    EXPECT_THAT(loaded->sketches, ::testing::Not(IsEmpty())) << entry.path();
  }
  EXPECT_GT(problems, 0);
}

}  // namespace
}  // namespace kbeam
