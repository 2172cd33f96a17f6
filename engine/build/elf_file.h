// Reads what admission needs from a 64-bit ELF object or shared object of this machine. Every
// offset is checked: the file was shaped by a candidate. Judges nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kbeam {

struct ElfSection {
  std::string name;
  std::uint32_t type = 0;   // SHT_...
  std::uint64_t flags = 0;  // SHF_...
  std::uint64_t size = 0;
  std::uint32_t link = 0;
  std::uint32_t info = 0;
  std::uint64_t entry_size = 0;
  std::string_view content;  // empty for SHT_NOBITS
};

struct ElfSymbol {
  std::string name;
  unsigned char bind = 0;  // STB_...
  unsigned char type = 0;  // STT_...
  bool defined = false;
  std::uint16_t section = 0;
  std::uint64_t value = 0;
  bool has_version = false;  // of .dynsym: some library promises it by version
};

struct ElfSegment {
  std::uint32_t type = 0;   // PT_...
  std::uint32_t flags = 0;  // PF_...
};

struct ElfDynamic {
  std::int64_t tag = 0;  // DT_...
  std::uint64_t value = 0;
  std::string text;  // of tags whose value is a string
};

struct ElfRelocation {
  std::uint32_t type = 0;    // R_...
  std::uint32_t symbol = 0;  // index into the symbols
  std::int64_t addend = 0;
  std::uint32_t target = 0;  // the section that is patched
};

struct ElfFile {
  std::uint16_t type = 0;  // ET_REL, ET_DYN
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols;  // of .symtab, and of .dynsym when there is no .symtab
  std::vector<ElfSegment> segments;
  std::vector<ElfDynamic> dynamic;
  std::vector<ElfRelocation> relocations;  // of every SHT_RELA section
};

// `bytes` must outlive the result. Nothing for what is no well-formed ELF file of this machine.
std::optional<ElfFile> read_elf(std::string_view bytes);

}  // namespace kbeam
