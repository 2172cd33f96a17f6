// Which instructions a built kernel consists of, from the disassembler's text: counts in the code,
// not in its execution.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kbeam {

// One group of instructions that compete for the same unit ("fp32": FFMA, FADD, FMUL).
struct InstructionGroup {
  std::string name;
  std::int64_t count = 0;
  std::map<std::string, std::int64_t> opcodes;
};

struct InstructionMix {
  std::int64_t total = 0;
  std::vector<InstructionGroup> groups;  // only those that occur, the largest first
};

// `cuobjdump -sass`: kernels by mangled name. Padding behind a kernel's end is left out.
std::map<std::string, InstructionMix> read_sass(std::string_view listing);

// `objdump -d --no-show-raw-insn` of x86-64 code: all functions together, by width.
InstructionMix read_x86(std::string_view listing);

// Runs the disassembler that fits the module's language; unavailable when this machine has none.
Result<std::string> disassemble_sass(const std::filesystem::path& module);
Result<std::string> disassemble_x86(const std::filesystem::path& module);

}  // namespace kbeam
