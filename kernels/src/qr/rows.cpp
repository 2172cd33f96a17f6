#include "qr/rows.h"

namespace kernelbeam {

bool is_available(InstructionSet set) {
  switch (set) {
    case InstructionSet::any:
      return true;
#if defined(__x86_64__)
    // By the features of each level that gcc or clang would emit: clang 14 does not know the
    // levels' names here.
    case InstructionSet::x86_64_v2:
      return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    case InstructionSet::x86_64_v3:
      return is_available(InstructionSet::x86_64_v2) && __builtin_cpu_supports("avx2") &&
             __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
             __builtin_cpu_supports("fma");
    case InstructionSet::x86_64_v4:
      return is_available(InstructionSet::x86_64_v3) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
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
