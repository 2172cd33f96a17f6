// Reads and validates a problem folder. Every mistake in problem.toml is reported at once, with
// file, line, column and what was expected. Does not compile or run anything.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/problem.h"

namespace kbeam {

struct InputMistake {
  std::filesystem::path file;
  int line = 0;  // 1-based; 0 when it concerns the whole file
  int column = 0;
  std::string sentence;  // "unknown key 'famly'; did you mean 'family'?"
};

struct LoadedProblem {
  Problem problem;
  std::vector<InputMistake> mistakes;  // empty: the problem can be used
};

// `named` is a folder, or the name of a folder below `problems`.
Result<std::filesystem::path> find_problem_folder(const std::string& named,
                                                  const std::filesystem::path& problems);
// Refuses a problem whose stored separation (kbeam separation) is too little as well.
Result<LoadedProblem> load_problem(const std::filesystem::path& folder);
std::string render_mistakes(const std::vector<InputMistake>& mistakes);

// Folders below `problems` that hold a problem.toml; the template is left out.
std::vector<std::filesystem::path> list_problems(const std::filesystem::path& problems);

// Copies the template to `target` under its own name. Refuses a folder that exists or a name that
// is no identifier.
Result<void> make_problem_from_template(const std::filesystem::path& problem_template,
                                        const std::filesystem::path& target);

}  // namespace kbeam
