#include "build/instruction_mix.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/process.h"
#include "build/toolchain.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

struct Rule {
  std::string_view beginning;  // of an opcode without its modifiers; the first that fits
  std::string_view group;
};

// Hopper's names and, where they differ, those of the architectures beside it.
constexpr Rule kSassRules[] = {{"HGMMA", "wgmma"},
                               {"QGMMA", "wgmma"},
                               {"IGMMA", "wgmma"},
                               {"BGMMA", "wgmma"},
                               {"UTCHMMA", "wgmma"},
                               {"UTCQMMA", "wgmma"},
                               {"HMMA", "mma"},
                               {"QMMA", "mma"},
                               {"IMMA", "mma"},
                               {"BMMA", "mma"},
                               {"DMMA", "mma fp64"},
                               {"WARPGROUP", "wgmma wait"},
                               {"FFMA", "fp32"},
                               {"FADD", "fp32"},
                               {"FMUL", "fp32"},
                               {"DFMA", "fp64"},
                               {"DADD", "fp64"},
                               {"DMUL", "fp64"},
                               {"DSETP", "fp64"},
                               {"HFMA2", "fp16"},
                               {"HADD2", "fp16"},
                               {"HMUL2", "fp16"},
                               {"HSETP2", "fp16"},
                               {"HMNMX2", "fp16"},
                               {"MUFU", "special"},
                               {"FSETP", "fp32 compare"},
                               {"FSEL", "fp32 compare"},
                               {"FMNMX", "fp32 compare"},
                               {"FCHK", "fp32 compare"},
                               {"FSET", "fp32 compare"},
                               {"LDGSTS", "copy to shared"},
                               {"UTMA", "tma"},
                               {"UBLKCP", "tma"},
                               {"UBLKRED", "tma"},
                               {"LDGDEPBAR", "barrier"},
                               {"DEPBAR", "barrier"},
                               {"LDG", "load global"},
                               {"LD", "load"},
                               {"STG", "store global"},
                               {"STAS", "store cluster"},
                               {"SYNCS", "barrier"},
                               {"BAR", "barrier"},
                               {"WARPSYNC", "barrier"},
                               {"MEMBAR", "fence"},
                               {"FENCE", "fence"},
                               {"ERRBAR", "fence"},
                               {"CGAERRBAR", "fence"},
                               {"CCTL", "fence"},
                               {"UCGABAR", "barrier"},
                               {"ENDCOLLECTIVE", "barrier"},
                               {"SHFL", "shuffle"},
                               {"REDUX", "shuffle"},
                               {"VOTE", "shuffle"},
                               {"MATCH", "shuffle"},
                               {"ATOM", "atomic"},
                               {"RED", "atomic"},
                               {"ST", "store"},
                               {"BRA", "branch"},
                               {"BRX", "branch"},
                               {"BSSY", "branch"},
                               {"BSYNC", "branch"},
                               {"EXIT", "branch"},
                               {"CALL", "branch"},
                               {"RET", "branch"},
                               {"WARPSYNC", "barrier"},
                               {"YIELD", "branch"},
                               {"NANOSLEEP", "branch"},
                               {"I2F", "convert"},
                               {"F2I", "convert"},
                               {"F2F", "convert"},
                               {"I2I", "convert"},
                               {"F2FP", "convert"},
                               {"MOV", "move"},
                               {"UMOV", "move"},
                               {"S2R", "move"},
                               {"S2UR", "move"},
                               {"CS2R", "move"},
                               {"R2UR", "move"},
                               {"PRMT", "move"},
                               {"SEL", "move"},
                               {"P2R", "move"},
                               {"R2P", "move"},
                               {"ULDC", "constant"},
                               {"NOP", "nothing"}};

// What the rules on beginnings cannot say.
constexpr Rule kSassWhole[] = {{"LDS", "load shared"},  {"LDSM", "load shared"},
                               {"STS", "store shared"}, {"STSM", "store shared"},
                               {"LDL", "load local"},   {"STL", "store local"},
                               {"LDC", "constant"},     {"REDUX", "shuffle"}};

// The compiler moves constants with multipliers that are free.
bool is_disguised_move(std::string_view instruction) {
  return instruction.starts_with("IMAD.MOV") || instruction.starts_with("IMAD.U32") ||
         (instruction.starts_with("HFMA2") &&
          instruction.find("-RZ, RZ,") != std::string_view::npos);
}

std::string_view group_of_sass(std::string_view instruction) {
  if (is_disguised_move(instruction)) return "move";
  const std::string_view opcode = instruction.substr(0, instruction.find_first_of(". \t;"));
  for (const Rule& rule : kSassWhole)
    if (opcode == rule.beginning) return rule.group;
  for (const Rule& rule : kSassRules)
    if (opcode.starts_with(rule.beginning)) return rule.group;
  return "integer";
}

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

std::string_view take_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(begin);
  const std::string_view word = text.substr(0, std::min(text.find_first_of(" \t;"), text.size()));
  text.remove_prefix(word.size());
  return word;
}

class Counter {
 public:
  void add(std::string_view group, std::string_view opcode) {
    InstructionGroup& counted = groups_[std::string(group)];
    ++counted.count;
    ++counted.opcodes[std::string(opcode)];
  }

  InstructionMix mix() const {
    InstructionMix mix;
    for (const auto& [name, group] : groups_) {
      mix.groups.push_back(group);
      mix.groups.back().name = name;
      mix.total += group.count;
    }
    std::stable_sort(mix.groups.begin(), mix.groups.end(),
                     [](const auto& a, const auto& b) { return a.count > b.count; });
    return mix;
  }

 private:
  std::map<std::string, InstructionGroup> groups_;
};

// "        /*0010*/    @!P0 FFMA.FTZ R1, R2, R3, R4 ;   /* 0x... */" -> "FFMA.FTZ R1, ..."
std::string_view sass_instruction(std::string_view line) {
  const std::size_t open = line.find_first_not_of(" \t");
  if (open == std::string_view::npos || !line.substr(open).starts_with("/*")) return {};
  const std::size_t close = line.find("*/", open);
  if (close == std::string_view::npos) return {};
  if (line.substr(open + 2, close - open - 2).find("0x") != std::string_view::npos) return {};
  line.remove_prefix(close + 2);
  std::string_view rest = line;
  if (!take_word(rest).starts_with('@')) rest = line;  // no predicate
  const std::size_t begin = rest.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : rest.substr(begin);
}

// By what it does to how wide a register; nothing for what moves no data of its own.
std::string x86_group(std::string_view opcode, std::string_view operands) {
  const std::string_view width = operands.find("%zmm") != std::string_view::npos   ? "512"
                                 : operands.find("%ymm") != std::string_view::npos ? "256"
                                 : operands.find("%xmm") != std::string_view::npos ? "128"
                                                                                   : "";
  if (width.empty()) {
    const bool is_branch =
        opcode.starts_with('j') || opcode.starts_with("call") || opcode.starts_with("ret");
    return is_branch ? "branch" : "scalar";
  }
  if (opcode.starts_with('v')) opcode.remove_prefix(1);
  const bool is_single = opcode.ends_with("ss") || opcode.ends_with("sd");
  std::string group = is_single ? "one of " + std::string(width) : std::string(width) + " bit";
  if (opcode.starts_with("fm") || opcode.starts_with("fnm")) return group + " fma";
  if (opcode.starts_with("div") || opcode.starts_with("sqrt")) return group + " divide";
  if (opcode.find("gather") != std::string_view::npos ||
      opcode.find("scatter") != std::string_view::npos)
    return group + " gather";
  if (opcode.starts_with("mov") || opcode.starts_with("lddqu"))
    return operands.find('(') != std::string_view::npos ? group + " memory" : group + " move";
  for (const char* arithmetic : {"add", "sub", "mul", "max", "min"})
    if (opcode.starts_with(arithmetic)) return group + " arithmetic";
  return group + " other";
}

constexpr std::size_t kListingBytes = std::size_t{1} << 30;

Result<std::string> run_disassembler(std::vector<std::string> command) {
  const fs::path folder = fs::path(command.front()).parent_path();
  const std::string attempted = "disassemble with " + command.front();
  ASSIGN_OR_RETURN(
      ProcessOutcome outcome,
      run_process({.command = std::move(command),
                   .environment = {"PATH=" + folder.string() + ":/usr/bin:/bin", "LC_ALL=C"},
                   .timeout_s = 300,
                   .output_limit_bytes = kListingBytes}));
  if (outcome.exit_code != 0)
    return Error{ErrorCode::unavailable, attempted, outcome.output.substr(0, 500),
                 "reinstall the disassembler"};
  return std::move(outcome.output);
}

}  // namespace

std::map<std::string, InstructionMix> read_sass(std::string_view listing) {
  std::map<std::string, Counter> kernels;
  Counter* kernel = nullptr;
  int behind_the_end = 0;  // since the last branch to itself: padding follows
  while (!listing.empty()) {
    const std::string_view line = take_line(listing);
    constexpr std::string_view kFunction = "Function : ";
    if (const std::size_t at = line.find(kFunction); at != std::string_view::npos) {
      kernel = &kernels[std::string(line.substr(at + kFunction.size()))];
      behind_the_end = 0;
      continue;
    }
    if (kernel == nullptr) continue;
    const std::string_view instruction = sass_instruction(line);
    if (instruction.empty()) continue;
    const std::string_view opcode = instruction.substr(0, instruction.find_first_of(". \t;"));
    // Code ends with a branch to itself and is filled up with NOPs.
    const std::size_t open = line.find("/*");
    const std::string address = std::string(line.substr(open + 2, line.find("*/") - open - 2));
    const std::size_t digits = std::min(address.find_first_not_of('0'), address.size());
    const bool is_end = opcode == "BRA" && !address.substr(digits).empty() &&
                        line.find(" 0x" + address.substr(digits) + ";") != std::string_view::npos;
    if (is_end) behind_the_end = 1;
    if (is_end || (behind_the_end > 0 && opcode == "NOP")) continue;
    behind_the_end = 0;
    kernel->add(group_of_sass(instruction), opcode);
  }
  std::map<std::string, InstructionMix> mixes;
  for (const auto& [name, counter] : kernels) mixes[name] = counter.mix();
  return mixes;
}

InstructionMix read_x86(std::string_view listing) {
  Counter counter;
  while (!listing.empty()) {
    std::string_view line = take_line(listing);
    const std::size_t colon = line.find(":\t");  // "    1139:\tvfmadd231ps ..."
    if (colon == std::string_view::npos) continue;
    line.remove_prefix(colon + 2);
    std::string_view opcode = take_word(line);
    for (const std::string_view prefix : {"{evex}", "{vex}", "rep", "lock", "notrack", "bnd"})
      if (opcode == prefix) opcode = take_word(line);
    if (opcode.empty() || opcode.starts_with('(') || opcode.starts_with("nop") ||
        opcode.starts_with("endbr") || opcode == "cs" || opcode == "data16")
      continue;
    counter.add(x86_group(opcode, line), opcode);
  }
  return counter.mix();
}

Result<std::string> disassemble_sass(const fs::path& module) {
  const fs::path tool = find_cuda_tool("cuobjdump");
  if (tool.empty() || find_cuda_tool("nvdisasm").empty())
    return Error{ErrorCode::unavailable, "disassemble device code",
                 "this machine has no cuobjdump and nvdisasm",
                 "install cuda-cuobjdump and cuda-nvdisasm of the toolkit, or `pip install "
                 "nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm` and put both on the PATH"};
  return run_disassembler({tool.string(), "-sass", module.string()});
}

Result<std::string> disassemble_x86(const fs::path& module) {
  const fs::path tool = find_cuda_tool("objdump");
  if (tool.empty())
    return Error{ErrorCode::unavailable, "disassemble host code", "this machine has no objdump",
                 "install binutils"};
  return run_disassembler({tool.string(), "-d", "--no-show-raw-insn", module.string()});
}

}  // namespace kbeam
