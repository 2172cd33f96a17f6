// problem.toml's tables -> Problem, one section a function. Collects mistakes; touches the disk
// only to see whether the files that are named exist.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/problem.h"
#include "problem/table_reader.h"
#include "problem/toml_tree.h"

namespace kbeam {

class ProblemReader {
 public:
  ProblemReader(const std::filesystem::path& folder, MistakeList& mistakes)
      : folder_(folder), mistakes_(mistakes) {
    problem_.folder = folder;
    problem_.code = folder / "problem.cpp";
    if (std::filesystem::is_regular_file(folder / "problem.cu"))
      problem_.cuda_code = folder / "problem.cu";
  }
  Problem read(const TomlNode& root);

 private:
  struct NamedText {
    std::string name;
    std::string text;
  };
  struct LinkedSource {
    std::string name;
    std::string text;
    std::filesystem::path source;
    std::vector<std::string> link;
    Targets targets;
  };

  void read_identity(TableReader& root);
  void read_axes(TableReader& root);
  void read_axis(const TomlEntry& entry);
  void check_derived_axes();
  void read_tensors(TableReader& root);
  void read_tensor(const TomlNode& table);
  std::vector<std::string> read_shape(TableReader& reader);
  std::vector<std::string> read_memory_order(TableReader& reader,
                                             const std::vector<std::string>& shape);
  std::vector<NamedText> read_named_texts(TableReader& root, std::string_view key);
  void read_cases(TableReader& root);
  void read_case(const TomlNode& table);
  bool read_case_axes(const TomlNode& table, Case& the_case);
  bool derive_axes(TomlPosition where, Case& the_case);
  void check_size(TomlPosition where, const Case& the_case);
  std::vector<LinkedSource> read_sources(TableReader& root, std::string_view key, Need need);
  std::filesystem::path read_source_path(TableReader& reader);
  Targets read_targets(TableReader& reader);
  Targets read_source_targets(TableReader& reader, const std::filesystem::path& source);
  void find_targets();
  void read_regimes(TableReader& root);
  void read_build(TableReader& root);

  bool is_new(std::map<std::string, TomlPosition>& seen, const LocatedText& name,
              std::string_view kind);
  const Axis* find_axis(const std::string& name) const;
  std::vector<std::string> axis_names() const;

  std::filesystem::path folder_;
  MistakeList& mistakes_;
  Problem problem_;
  std::map<std::string, TomlPosition> case_names_;
  std::map<std::string, TomlPosition> tensor_names_;
  std::map<std::string, TomlPosition>
      derived_axes_;  // that can be evaluated, and where each is declared
  std::map<std::string, TomlPosition> zero_axes_;  // that may be 0: no tensor has them
  bool axes_are_sound_ = true;  // otherwise cases are not blamed for what follows from a bad axis
};

}  // namespace kbeam
