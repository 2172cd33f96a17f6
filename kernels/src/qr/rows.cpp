#include "qr/rows.h"

namespace kernelbeam {

bool is_available(InstructionSet set) {
  switch (set) {
    case InstructionSet::any:
      return true;
#if defined(__x86_64__)
    case InstructionSet::x86_64_v2:
      return __builtin_cpu_supports("x86-64-v2") != 0;
    case InstructionSet::x86_64_v3:
      return __builtin_cpu_supports("x86-64-v3") != 0;
    case InstructionSet::x86_64_v4:
      return __builtin_cpu_supports("x86-64-v4") != 0;
#endif
    default:
      return false;
  }
}

const char* name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::any:
      return "any";
    case InstructionSet::x86_64_v2:
      return "x86-64-v2";
    case InstructionSet::x86_64_v3:
      return "x86-64-v3";
    case InstructionSet::x86_64_v4:
      return "x86-64-v4";
  }
  return "unknown";
}

const QrRow* choose_qr_row(std::span<const QrRow> rows, std::int64_t columns) {
  for (const QrRow& row : rows)
    if (columns >= row.least_columns && columns <= row.most_columns &&
        is_available(row.instruction_set))
      return &row;
  return nullptr;
}

}  // namespace kernelbeam
