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

// Weak definitions that every use of the standard headers or the contract leaves in an object.
bool is_library_instance(std::string_view symbol) {
  if (symbol.starts_with("DW.ref.__gxx_personality_v") || symbol == "__clang_call_terminate")
    return true;
  if (!symbol.starts_with("_Z")) return false;
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
  constexpr std::array<std::string_view, 6> kNames = {"St",     "Sa",         "Ss",
                                                      "5kbeam", "9__gnu_cxx", "10__cxxabiv1"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view name) { return symbol.starts_with(name); });
}

bool is_weak(const ElfSymbol& symbol) {
  return symbol.bind == STB_WEAK || symbol.bind == STB_GNU_UNIQUE;
}

std::optional<ObjectRefusal> refuse_symbols(const ElfFile& file) {
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
    if (is_weak(symbol) && is_library_instance(symbol.name)) continue;
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

std::optional<ObjectRefusal> refuse_dynamic(const ElfFile& file,
                                            std::span<const std::string> link) {
  for (const ElfDynamic& entry : file.dynamic) {
    if (entry.tag == DT_NEEDED && !is_allowed_library(entry.text, link))
      return ObjectRefusal{ObjectRule::library,
                           "it needs the library " + entry.text + ": a candidate may link nothing"};
    if (entry.tag == DT_RPATH || entry.tag == DT_RUNPATH)
      return ObjectRefusal{ObjectRule::run_path, "it carries a library search path, " + entry.text};
    if (entry.tag == DT_TEXTREL || (entry.tag == DT_FLAGS && (entry.value & DF_TEXTREL) != 0))
      return ObjectRefusal{ObjectRule::text_relocation,
                           "its code is patched while it is loaded (text relocations)"};
    // Start files add one of their own to each array.
    if ((entry.tag == DT_INIT_ARRAYSZ || entry.tag == DT_FINI_ARRAYSZ) &&
        entry.value > sizeof(Elf64_Addr))
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

bool is_indirect(std::uint32_t relocation) {
#if defined(__x86_64__)
  return relocation == R_X86_64_IRELATIVE || relocation == R_X86_64_COPY;
#else
  return relocation == R_AARCH64_IRELATIVE || relocation == R_AARCH64_COPY;
#endif
}

ObjectRefusal malformed_refusal() {
  return {ObjectRule::malformed, "it is no well-formed object of this machine"};
}

}  // namespace

std::optional<ObjectRefusal> find_object_refusal(std::string_view object) {
  const auto file = read_elf(object);
  if (!file || file->type != ET_REL) return malformed_refusal();
  if (std::any_of(file->sections.begin(), file->sections.end(), runs_at_load))
    return constructor_refusal();
  return refuse_symbols(*file);
}

std::optional<ObjectRefusal> find_module_refusal(std::string_view module,
                                                 std::span<const std::string> link) {
  const auto file = read_elf(module);
  if (!file || file->type != ET_DYN) return malformed_refusal();
  if (std::any_of(file->relocation_types.begin(), file->relocation_types.end(), is_indirect))
    return ObjectRefusal{ObjectRule::ifunc,
                         "a function is chosen while the object is loaded (ifunc): use a knob"};
  if (auto refusal = refuse_dynamic(*file, link)) return refusal;
  return refuse_segments(*file);
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
