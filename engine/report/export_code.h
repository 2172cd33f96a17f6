// The generated parts of an exported library: text in C, C++ and CMake that follows from a problem
// and a candidate. Reads no files.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/candidate.h"
#include "model/problem.h"

namespace kbeam {

// A distinct (source, knobs) of a candidate, under the name of its file in the exported folder.
struct ExportedRow {
  std::string entry;  // the symbol: NAME_row_0
  std::string file;   // "interleaved.cpp"
  const Row* row = nullptr;
};
// Rows that agree in source and knobs share an entry, files that agree in text share a name.
struct ExportedRows {
  std::vector<ExportedRow> entries;
  std::vector<std::size_t> entry_of_row;     // one a row of the candidate
  std::map<std::string, std::string> files;  // name -> text
};
ExportedRows name_rows(const std::string& library, const Candidate& candidate);

using Slots = std::map<std::string_view, std::string>;

// What the CMake file says of the rows, with the problem's own flags.
Slots cmake_slots(const std::string& library, const Problem& problem, const ExportedRows& rows);
// Everything that the header, the library, the test and the examples want.
Slots code_slots(const std::string& library, const Problem& problem, const Candidate& candidate,
                 const ExportedRows& rows, const std::string& grade);

}  // namespace kbeam
