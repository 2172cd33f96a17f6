#include "build/object_rules.h"

#include <cxxabi.h>
#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "base/hash.h"
#include "build/elf_file.h"

namespace kbeam {
namespace {

// The dynamic loader itself is needed for thread-local variables.
constexpr std::array<std::string_view, 5> kLanguageLibraries = {
    "libc.so.", "libm.so.", "libstdc++.so.", "libgcc_s.so.", "ld-linux-"};

std::string readable(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? text.get() : symbol;
}

// What is left of a mangled name at its first, outermost identifier: "St..." or "5kbeam...".
std::string_view outermost(std::string_view symbol) {
  if (!symbol.starts_with("_Z")) return {};
  symbol.remove_prefix(2);
  for (const std::string_view special : {"TV", "TI", "TS", "TT", "GV", "GR"})
    if (symbol.starts_with(special)) {
      symbol.remove_prefix(2);
      break;
    }
  while (symbol.starts_with('Z')) symbol.remove_prefix(1);  // a local static of what follows
  if (symbol.starts_with('N')) symbol.remove_prefix(1);
  while (!symbol.empty() &&
         std::string_view("rVKRO").find(symbol.front()) != std::string_view::npos)
    symbol.remove_prefix(1);  // qualifiers of a member function
  return symbol;
}

// "45_GLOBAL__N__..." -> "_GLOBAL__N__..."
std::string_view without_length(std::string_view name) {
  while (!name.empty() && name.front() >= '0' && name.front() <= '9') name.remove_prefix(1);
  return name;
}

template <typename List>
bool starts_with_any(std::string_view text, const List& beginnings) {
  return std::any_of(std::begin(beginnings), std::end(beginnings),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

// Weak definitions that every use of the standard headers or the contract leaves in an object.
bool is_library_instance(std::string_view symbol, SourceLanguage language) {
  if (symbol.starts_with("DW.ref.__gxx_personality_v") || symbol == "__clang_call_terminate")
    return true;
  const std::string_view name = outermost(symbol);
  constexpr std::string_view kNames[] = {"St", "Sa", "Ss", "5kbeam", "9__gnu_cxx", "10__cxxabiv1"};
  if (starts_with_any(name, kNames)) return true;
  constexpr std::string_view kCudaNames[] = {
      "dim3",   "cuda",   "cub",  "cooperative_groups", "nvcuda",
      "thrust", "__half", "__nv", "_GLOBAL__N__"};
  return language == SourceLanguage::cuda && starts_with_any(without_length(name), kCudaNames);
}

// nvcc gives anonymous namespaces a name of their own, and so linkage, hidden from other objects. A
// kernel's stub has the linkage of the kernel, which is examined itself.
bool is_of_nvcc(const ElfSymbol& symbol) {
  const std::string_view name = without_length(outermost(symbol.name));
  return name.starts_with("_GLOBAL__N__") || name.starts_with("__device_stub__");
}

// What nvcc's own code calls: the planner has these, and nothing else of the CUDA runtime.
constexpr std::array<std::string_view, 10> kRegistrationCalls = {
    "__cudaRegisterFatBinary",   "__cudaRegisterFatBinaryEnd", "__cudaUnregisterFatBinary",
    "__cudaRegisterFunction",    "__cudaRegisterVar",          "__cudaInitModule",
    "__cudaGetKernel",           "__cudaLaunchKernel",         "__cudaPushCallConfiguration",
    "__cudaPopCallConfiguration"};

bool is_registration_call(std::string_view name) {
  return std::find(kRegistrationCalls.begin(), kRegistrationCalls.end(), name) !=
         kRegistrationCalls.end();
}

bool is_driver_call(std::string_view name) {
  const bool is_driver =
      name.starts_with("cu") && name.size() > 2 && name[2] >= 'A' && name[2] <= 'Z';  // cuInit
  return is_driver || name.starts_with("cuda") || name.starts_with("__cuda");
}

std::optional<ObjectRefusal> refuse_driver_calls(const ElfFile& file) {
  for (const ElfSymbol& symbol : file.symbols)
    if (!symbol.defined && is_driver_call(symbol.name) && !is_registration_call(symbol.name))
      return ObjectRefusal{ObjectRule::driver_call,
                           "host code calls " + symbol.name +
                               ": a plan describes launches and calls nothing of CUDA"};
  return std::nullopt;
}

bool is_weak(const ElfSymbol& symbol) {
  return symbol.bind == STB_WEAK || symbol.bind == STB_GNU_UNIQUE;
}

std::optional<ObjectRefusal> refuse_symbols(const ElfFile& file, SourceLanguage language) {
  bool has_entry = false;
  for (const ElfSymbol& symbol : file.symbols) {
    if (!symbol.defined || symbol.name.empty()) continue;
    if (symbol.type == STT_GNU_IFUNC)
      return ObjectRefusal{
          ObjectRule::ifunc,
          readable(symbol.name) + " is chosen while the object is loaded (ifunc): use a knob"};
    if (symbol.bind == STB_LOCAL) continue;
    if (symbol.name == kEntrySymbol && symbol.type == STT_FUNC) {
      has_entry = true;
      continue;
    }
    if (is_weak(symbol) && is_library_instance(symbol.name, language)) continue;
    if (language == SourceLanguage::cuda && is_of_nvcc(symbol)) continue;
    const std::string kind = symbol.type == STT_FUNC ? "function " : "variable ";
    return ObjectRefusal{
        ObjectRule::external_linkage,
        kind + readable(symbol.name) + " has external linkage: put it in an anonymous namespace"};
  }
  if (has_entry) return std::nullopt;
  return ObjectRefusal{ObjectRule::missing_entry, "the file has no KBEAM_PLAN(plan, args) { ... }"};
}

bool runs_at_load(const ElfSection& section) {
  if (section.size == 0) return false;
  if (section.type == SHT_INIT_ARRAY || section.type == SHT_FINI_ARRAY ||
      section.type == SHT_PREINIT_ARRAY)
    return true;
  for (const std::string_view name : {".init", ".fini", ".ctors", ".dtors", ".preinit_array"})
    if (section.name == name || section.name.starts_with(std::string(name) + ".") ||
        section.name.starts_with(std::string(name) + "_array"))
      return true;
  return false;
}

// The function that a relocation of a constructor table points to; empty when it is none.
std::string_view function_at(const ElfFile& file, const ElfRelocation& relocation) {
  if (relocation.symbol >= file.symbols.size()) return {};
  const ElfSymbol& base = file.symbols[relocation.symbol];
  const std::uint64_t value = base.value + static_cast<std::uint64_t>(relocation.addend);
  for (const ElfSymbol& symbol : file.symbols)
    if (symbol.type == STT_FUNC && symbol.section == base.section && symbol.value == value)
      return symbol.name;
  return {};
}

// nvcc's own constructor hands the device code to whoever loads the object. It may be the only one.
bool only_registers_kernels(const ElfFile& file) {
  std::size_t constructors = 0;
  for (std::size_t i = 0; i < file.sections.size(); ++i) {
    const ElfSection& section = file.sections[i];
    if (!runs_at_load(section)) continue;
    if (section.type != SHT_INIT_ARRAY || section.size != sizeof(Elf64_Addr)) return false;
    std::size_t entries = 0;
    for (const ElfRelocation& relocation : file.relocations) {
      if (relocation.target != i) continue;
      if (function_at(file, relocation) != "_ZL24__sti____cudaRegisterAllv") return false;
      ++entries;
    }
    if (entries != 1) return false;
    ++constructors;
  }
  return constructors <= 1;
}

ObjectRefusal constructor_refusal() {
  return {ObjectRule::constructor,
          "code runs when the object is loaded or unloaded: make static objects constexpr, and "
          "drop constructor and "
          "destructor functions"};
}

bool is_allowed_library(const std::string& name, std::span<const std::string> link) {
  const auto is_version_of = [&](std::string_view base) { return name.starts_with(base); };
  if (std::any_of(kLanguageLibraries.begin(), kLanguageLibraries.end(), is_version_of)) return true;
  return std::any_of(link.begin(), link.end(), [&](const std::string& library) {
    return name.starts_with("lib" + library + ".so");
  });
}

std::optional<ObjectRefusal> refuse_dynamic(const ElfFile& file, std::span<const std::string> link,
                                            SourceLanguage language) {
  // Start files add one constructor and one destructor, nvcc one constructor.
  const std::uint64_t constructors = language == SourceLanguage::cuda ? 2 : 1;
  for (const ElfDynamic& entry : file.dynamic) {
    if (entry.tag == DT_NEEDED && !is_allowed_library(entry.text, link))
      return ObjectRefusal{ObjectRule::library,
                           "it needs the library " + entry.text + ": a candidate may link nothing"};
    if (entry.tag == DT_RPATH || entry.tag == DT_RUNPATH)
      return ObjectRefusal{ObjectRule::run_path, "it carries a library search path, " + entry.text};
    if (entry.tag == DT_TEXTREL || (entry.tag == DT_FLAGS && (entry.value & DF_TEXTREL) != 0))
      return ObjectRefusal{ObjectRule::text_relocation,
                           "its code is patched while it is loaded (text relocations)"};
    if (entry.tag == DT_INIT_ARRAYSZ && entry.value > constructors * sizeof(Elf64_Addr))
      return constructor_refusal();
    if (entry.tag == DT_FINI_ARRAYSZ && entry.value > sizeof(Elf64_Addr))
      return constructor_refusal();
    if (entry.tag == DT_PREINIT_ARRAY) return constructor_refusal();
  }
  return std::nullopt;
}

std::optional<ObjectRefusal> refuse_segments(const ElfFile& file) {
  bool has_stack_note = false;
  for (const ElfSegment& segment : file.segments) {
    const bool executable = (segment.flags & PF_X) != 0;
    if (segment.type == PT_GNU_STACK) {
      has_stack_note = true;
      if (executable)
        return ObjectRefusal{ObjectRule::executable_stack, "it asks for an executable stack"};
    }
    if (segment.type == PT_LOAD && executable && (segment.flags & PF_W) != 0)
      return ObjectRefusal{ObjectRule::writable_code, "it has code that can be written to"};
  }
  if (has_stack_note) return std::nullopt;
  return ObjectRefusal{ObjectRule::executable_stack,
                       "it does not say that its stack is not executable"};
}

bool is_indirect(const ElfRelocation& relocation) {
#if defined(__x86_64__)
  return relocation.type == R_X86_64_IRELATIVE || relocation.type == R_X86_64_COPY;
#else
  return relocation.type == R_AARCH64_IRELATIVE || relocation.type == R_AARCH64_COPY;
#endif
}

ObjectRefusal malformed_refusal() {
  return {ObjectRule::malformed, "it is no well-formed object of this machine"};
}

}  // namespace

std::string_view to_string(ObjectRule rule) {
  switch (rule) {
    case ObjectRule::malformed:
      return "malformed";
    case ObjectRule::missing_entry:
      return "missing_entry";
    case ObjectRule::external_linkage:
      return "external_linkage";
    case ObjectRule::constructor:
      return "constructor";
    case ObjectRule::ifunc:
      return "ifunc";
    case ObjectRule::library:
      return "library";
    case ObjectRule::run_path:
      return "run_path";
    case ObjectRule::executable_stack:
      return "executable_stack";
    case ObjectRule::text_relocation:
      return "text_relocation";
    case ObjectRule::writable_code:
      return "writable_code";
    case ObjectRule::driver_call:
      return "driver_call";
  }
  return "unknown";
}

std::optional<ObjectRefusal> find_object_refusal(std::string_view object, SourceLanguage language) {
  const auto file = read_elf(object);
  if (!file || file->type != ET_REL) return malformed_refusal();
  const bool is_cuda = language == SourceLanguage::cuda;
  if (std::any_of(file->sections.begin(), file->sections.end(), runs_at_load) &&
      !(is_cuda && only_registers_kernels(*file)))
    return constructor_refusal();
  if (is_cuda)
    if (auto refusal = refuse_driver_calls(*file)) return refusal;
  return refuse_symbols(*file, language);
}

std::optional<ObjectRefusal> find_module_refusal(std::string_view module,
                                                 std::span<const std::string> link,
                                                 SourceLanguage language) {
  const auto file = read_elf(module);
  if (!file || file->type != ET_DYN) return malformed_refusal();
  if (std::any_of(file->relocations.begin(), file->relocations.end(), is_indirect))
    return ObjectRefusal{ObjectRule::ifunc,
                         "a function is chosen while the object is loaded (ifunc): use a knob"};
  if (auto refusal = refuse_dynamic(*file, link, language)) return refusal;
  return refuse_segments(*file);
}

std::optional<std::string> find_unresolved(std::string_view module) {
  const auto file = read_elf(module);
  if (!file) return std::nullopt;
  for (const ElfSymbol& symbol : file->symbols)
    if (!symbol.defined && !symbol.name.empty() && !symbol.has_version && !is_weak(symbol) &&
        !is_registration_call(symbol.name))
      return readable(symbol.name);
  return std::nullopt;
}

std::string hash_of_code(std::string_view module) {
  Hasher hasher;
  const auto file = read_elf(module);
  if (!file) return hasher.field(module).hex();
  for (const ElfSection& section : file->sections) {
    // Everything that is in memory at run time can steer a candidate, whatever its section is
    // called; only unwinding tables and the compiler's own note differ between builds of one code.
    if ((section.flags & SHF_ALLOC) == 0 || section.name.starts_with(".eh_frame")) continue;
    hasher.field(section.name)
        .field(static_cast<std::int64_t>(section.size))
        .field(section.content);
  }
  for (const ElfSymbol& symbol : file->symbols)
    if (!symbol.defined) hasher.field(symbol.name);
  return hasher.hex();
}

}  // namespace kbeam
