// The builtin proposer's material: ideas.toml and sketches/ of a problem folder. Every mistake is reported.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/candidate.h"

namespace kbeam {

// One [[idea]] of ideas.toml with the text of its sketch.
struct SketchFile {
  Idea idea;
  std::filesystem::path path;
  std::string source;
};

struct LoadedIdeas {
  std::vector<SketchFile> sketches;
  std::vector<std::string> mistakes;  // "ideas.toml:12:3: ..."
};
Result<LoadedIdeas> load_ideas(const std::filesystem::path& problem_folder);

}  // namespace kbeam
