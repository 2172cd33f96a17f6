#include "build/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace kbeam {
namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#else
#error "object admission knows x86-64 and AArch64"
#endif

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::optional<ElfFile> run() {
    const auto header = at<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
      return std::nullopt;
    if (header->e_machine != kMachine || header->e_shentsize != sizeof(Elf64_Shdr))
      return std::nullopt;
    file_.type = header->e_type;
    const bool sound = read_sections(*header) && read_segments(*header) && read_symbols() &&
                       read_dynamic() && read_relocations();
    if (!sound) return std::nullopt;
    return std::move(file_);
  }

 private:
  template <typename T>
  std::optional<T> at(std::uint64_t offset) const {
    return at<T>(bytes_, offset);
  }
  template <typename T>
  static std::optional<T> at(std::string_view bytes, std::uint64_t offset) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }

  static std::string text_at(std::string_view strings, std::uint64_t offset) {
    if (offset >= strings.size()) return {};
    const std::string_view rest = strings.substr(offset);
    return std::string(rest.substr(0, std::min(rest.find('\0'), rest.size())));
  }

  std::string_view strings_of(const ElfSection& section) const {
    return section.link < file_.sections.size() ? file_.sections[section.link].content
                                                : std::string_view();
  }

  bool read_sections(const Elf64_Ehdr& header) {
    std::vector<std::uint32_t> names;
    for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
      const auto raw = at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
      if (!raw) return false;
      ElfSection section{.type = raw->sh_type,
                         .flags = raw->sh_flags,
                         .size = raw->sh_size,
                         .link = raw->sh_link,
                         .info = raw->sh_info,
                         .entry_size = raw->sh_entsize};
      if (raw->sh_type != SHT_NOBITS && raw->sh_type != SHT_NULL) {
        if (raw->sh_offset > bytes_.size() || bytes_.size() - raw->sh_offset < raw->sh_size)
          return false;
        section.content = bytes_.substr(raw->sh_offset, raw->sh_size);
      }
      names.push_back(raw->sh_name);
      file_.sections.push_back(std::move(section));
    }
    if (header.e_shstrndx >= file_.sections.size()) return false;
    const std::string_view strings = file_.sections[header.e_shstrndx].content;
    for (std::size_t i = 0; i < names.size(); ++i)
      file_.sections[i].name = text_at(strings, names[i]);
    return true;
  }

  bool read_segments(const Elf64_Ehdr& header) {
    for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
      const auto raw = at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
      if (!raw) return false;
      file_.segments.push_back({.type = raw->p_type, .flags = raw->p_flags});
    }
    return true;
  }

  const ElfSection* find_section(std::uint32_t type) const {
    for (const ElfSection& section : file_.sections)
      if (section.type == type) return &section;
    return nullptr;
  }

  bool read_symbols() {
    const ElfSection* table = find_section(SHT_SYMTAB);
    const ElfSection* versions = nullptr;
    if (table == nullptr) {
      table = find_section(SHT_DYNSYM);
      versions = find_section(SHT_GNU_versym);
    }
    if (table == nullptr) return true;
    for (std::uint64_t offset = 0; offset < table->content.size(); offset += sizeof(Elf64_Sym)) {
      const auto raw = at<Elf64_Sym>(table->content, offset);
      if (!raw) return false;
      // 0 is a local symbol, 1 a global one without a version.
      const std::uint64_t number = offset / sizeof(Elf64_Sym);
      const auto version = versions == nullptr
                               ? std::nullopt
                               : at<Elf64_Versym>(versions->content, number * sizeof(Elf64_Versym));
      file_.symbols.push_back({.name = text_at(strings_of(*table), raw->st_name),
                               .bind = static_cast<unsigned char>(ELF64_ST_BIND(raw->st_info)),
                               .type = static_cast<unsigned char>(ELF64_ST_TYPE(raw->st_info)),
                               .defined = raw->st_shndx != SHN_UNDEF,
                               .section = raw->st_shndx,
                               .value = raw->st_value,
                               .has_version = version && (*version & 0x7fff) > 1});
    }
    return true;
  }

  bool read_dynamic() {
    const ElfSection* table = find_section(SHT_DYNAMIC);
    if (table == nullptr) return true;
    for (std::uint64_t offset = 0; offset < table->content.size(); offset += sizeof(Elf64_Dyn)) {
      const auto raw = at<Elf64_Dyn>(table->content, offset);
      if (!raw) return false;
      if (raw->d_tag == DT_NULL) break;
      ElfDynamic entry{.tag = raw->d_tag, .value = raw->d_un.d_val, .text = {}};
      if (raw->d_tag == DT_NEEDED || raw->d_tag == DT_RPATH || raw->d_tag == DT_RUNPATH)
        entry.text = text_at(strings_of(*table), raw->d_un.d_val);
      file_.dynamic.push_back(std::move(entry));
    }
    return true;
  }

  bool read_relocations() {
    for (const ElfSection& section : file_.sections) {
      if (section.type != SHT_RELA) continue;
      for (std::uint64_t offset = 0; offset < section.content.size();
           offset += sizeof(Elf64_Rela)) {
        const auto raw = at<Elf64_Rela>(section.content, offset);
        if (!raw) return false;
        file_.relocations.push_back({.type = static_cast<std::uint32_t>(ELF64_R_TYPE(raw->r_info)),
                                     .symbol = static_cast<std::uint32_t>(ELF64_R_SYM(raw->r_info)),
                                     .addend = raw->r_addend,
                                     .target = section.info});
      }
    }
    return true;
  }

  std::string_view bytes_;
  ElfFile file_;
};

}  // namespace

std::optional<ElfFile> read_elf(std::string_view bytes) {
  return Reader(bytes).run();
}

}  // namespace kbeam
