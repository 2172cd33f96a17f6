#include "problem/problem_file.h"

#include <algorithm>
#include <fstream>
#include <utility>
#include <variant>

#include "base/files.h"
#include "base/hash.h"
#include "model/separation.h"
#include "problem/problem_reader.h"
#include "problem/table_reader.h"
#include "problem/toml_tree.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

constexpr char kFileName[] = "problem.toml";
constexpr char kTemplateName[] = "template";

bool holds_problem(const fs::path& folder) {
  return fs::is_regular_file(folder / kFileName);
}

// Absolute, without dots and links, so that the folder's name is its name.
fs::path settled(const fs::path& folder) {
  std::error_code trouble;
  fs::path result = fs::weakly_canonical(fs::absolute(folder), trouble);
  return trouble ? folder : result;
}

std::vector<fs::path> files_beside(const Problem& problem, std::string_view extension) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(problem.folder))
    if (entry.path().extension() == extension) files.push_back(entry.path());
  return files;
}

// problem.cpp, the headers beside it and the baselines; for cuda problem.cu and its headers too,
// which may include the others.
std::vector<fs::path> code_that_decides(const Problem& problem, std::string_view target) {
  std::vector<fs::path> files = files_beside(problem, ".h");
  files.push_back(problem.code);
  if (target == "cuda") {
    const std::vector<fs::path> more = files_beside(problem, ".cuh");
    files.insert(files.end(), more.begin(), more.end());
    if (!problem.cuda_code.empty()) files.push_back(problem.cuda_code);
  }
  for (const BaselineSpec& baseline : problem.baselines)
    if (serves(baseline.targets, target)) files.push_back(baseline.source);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

Result<void> hash_files(const Problem& problem, const std::vector<fs::path>& files,
                        Hasher& hasher) {
  for (const fs::path& file : files) {
    ASSIGN_OR_RETURN(const std::string content, read_file(file));
    hasher.field(file.lexically_relative(problem.folder).generic_string()).field(content);
  }
  return {};
}

void hash_words(const std::vector<std::string>& words, Hasher& hasher) {
  for (const std::string& word : words) hasher.field(word);
  hasher.field("");
}

// What problem.toml says that decides a verdict; names and texts for people are left out.
void hash_declarations(const Problem& problem, Hasher& hasher) {
  for (const Axis& axis : problem.axes)
    hash_words(
        {axis.name, std::to_string(axis.least), std::to_string(axis.most), axis.derived_from},
        hasher);
  for (const TensorSpec& tensor : problem.tensors) {
    hash_words({tensor.name, std::to_string(tensor.role), std::to_string(tensor.type)}, hasher);
    hash_words(tensor.shape, hasher);
    hash_words(tensor.memory_order, hasher);
  }
  for (const GradeSpec& grade : problem.grades) hasher.field(grade.name);
  for (const Case& one : problem.cases) {
    hash_words({one.name, one.family, std::to_string(static_cast<int>(one.pool)),
                one.timed ? "timed" : "checked"},
               hasher);
    for (const auto& [axis, value] : one.axes) hash_words({axis, std::to_string(value)}, hasher);
  }
  for (const BaselineSpec& baseline : problem.baselines) {
    hasher.field(baseline.name);
    hash_words(baseline.link, hasher);
  }
  hasher.field(problem.regime_axis);
  hash_words(problem.compile_flags, hasher);
}

Result<void> fill_hashes(Problem& problem) {
  Hasher all;
  RETURN_IF_ERROR(hash_files(problem, {problem.folder / kFileName}, all));
  for (const std::string_view target : kTargets) {
    const std::vector<fs::path> files = code_that_decides(problem, target);
    Hasher one;
    one.field(target);
    hash_declarations(for_target(problem, target), one);
    RETURN_IF_ERROR(hash_files(problem, files, one));
    RETURN_IF_ERROR(hash_files(problem, files, all));
    problem.target_hashes[std::string(target)] = one.hex();
  }
  problem.content_hash = all.hex();
  return {};
}

// The stored separation refuses a problem whose checks cannot tell honest candidates from cheats. A
// problem that has none measured is trusted: its author has said nothing yet.
std::vector<std::string> find_weak_checks(const Problem& problem) {
  const fs::path file = problem.folder / kSeparationFile;
  if (!fs::exists(file)) return {};
  const std::string advice = "; run `kbeam separation " + problem.name + "`";
  const Result<std::string> text = read_file(file);
  if (!text.ok()) return {text.error().text()};
  const Result<Separation> stored = separation_from_text(*text, "it");
  if (!stored.ok()) return {stored.error().happened + advice};
  std::vector<std::string> weak;
  for (const SeparationRow& row : stored->rows) {
    if (std::string words = refusal(row); !words.empty()) weak.push_back(words + advice);
    if (problem.find_case(row.case_name) == nullptr)
      weak.push_back("case " + row.case_name + " is not in " + kFileName + advice);
  }
  // Measured with the candidates of known_good/ and known_wrong/, which are for the cpu.
  for (const Case& the_case : for_target(problem, "cpu").timed_cases())
    if (std::none_of(stored->rows.begin(), stored->rows.end(),
                     [&](const SeparationRow& row) { return row.case_name == the_case.name; }))
      weak.push_back("the timed case " + the_case.name + " has no row" + advice);
  return weak;
}

// `name = "template"` at the start of a line, in whatever spacing.
Result<std::string> renamed(const std::string& text, const std::string& name) {
  const std::string quoted = std::string("\"") + kTemplateName + "\"";
  for (std::size_t at = text.find(quoted); at != std::string::npos;
       at = text.find(quoted, at + 1)) {
    const std::size_t line = text.rfind('\n', at) + 1;  // npos + 1 is 0: the first line
    std::string before = text.substr(line, at - line);
    std::erase_if(before, [](char c) { return c == ' ' || c == '\t'; });
    if (before == "name=") return std::string(text).replace(at, quoted.size(), "\"" + name + "\"");
  }
  return Error{ErrorCode::corrupt, "copy the problem template",
               "its problem.toml has no line name = \"template\"", "reinstall kbeam"};
}

Result<void> copy_template(const fs::path& from, const fs::path& to, const std::string& name) {
  std::error_code trouble;
  for (auto entry = fs::recursive_directory_iterator(from, trouble);
       !trouble && entry != fs::end(entry); entry.increment(trouble)) {
    const fs::path relative = entry->path().lexically_relative(from);
    if (entry->is_directory()) {
      fs::create_directory(to / relative, trouble);
    } else if (relative == kFileName) {
      ASSIGN_OR_RETURN(const std::string text, read_file(entry->path()));
      ASSIGN_OR_RETURN(const std::string changed, renamed(text, name));
      RETURN_IF_ERROR(write_file(to / relative, changed));
    } else if (relative.filename() != "CMakeLists.txt") {
      ASSIGN_OR_RETURN(const std::string content, read_file(entry->path()));
      RETURN_IF_ERROR(write_file(to / relative, content));
    }
    if (trouble) break;
  }
  if (trouble)
    return Error{ErrorCode::io, "copy " + from.string() + " to " + to.string(), trouble.message(),
                 "check free space and permissions"};
  return {};
}

}  // namespace

Result<fs::path> find_problem_folder(const std::string& named, const fs::path& problems) {
  const bool is_name = is_identifier(named);
  if (is_name && holds_problem(problems / named)) return settled(problems / named);
  if (holds_problem(named)) return settled(named);
  const Error missing{ErrorCode::not_found, "find the problem '" + named + "'", "", ""};
  if (!is_name || fs::is_directory(named)) {
    Error error = missing;
    const bool exists = fs::is_directory(named);
    error.happened =
        exists ? settled(named).string() + " holds no problem.toml" : "there is no such folder";
    error.advice =
        "name a folder that holds a problem.toml, or make one with `kbeam new-problem NAME`";
    return error;
  }
  std::vector<std::string> known;
  for (const fs::path& folder : list_problems(problems))
    known.push_back(folder.filename().string());
  Error error = missing;
  error.happened = "no folder of that name in " + problems.string() + suggestion(named, known);
  error.advice = "see `kbeam problems`, or make one with `kbeam new-problem " + named + "`";
  return error;
}

Result<LoadedProblem> load_problem(const fs::path& folder) {
  const fs::path home = settled(folder);
  const fs::path file = home / kFileName;
  ASSIGN_OR_RETURN(const std::string text, read_file(file));
  MistakeList mistakes(file);
  LoadedProblem loaded;
  loaded.problem.folder = home;
  const auto parsed = parse_toml(text);
  if (const auto* error = std::get_if<TomlSyntaxError>(&parsed))
    mistakes.add(error->position, error->sentence);
  else
    loaded.problem = ProblemReader(home, mistakes).read(std::get<TomlNode>(parsed));
  loaded.mistakes = mistakes.take();
  if (loaded.mistakes.empty())
    for (std::string& sentence : find_weak_checks(loaded.problem))
      loaded.mistakes.push_back({home / kSeparationFile, 0, 0, std::move(sentence)});
  if (loaded.mistakes.empty()) {
    RETURN_IF_ERROR(fill_hashes(loaded.problem));
  }
  return loaded;
}

std::string render_mistakes(const std::vector<InputMistake>& mistakes) {
  std::string text;
  for (const InputMistake& mistake : mistakes) {
    text += mistake.file.string() + ":";
    if (mistake.line > 0)
      text += std::to_string(mistake.line) + ":" + std::to_string(mistake.column) + ":";
    text += " " + mistake.sentence + "\n";
  }
  return text;
}

std::vector<fs::path> list_problems(const fs::path& problems) {
  std::vector<fs::path> folders;
  std::error_code trouble;
  for (const fs::directory_entry& entry : fs::directory_iterator(problems, trouble))
    if (entry.path().filename() != kTemplateName && holds_problem(entry.path()))
      folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

Result<void> make_problem_from_template(const fs::path& problem_template, const fs::path& target) {
  const fs::path goal = settled(target);
  const std::string name = goal.filename().string();
  const std::string attempted = "make the problem " + goal.string();
  if (!is_identifier(name) || name == kTemplateName)
    return Error{ErrorCode::bad_input, attempted, "'" + name + "' cannot be the name of a problem",
                 "use letters, digits and underscores, not beginning with a digit"};
  if (fs::exists(goal))
    return Error{ErrorCode::bad_input, attempted, "it exists already",
                 "choose another name, or remove it"};
  if (!holds_problem(problem_template))
    return Error{ErrorCode::not_found, attempted, "no template in " + problem_template.string(),
                 "reinstall kbeam"};
  // Made beside and renamed: nobody sees half a problem.
  ASSIGN_OR_RETURN(const fs::path draft,
                   make_temporary_folder(goal.parent_path(), "." + name + ".part-"));
  Result<void> copied = copy_template(problem_template, draft, name);
  std::error_code trouble;
  fs::permissions(draft,
                  fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                      fs::perms::others_read | fs::perms::others_exec,
                  trouble);
  if (copied.ok()) fs::rename(draft, goal, trouble);
  if (!copied.ok() || trouble) {
    std::error_code ignored;
    fs::remove_all(draft, ignored);
  }
  if (copied.ok() && trouble)
    return Error{ErrorCode::io, attempted, trouble.message(), "check permissions"};
  return copied;
}

}  // namespace kbeam
