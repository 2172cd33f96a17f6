#include "problem/problem_file.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/files.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Line numbers in the tables below count from the line after R"toml(.
constexpr char kGood[] = R"toml(name = "sums"
title = "Row sums"
summary = "Adds up rows."
[axes]
rows = { least = 1, most = 100 }
columns = { least = 1, most = 50 }
short = { derived_from = "min(rows, columns)" }
[[tensor]]
name = "x"
role = "input"
type = "f32"
shape = ["rows", "columns"]
memory_order = ["columns", "rows"]
[[tensor]]
name = "y"
role = "output"
type = "f64"
shape = ["short"]
[[grade]]
name = "fp32"
text = "close"
[[family]]
name = "dense"
text = "normal"
[[case]]
name = "r8"
axes = { rows = 8, columns = 4 }
family = "dense"
timed = true
[[case]]
name = "r9"
axes = { rows = 9, columns = 40 }
family = "dense"
pool = "private"
[[baseline]]
name = "plain"
text = "a loop"
source = "baselines/plain.cpp"
link = ["m"]
[regimes]
axis = "rows"
[build]
flags = ["-ffp-contract=fast"]
)toml";

class ProblemFileTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = make_temporary_folder(testing::TempDir(), "kbeam_problem_test_");
    ASSERT_TRUE(made.ok()) << made.error().text();
    problems_ = *made;
    folder_ = problems_ / "sums";
    fs::create_directories(folder_ / "baselines");
    write("problem.cpp", "// code\n");
    write("baselines/plain.cpp", "// baseline\n");
  }
  void TearDown() override { fs::remove_all(problems_); }

  void write(const fs::path& file, const std::string& content) {
    ASSERT_TRUE(write_file(folder_ / file, content).ok());
  }
  LoadedProblem load(const std::string& text) {
    write("problem.toml", text);
    auto loaded = load_problem(folder_);
    EXPECT_TRUE(loaded.ok());
    return loaded.ok() ? *loaded : LoadedProblem{};
  }

  fs::path problems_;
  fs::path folder_;
};

std::string with(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST_F(ProblemFileTest, reads_everything) {
  const LoadedProblem loaded = load(kGood);
  ASSERT_EQ(render_mistakes(loaded.mistakes), "");
  const Problem& problem = loaded.problem;
  EXPECT_EQ(problem.name, "sums");
  EXPECT_EQ(problem.title, "Row sums");
  EXPECT_EQ(problem.code, fs::canonical(folder_) / "problem.cpp");
  ASSERT_EQ(problem.axes.size(), 3u);
  EXPECT_EQ(problem.axes[0].name, "rows");  // the order of the file
  EXPECT_EQ(problem.axes[1].most, 50);
  EXPECT_EQ(problem.axes[2].derived_from, "min(rows, columns)");
  ASSERT_EQ(problem.tensors.size(), 2u);
  EXPECT_EQ(problem.tensors[0].memory_order, (std::vector<std::string>{"columns", "rows"}));
  EXPECT_EQ(problem.tensors[1].memory_order, (std::vector<std::string>{"short"}));
  EXPECT_EQ(problem.tensors[1].role, KBEAM_OUTPUT);
  EXPECT_EQ(problem.tensors[1].type, KBEAM_F64);
  ASSERT_EQ(problem.cases.size(), 2u);
  EXPECT_EQ(problem.cases[0].axes, (AxisValues{{"rows", 8}, {"columns", 4}, {"short", 4}}));
  EXPECT_TRUE(problem.cases[0].timed);
  EXPECT_FALSE(problem.cases[1].timed);
  EXPECT_EQ(problem.cases[1].pool, Pool::private_pool);
  ASSERT_EQ(problem.baselines.size(), 1u);
  EXPECT_EQ(problem.baselines[0].link, (std::vector<std::string>{"m"}));
  EXPECT_TRUE(problem.ceilings.empty());
  EXPECT_EQ(problem.regime_axis, "rows");
  EXPECT_EQ(problem.compile_flags, (std::vector<std::string>{"-ffp-contract=fast"}));
  EXPECT_EQ(problem.content_hash.size(), 64u);
}

struct BadFile {
  const char* from;
  const char* to;
  int line;
  int column;
  const char* sentence;
};

// One change to the good file, one mistake.
const BadFile kBadFiles[] = {
    {"title = \"Row sums\"\n", "", 1, 1, "problem.toml lacks 'title', a string"},
    {"\"Row sums\"", "3", 2, 9, "'title' must be a string, not an integer"},
    {"\"Row sums\"", "\"  \"", 2, 9, "'title' is empty"},
    {"title =", "titel = 1\ntitle =", 2, 1,
     "unknown key 'titel' in problem.toml; did you mean 'title'?"},
    {"\"sums\"", "\"suns\"", 1, 8, "name 'suns' must be that of the folder, 'sums'"},
    {"\"sums\"", "\"9sums\"", 1, 8, "not begin with a digit"},
    {"rows = { least = 1, most = 100 }", "rows = 3", 5, 8,
     "axis 'rows' must be { least = 1, most = 64 } or"},
    {"rows = { least = 1,", "rows = { least = 0,", 5, 18, "'least' must be at least 1"},
    {"most = 100", "most = 0", 5, 28, "'most' is below 'least' (1)"},
    {"most = 100", "mots = 100", 5, 21, "unknown key 'mots' in axis 'rows'; did you mean 'most'?"},
    {"most = 100", "mots = 100", 5, 8, "axis 'rows' lacks 'most', an integer"},
    {"min(rows, columns)", "min(rows, colums)", 7, 26,
     "axis 'short' is derived from 'colums', which is no free axis; did you mean 'columns'?"},
    {"min(rows, columns)", "rows +", 7, 26, "axis 'short': "},
    {"min(rows, columns)", "rows - 8", 27, 8,
     "axis 'short' = rows - 8 of this case: it is 0, below 1"},
    {"min(rows, columns)", "rows / (columns - 4)", 27, 8,
     "axis 'short' = rows / (columns - 4) of this case: "},
    {"role = \"input\"", "role = \"inptu\"", 10, 8, "unknown role 'inptu'; did you mean 'input'?"},
    {"role = \"input\"", "role = \"output\"", 8, 1, "no [[tensor]] has role 'input'"},
    {"type = \"f32\"", "type = \"half\"", 11, 8, "unknown type 'half'; known: f32, f64, i32, i64"},
    {"shape = [\"rows\",", "shape = [\"row\",", 12, 10, "unknown axis 'row'; did you mean 'rows'?"},
    {"shape = [\"short\"]", "shape = []", 18, 9, "'shape' must list 1 to 4 axes"},
    {"shape = [\"short\"]", "shape = [1]", 18, 10, "'shape' must hold strings, not an integer"},
    {"shape = [\"short\"]", "shape = [\"rows\", \"rows\"]", 18, 18, "derived_from = \"rows\""},
    {"memory_order = [\"columns\", \"rows\"]", "memory_order = [\"columns\"]", 13, 16,
     "'memory_order' must list the axes of 'shape' (rows, columns), each once, slowest first"},
    {"name = \"y\"", "name = \"x\"", 15, 8, "the tensor 'x' is declared on line 9 already"},
    {"[[grade]]", "[grade]", 19, 2, "'grade' may be given more than once: write [[grade]]"},
    {"text = \"normal\"\n", "", 22, 1, "[[family]] lacks 'text', a string"},
    {"name = \"r9\"", "name = \"r8\"", 31, 8, "the case 'r8' is declared on line 26 already"},
    {"axes = { rows = 8, columns = 4 }", "axes = { rows = 8 }", 27, 8,
     "'axes' lacks axis 'columns'"},
    {"rows = 8, columns = 4", "rows = 8, columns = 4, deep = 2", 27, 33,
     "unknown axis 'deep'; known: rows, columns"},
    {"rows = 8, columns = 4", "rows = 8, columns = 4, short = 2", 27, 33,
     "axis 'short' is derived from min(rows, columns); leave it out"},
    {"rows = 8,", "rows = 101,", 27, 17, "axis 'rows' is 101, outside 1 to 100"},
    {"rows = 8,", "rows = 8.0,", 27, 17, "axis 'rows' must be an integer, not a float"},
    {"family = \"dense\"\ntimed", "famly = \"dense\"\ntimed", 28, 1,
     "unknown key 'famly' in [[case]]; did you mean 'family'?"},
    {"family = \"dense\"\ntimed", "family = \"dens\"\ntimed", 28, 10,
     "unknown family 'dens'; did you mean 'dense'?"},
    {"timed = true", "timed = \"yes\"", 29, 9, "'timed' must be true or false, not a string"},
    {"timed = true", "", 25, 1, "no public [[case]] is timed"},
    {"timed = true", "timed = true\npool = \"sealed\"", 25, 1, "no public [[case]] is timed"},
    {"pool = \"private\"", "pool = \"privat\"", 34, 8,
     "unknown pool 'privat'; did you mean 'private'?"},
    {"baselines/plain.cpp", "baselines/plane.cpp", 38, 10, "baselines/plane.cpp"},
    {"baselines/plain.cpp", "../other.cpp", 38, 10,
     "'source' must be a path inside the problem's folder"},
    {"link = [\"m\"]", "link = [\"-lm\"]", 39, 9, "found '-lm'"},
    {"timed = true", "timed = true\ntargets = [\"gpu\"]", 30, 12,
     "unknown target 'gpu'; did you mean"},
    {"timed = true", "timed = true\ntargets = [\"cpu\", \"cpu\"]", 30, 19,
     "'targets' lists 'cpu' twice"},
    {"timed = true", "timed = true\ntargets = []", 30, 11, "'targets' is empty"},
    {"timed = true", "timed = true\ntargets = \"cpu\"", 30, 11, "'targets' must be an array"},
    {"link = [\"m\"]", "targets = [\"cuda\"]", 39, 11, "a .cpp file is for target 'cpu' only"},
    {"[[baseline]]", "[[baselines]]", 35, 3,
     "unknown key 'baselines' in problem.toml; did you mean 'baseline'?"},
    {"[[baseline]]", "[[baselines]]", 0, 0, "at least one [[baseline]] is needed"},
    {"axis = \"rows\"", "axis = \"row\"", 41, 8, "unknown axis 'row'; did you mean 'rows'?"},
    {"-ffp-contract=fast", "-fplugin=x", 43, 10, "'-fplugin=x' is not allowed"},
    {"-ffp-contract=fast", "/etc/passwd", 43, 10, "'/etc/passwd' is not allowed"},
    {"most = 100 }", "most = 100", 5, 31,
     "expected key or closing"},  // a syntax error: the library's words
    {"title = ", "name = ", 2, 8,
     "cannot redefine existing string 'name'"},  // a key given twice, too
};

TEST_F(ProblemFileTest, names_the_place_and_the_expectation_of_every_mistake) {
  for (const BadFile& bad : kBadFiles) {
    const LoadedProblem loaded = load(with(bad.from, bad.to));
    const bool found = std::any_of(
        loaded.mistakes.begin(), loaded.mistakes.end(), [&](const InputMistake& mistake) {
          return mistake.line == bad.line && mistake.column == bad.column &&
                 mistake.sentence.find(bad.sentence) != std::string::npos;
        });
    EXPECT_TRUE(found) << bad.from << " -> " << bad.to << ": wanted " << bad.line << ":"
                       << bad.column << " " << bad.sentence << "\nbut got\n"
                       << render_mistakes(loaded.mistakes);
    EXPECT_EQ(loaded.problem.content_hash, "") << "a problem with mistakes has no hash";
  }
}

TEST_F(ProblemFileTest, one_change_brings_no_mistake_that_merely_follows) {
  EXPECT_EQ(load(with("least = 1, most = 100", "least = 1")).mistakes.size(), 1u);
  EXPECT_EQ(load(with("rows = 8, columns = 4", "rows = 8")).mistakes.size(), 1u);
  EXPECT_EQ(load(with("text = \"normal\"\n", "")).mistakes.size(), 1u);
  EXPECT_EQ(load(with("[axes]", "[axis]")).mistakes.size(),
            2u);  // unknown key, and 'axes' is missing
}

TEST_F(ProblemFileTest, reports_all_mistakes_at_once_in_the_order_of_the_file) {
  std::string text = with("\"Row sums\"", "3");
  text.replace(text.find("\"f64\""), 5, "\"f16\"");
  text.replace(text.find("rows = 9"), 8, "rows = 0");
  const LoadedProblem loaded = load(text);
  const std::string file = (fs::canonical(folder_) / "problem.toml").string();
  EXPECT_EQ(render_mistakes(loaded.mistakes),
            file + ":2:9: 'title' must be a string, not an integer\n" +  //
                file + ":17:8: unknown type 'f16'; known: f32, f64, i32, i64\n" + file +
                ":32:17: axis 'rows' is 0, outside 1 to 100\n");
}

TEST_F(ProblemFileTest, misses_problem_cpp) {
  fs::remove(folder_ / "problem.cpp");
  const LoadedProblem loaded = load(kGood);
  ASSERT_EQ(loaded.mistakes.size(), 1u);
  EXPECT_EQ(loaded.mistakes[0].line, 0);
  EXPECT_THAT(render_mistakes(loaded.mistakes), HasSubstr("problem.cpp: the file is missing"));
}

TEST_F(ProblemFileTest, refuses_cases_that_no_memory_holds) {
  std::string text = with("most = 100 }", "most = 2000000000 }");
  text.replace(text.find("most = 50"), 9, "most = 2000000000");
  text.replace(text.find("rows = 9, columns = 40"), 22, "rows = 2000000000, columns = 2000000000");
  const LoadedProblem loaded = load(text);
  EXPECT_THAT(render_mistakes(loaded.mistakes),
              HasSubstr(":32:8: tensor 'x' of this case has more than"));
}

TEST_F(ProblemFileTest, hash_covers_what_decides_a_verdict_and_nothing_else) {
  const std::string before = load(kGood).problem.content_hash;
  write("README.md", "words");
  EXPECT_EQ(load(kGood).problem.content_hash, before);
  EXPECT_NE(load(with("Row sums", "Row sum")).problem.content_hash, before);
  write("problem.cpp", "// other code\n");
  const std::string other_code = load(kGood).problem.content_hash;
  EXPECT_NE(other_code, before);
  write("limits.h", "// header\n");
  const std::string with_header = load(kGood).problem.content_hash;
  EXPECT_NE(with_header, other_code);
  write("baselines/plain.cpp", "// better\n");
  EXPECT_NE(load(kGood).problem.content_hash, with_header);
}

std::string with_a_cuda_case() {
  return std::string(kGood) +
         "[[case]]\nname = \"large\"\naxes = { rows = 50, columns = 50 }\nfamily = \"dense\"\n"
         "timed = true\ntargets = [\"cuda\"]\n";
}

TEST_F(ProblemFileTest, a_target_sees_its_own_cases_and_sources) {
  write("problem.cu", "// kernels\n");
  write("baselines/plain.cu", "// baseline\n");
  std::string text = with_a_cuda_case();
  text.replace(text.find("axes = { rows = 8"), 4, "targets = [\"cpu\"]\naxes");
  text += "[[baseline]]\nname = \"plain\"\ntext = \"a library\"\nsource = \"baselines/plain.cu\"\n";
  const LoadedProblem loaded = load(text);
  ASSERT_EQ(render_mistakes(loaded.mistakes), "");
  EXPECT_EQ(loaded.problem.cuda_code, fs::canonical(folder_) / "problem.cu");
  EXPECT_THAT(loaded.problem.targets, testing::ElementsAre("cpu", "cuda"));
  const auto cases = [](const Problem& problem) {
    std::vector<std::string> names;
    for (const Case& one : problem.cases) names.push_back(one.name);
    return names;
  };
  const Problem cpu = for_target(loaded.problem, "cpu");
  EXPECT_THAT(cases(cpu), testing::ElementsAre("r8", "r9"));
  ASSERT_EQ(cpu.baselines.size(), 1u);
  EXPECT_EQ(cpu.baselines[0].name, "plain");
  EXPECT_THAT(cpu.targets, testing::ElementsAre("cpu"));
  const Problem cuda = for_target(loaded.problem, "cuda");
  EXPECT_THAT(cases(cuda), testing::ElementsAre("large", "r9"));
  ASSERT_EQ(cuda.baselines.size(), 1u);
  EXPECT_EQ(cuda.baselines[0].name, "plain");  // a name is one target's own
  EXPECT_EQ(cuda.baselines[0].source.extension(), ".cu");
  EXPECT_NE(cpu.content_hash, cuda.content_hash);
}

// Who fails both kinds hears of the public one.
TEST_F(ProblemFileTest, public_cases_come_before_private_ones) {
  const auto place_first = [](const std::string& pool) {
    return with(
        "[[case]]\nname = \"r8\"",
        "[[case]]\nname = \"first\"\naxes = { rows = 3, columns = 4 }\nfamily = \"dense\"\n" +
            pool + "[[case]]\nname = \"r8\"");
  };
  const auto names = [](const Problem& problem) {
    std::string all;
    for (const Case& one : problem.cases) all += one.name + " ";
    return all;
  };
  EXPECT_EQ(names(load(place_first("pool = \"private\"\n")).problem), "r8 first r9 ");
  EXPECT_EQ(names(load(place_first("")).problem), "first r8 r9 ");
}

TEST_F(ProblemFileTest, without_a_cu_file_there_is_no_cuda) {
  EXPECT_THAT(load(kGood).problem.targets, testing::ElementsAre("cpu"));
  EXPECT_TRUE(load(kGood).problem.cuda_code.empty());
}

TEST_F(ProblemFileTest, the_hash_of_a_target_ignores_what_only_others_see) {
  const auto hash = [](const LoadedProblem& loaded, const char* target) {
    return for_target(loaded.problem, target).content_hash;
  };
  const LoadedProblem before = load(kGood);
  write("problem.cu", "// kernels\n");
  write("parts.cuh", "// more\n");
  const LoadedProblem with_cuda = load(with_a_cuda_case());
  EXPECT_NE(with_cuda.problem.content_hash, before.problem.content_hash);
  EXPECT_EQ(hash(with_cuda, "cpu"), hash(before, "cpu"));
  EXPECT_NE(hash(with_cuda, "cuda"), hash(before, "cuda"));
  write("parts.cuh", "// other\n");
  EXPECT_EQ(hash(load(with_a_cuda_case()), "cpu"), hash(before, "cpu"));
  EXPECT_NE(hash(load(with_a_cuda_case()), "cuda"), hash(with_cuda, "cuda"));
  EXPECT_NE(hash(load(with("rows = 9", "rows = 10")), "cpu"), hash(before, "cpu"));
  EXPECT_NE(hash(load(with("-ffp-contract=fast", "-ffp-contract=off")), "cpu"),
            hash(before, "cpu"));
  EXPECT_EQ(hash(load(with("Row sums", "Row sum")), "cpu"), hash(before, "cpu"));
}

TEST_F(ProblemFileTest, finds_by_name_and_by_path) {
  write("problem.toml", kGood);
  const fs::path expected = fs::canonical(folder_);
  EXPECT_EQ(*find_problem_folder("sums", problems_), expected);
  EXPECT_EQ(*find_problem_folder(folder_.string(), "/nowhere"), expected);
  EXPECT_EQ(*find_problem_folder(folder_.string() + "/", "/nowhere"), expected);
}

TEST_F(ProblemFileTest, a_misspelt_name_brings_a_suggestion) {
  write("problem.toml", kGood);
  const auto missing = find_problem_folder("sumz", problems_);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_THAT(missing.error().text(), HasSubstr("did you mean 'sums'?"));
  EXPECT_THAT(find_problem_folder("./no/folder", problems_).error().text(),
              HasSubstr("no such folder"));
  EXPECT_THAT(find_problem_folder(problems_.string(), problems_).error().text(),
              HasSubstr("holds no problem.toml"));
}

TEST_F(ProblemFileTest, lists_problems_without_the_template) {
  write("problem.toml", kGood);
  fs::create_directories(problems_ / "template");
  fs::create_directories(problems_ / "empty");
  ASSERT_TRUE(write_file(problems_ / "template/problem.toml", "name = \"template\"\n").ok());
  EXPECT_THAT(list_problems(problems_), testing::ElementsAre(folder_));
  EXPECT_TRUE(list_problems(problems_ / "nowhere").empty());
}

std::string separation_text(double honest, double cheat, const std::string& case_name) {
  return R"({"problem": "sums", "grade": "fp32", "rows": [{"check": "error", "case": ")" +
         case_name + R"(", "family": "dense", "unit": "u", "honest": )" + std::to_string(honest) +
         R"(, "limit": 16, "cheat": )" + std::to_string(cheat) +
         R"(, "honest_by": "known_good/a", "cheat_by": "known_wrong/b"}]})";
}

TEST_F(ProblemFileTest, accepts_a_stored_separation_that_is_wide) {
  write("separation.json", separation_text(2, 20, "r8"));
  EXPECT_EQ(render_mistakes(load(kGood).mistakes), "");
}

TEST_F(ProblemFileTest, refuses_a_problem_whose_check_holds_too_little_apart) {
  write("separation.json", separation_text(2, 19, "r8"));
  const std::string mistakes = render_mistakes(load(kGood).mistakes);
  EXPECT_THAT(mistakes, HasSubstr("separation.json: case r8, check error: known_wrong/b has 19"));
  EXPECT_THAT(mistakes, HasSubstr("only 9.5 times"));
  EXPECT_THAT(mistakes, HasSubstr("run `kbeam separation sums`"));
}

TEST_F(ProblemFileTest, refuses_a_stored_separation_that_is_of_other_cases_or_damaged) {
  write("separation.json", separation_text(2, 20, "gone"));
  const std::string mistakes = render_mistakes(load(kGood).mistakes);
  EXPECT_THAT(mistakes, HasSubstr("case gone is not in problem.toml"));
  EXPECT_THAT(mistakes, HasSubstr("the timed case r8 has no row"));
  write("separation.json", "{");
  EXPECT_EQ(load(kGood).mistakes.size(), 1u);
}

class TemplateTest : public ProblemFileTest {
 protected:
  void SetUp() override {
    ProblemFileTest::SetUp();
    template_ = problems_ / "template";
    fs::create_directories(template_ / "sketches");
    ASSERT_TRUE(write_file(template_ / "problem.toml",
                           "# a \"template\"\nname  = \"template\"\ntitle = \"template\"\n")
                    .ok());
    ASSERT_TRUE(write_file(template_ / "problem.cpp", "code").ok());
    ASSERT_TRUE(write_file(template_ / "sketches/a.cpp", "sketch").ok());
    ASSERT_TRUE(write_file(template_ / "CMakeLists.txt", "tests of the template").ok());
  }
  fs::path template_;
};

TEST_F(TemplateTest, copies_all_but_the_build_file_under_the_new_name) {
  const auto made = make_problem_from_template(template_, problems_ / "fresh");
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_EQ(*read_file(problems_ / "fresh/problem.toml"),
            "# a \"template\"\nname  = \"fresh\"\ntitle = \"template\"\n");
  EXPECT_EQ(*read_file(problems_ / "fresh/sketches/a.cpp"), "sketch");
  EXPECT_FALSE(fs::exists(problems_ / "fresh/CMakeLists.txt"));
  EXPECT_EQ(std::distance(fs::directory_iterator(problems_), fs::directory_iterator()),
            3);  // no draft left
}

TEST_F(TemplateTest, refuses_a_folder_that_exists_and_a_bad_name) {
  EXPECT_THAT(make_problem_from_template(template_, folder_).error().text(),
              HasSubstr("exists already"));
  EXPECT_THAT(make_problem_from_template(template_, problems_ / "my-problem").error().text(),
              HasSubstr("'my-problem' cannot be the name"));
  EXPECT_FALSE(fs::exists(problems_ / "my-problem"));
}

TEST_F(TemplateTest, a_template_without_its_name_line_leaves_nothing_behind) {
  ASSERT_TRUE(write_file(template_ / "problem.toml", "title = \"template\"\n").ok());
  EXPECT_EQ(make_problem_from_template(template_, problems_ / "fresh").error().code,
            ErrorCode::corrupt);
  EXPECT_EQ(std::distance(fs::directory_iterator(problems_), fs::directory_iterator()), 2);
}

}  // namespace
}  // namespace kbeam
