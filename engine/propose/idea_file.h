// The builtin proposer's material: ideas.toml and sketches/ of a problem folder. Every mistake is
// reported. Does not read knobs or compile.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/candidate.h"

namespace kbeam {

// One [[idea]] of ideas.toml with the text of its sketch. The id covers family, category and text,
// so that it survives changes of the code. `parents` in the file names families; in Idea it holds
// the ids of their ideas.
struct SketchFile {
  Idea idea;
  std::filesystem::path path;
  std::string source;
};

struct LoadedIdeas {
  std::vector<SketchFile> sketches;   // in the order of the file, without those that have mistakes
  std::vector<std::string> mistakes;  // "ideas.toml:12:3: ...", in the order of the file
};
// Fails only when there is no ideas.toml or it cannot be read.
Result<LoadedIdeas> load_ideas(const std::filesystem::path& problem_folder);

}  // namespace kbeam
