// The layouts of fat binaries and of .nv.info are not documented; they were read off the output of
// nvcc 13.0 and compared with its own reports. What does not look as expected is refused.
#include "target/cuda/device_image.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "base/defence.h"

namespace kbeam {
namespace {

constexpr std::uint32_t kFatBinaryMagic = 0xba55ed50;
constexpr std::size_t kRegistrationBytes = 24;  // one record of .nvFatBinSegment
constexpr std::uint16_t kElfEntry = 2;
constexpr std::uint16_t kCudaMachine = 190;
constexpr unsigned char kKernelMark = 0x10;  // in st_other
constexpr std::int64_t kReservedShared = 1024;

struct FatHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t payload_bytes;
};
struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t payload_bytes;
};

template <typename T>
std::optional<T> read_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}
std::optional<std::string_view> piece(std::string_view bytes, std::uint64_t offset,
                                      std::uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
  return bytes.substr(offset, size);
}
std::string_view text_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const std::string_view rest = table.substr(offset);
  return rest.substr(0, std::min(rest.find('\0'), rest.size()));
}

struct Section {
  std::string_view name;
  Elf64_Shdr header;
  std::string_view content;  // empty where the file holds none
};

struct Elf {
  Elf64_Ehdr header{};
  std::vector<Section> sections;
  const Section* find(std::string_view name) const {
    for (const Section& section : sections)
      if (section.name == name) return &section;
    return nullptr;
  }
};

std::optional<Elf> read_elf(std::string_view bytes, std::uint16_t machine) {
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != machine ||
      header->e_shentsize != sizeof(Elf64_Shdr))
    return std::nullopt;
  Elf elf{*header, {}};
  for (std::uint64_t index = 0; index < header->e_shnum; ++index) {
    const auto section = read_at<Elf64_Shdr>(bytes, header->e_shoff + index * sizeof(Elf64_Shdr));
    if (!section) return std::nullopt;
    std::string_view content;
    if (section->sh_type != SHT_NOBITS && section->sh_type != SHT_NULL) {
      const auto found = piece(bytes, section->sh_offset, section->sh_size);
      if (!found) return std::nullopt;
      content = *found;
    }
    elf.sections.push_back({{}, *section, content});
  }
  if (header->e_shstrndx >= elf.sections.size()) return std::nullopt;
  const std::string_view names = elf.sections[header->e_shstrndx].content;
  for (Section& section : elf.sections) section.name = text_at(names, section.header.sh_name);
  return elf;
}

struct Symbol {
  std::string_view name;
  Elf64_Sym entry;
};

std::vector<Symbol> read_symbols(const Elf& elf) {
  std::vector<Symbol> symbols;
  const Section* const table = elf.find(".symtab");
  if (table == nullptr || table->header.sh_link >= elf.sections.size()) return symbols;
  const std::string_view names = elf.sections[table->header.sh_link].content;
  for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->content.size();
       at += sizeof(Elf64_Sym)) {
    const auto entry = read_at<Elf64_Sym>(table->content, at);
    symbols.push_back({text_at(names, entry->st_name), *entry});
  }
  return symbols;
}

// One attribute of .nv.info: a format, a number, and what follows.
struct Attribute {
  std::uint8_t number;
  std::uint16_t inline_value;  // of the formats without a payload
  std::vector<std::uint32_t> words;
};
namespace attribute {
constexpr std::uint8_t kMaxThreads = 0x05;
constexpr std::uint8_t kRequiredThreads = 0x10;
constexpr std::uint8_t kFrameBytes = 0x11;
constexpr std::uint8_t kParameter = 0x17;
constexpr std::uint8_t kRegisters = 0x2f;
constexpr std::uint8_t kCluster = 0x3d;
constexpr std::uint8_t kParameterV2 = 0x45;
}  // namespace attribute

std::optional<std::vector<Attribute>> read_attributes(std::string_view content) {
  constexpr std::uint8_t kWithPayload = 4;
  std::vector<Attribute> attributes;
  for (std::uint64_t at = 0; at + 4 <= content.size();) {
    const auto format = *read_at<std::uint8_t>(content, at);
    Attribute one{
        *read_at<std::uint8_t>(content, at + 1), *read_at<std::uint16_t>(content, at + 2), {}};
    at += 4;
    if (format == kWithPayload) {
      const auto payload = piece(content, at, one.inline_value);
      if (!payload) return std::nullopt;
      for (std::uint64_t word = 0; word + 4 <= payload->size(); word += 4)
        one.words.push_back(*read_at<std::uint32_t>(*payload, word));
      at += one.inline_value;
    }
    attributes.push_back(std::move(one));
  }
  return attributes;
}

// Ordinal in the low half of word 1; the size in the upper 14 bits of word 2, or all of word 2 in
// the later form.
bool read_parameter(const Attribute& one, std::vector<std::uint32_t>& sizes) {
  constexpr std::size_t kMostParameters = 4096;
  if (one.words.size() < 3) return false;
  const std::size_t ordinal = one.words[1] & 0xffff;
  if (ordinal >= kMostParameters) return false;
  if (sizes.size() <= ordinal) sizes.resize(ordinal + 1);
  sizes[ordinal] = one.number == attribute::kParameter ? one.words[2] >> 18 : one.words[2];
  return true;
}

bool read_kernel_info(std::string_view content, ImageKernel& kernel) {
  const auto attributes = read_attributes(content);
  if (!attributes) return false;
  for (const Attribute& one : *attributes) {
    const auto& words = one.words;
    if (one.number == attribute::kParameter || one.number == attribute::kParameterV2) {
      if (!read_parameter(one, kernel.parameter_sizes)) return false;
    } else if ((one.number == attribute::kMaxThreads ||
                one.number == attribute::kRequiredThreads) &&
               words.size() >= 3) {
      const std::uint64_t threads = std::uint64_t{words[0]} * words[1] * words[2];
      kernel.resources.max_threads = static_cast<int>(std::min<std::uint64_t>(threads, 1024));
    } else if (one.number == attribute::kCluster && words.size() >= 3) {
      kernel.cluster = {words[0], words[1], words[2]};
    }
  }
  return true;
}

void read_resources(const Elf& elf, const std::vector<Symbol>& symbols, DeviceImage& image) {
  const Section* const info = elf.find(".nv.info");
  const auto attributes =
      info == nullptr ? std::optional<std::vector<Attribute>>() : read_attributes(info->content);
  if (!attributes) return;
  for (const Attribute& one : *attributes) {
    if (one.words.size() < 2 || one.words[0] >= symbols.size()) continue;
    const auto kernel = image.kernels.find(std::string(symbols[one.words[0]].name));
    if (kernel == image.kernels.end()) continue;
    if (one.number == attribute::kRegisters)
      kernel->second.resources.registers = static_cast<int>(one.words[1] & 0xffff);
    if (one.number == attribute::kFrameBytes) kernel->second.resources.stack_bytes = one.words[1];
  }
}

// The binary digits of 2/pi in words of 64 bits, the last word first: what nvcc reduces arguments
// of sin, cos and tan by.
constexpr std::uint64_t kDigitsOfTwoOverPi[] = {
    0x6bfb5fb11f8d5d08, 0x3d0739f78a5292ea, 0x7527bac7ebe5f17b, 0x4f463f669e5fea2d,
    0x6d367ecf27cb09b7, 0xef2f118b5a0a6d1f, 0x1ff897ffde05980f, 0x9c845f8bbdf9283b,
    0x3991d639835339f4, 0xe99c7026b45f7e41, 0xe88235f52ebb4484, 0xfe1deb1cb129a73e,
    0x06492eea09d1921c, 0xb7246e3a424dd2e0, 0xfe5163abdebbc561, 0xdb6295993c439041,
    0xfc2757d1f534ddc0, 0xa2f9836e4e441529};
// Polynomials of sin and of cos, as its double functions hold them.
constexpr std::uint64_t kSinCosCoefficients[] = {
    0xbe5ae5f12cb0d246, 0x3ec71de369ace392, 0xbf2a01a019db62a1, 0x3f81111111110818,
    0xbfc5555555555554, 0x0000000000000000, 0x0000000000000000, 0xbda8ff8320fd8164,
    0x3e21eea7c1ef8528, 0xbe927e4f8e06e6d9, 0x3efa01a019ddbce9, 0xbf56c16c16c15d47,
    0x3fa5555555555551, 0xbfe0000000000000, 0x3ff0000000000000, 0x0000000000000000};

std::string_view bytes_of(std::span<const std::uint64_t> words) {
  return {reinterpret_cast<const char*>(words.data()), words.size_bytes()};
}

// Constant tables that nvcc itself links for sin, cos and tan, by name and content: a variable of
// the candidate that takes such a name is one of the candidate's. One with the right content can
// still be written, as scratch can; the seat's reload before every call brings the content back.
bool is_compiler_table(const Elf& elf, const Symbol& symbol) {
  const std::string_view digits = bytes_of(kDigitsOfTwoOverPi);
  constexpr std::size_t kFloatTableBytes = 24;
  const std::pair<std::string_view, std::string_view> kTables[] = {
      {"__cudart_i2opi_d", digits},
      {"__cudart_i2opi_f", digits.substr(digits.size() - kFloatTableBytes)},
      {"__cudart_sin_cos_coeffs", bytes_of(kSinCosCoefficients)}};
  const std::string_view section = elf.sections[symbol.entry.st_shndx].content;
  return std::ranges::any_of(kTables, [&](const auto& table) {
    return symbol.name == table.first && symbol.entry.st_size == table.second.size() &&
           piece(section, symbol.entry.st_value, symbol.entry.st_size) == table.second;
  });
}

// What the driver supplies when it loads the image. Setting a condition is part of the contract;
// printf and assert are found by the strings that they keep.
bool is_outside_function(const Symbol& symbol) {
  constexpr std::string_view kKnown[] = {"cudaGraphSetConditional", "vprintf", "__assertfail"};
  return ELF64_ST_TYPE(symbol.entry.st_info) == STT_FUNC && symbol.entry.st_shndx == SHN_UNDEF &&
         std::ranges::find(kKnown, symbol.name) == std::end(kKnown);
}

std::string read_cubin(std::string_view cubin, DeviceImage& image) {
  const auto elf = read_elf(cubin, kCudaMachine);
  if (!elf) return "its device image is no cubin that kbeam knows";
  image.architecture = static_cast<int>(elf->header.e_flags >> 8 & 0xff);
  const std::vector<Symbol> symbols = read_symbols(*elf);
  std::uint64_t table_bytes = 0;
  for (const Symbol& symbol : symbols) {
    const bool is_kernel = ELF64_ST_TYPE(symbol.entry.st_info) == STT_FUNC &&
                           (symbol.entry.st_other & kKernelMark) != 0;
    if (is_kernel) {
      const Section* const info = elf->find(".nv.info." + std::string(symbol.name));
      ImageKernel& kernel = image.kernels[std::string(symbol.name)];
      if (info == nullptr || !read_kernel_info(info->content, kernel))
        return fmt::format("its device image does not describe the kernel {}", symbol.name);
      const Section* const shared = elf->find(".nv.shared." + std::string(symbol.name));
      if (shared != nullptr)
        kernel.resources.static_shared_bytes = std::max<std::int64_t>(
            0, static_cast<std::int64_t>(shared->header.sh_size) - kReservedShared);
    }
    if (is_outside_function(symbol)) image.outside_functions.emplace_back(symbol.name);
    if (symbol.entry.st_shndx >= elf->sections.size() || symbol.entry.st_size == 0) continue;
    const std::string_view section = elf->sections[symbol.entry.st_shndx].name;
    if (ELF64_ST_TYPE(symbol.entry.st_info) != STT_OBJECT || !section.starts_with(".nv.global"))
      continue;
    if (is_compiler_table(*elf, symbol))
      table_bytes += symbol.entry.st_size;
    else
      image.writable_variables.emplace_back(symbol.name);
  }
  // A variable without a symbol is still one; alignment may leave gaps between the tables.
  constexpr std::uint64_t kMostPadding = 64;
  if (image.writable_variables.empty())
    for (const Section& section : elf->sections)
      if (section.name.starts_with(".nv.global") &&
          section.header.sh_size > (table_bytes == 0 ? 0 : table_bytes + kMostPadding))
        image.writable_variables.emplace_back("(unnamed)");
  read_resources(*elf, symbols, image);
  return {};
}

}  // namespace

FatBinary find_fat_binary(std::string_view module) {
  const auto elf = read_elf(module, EM_X86_64);
  if (!elf) return {{}, "the module is no shared object of this machine"};
  const Section* const images = elf->find(".nv_fatbin");
  const Section* const registrations = elf->find(".nvFatBinSegment");
  if (images == nullptr && registrations == nullptr) return {};
  const char* const kSeveral =
      "the module holds several device images; a candidate is one file with one image";
  if (images == nullptr || registrations == nullptr ||
      registrations->content.size() != kRegistrationBytes || elf->find("__nv_relfatbin") != nullptr)
    return {{}, kSeveral};
  const auto header = read_at<FatHeader>(images->content, 0);
  if (!header || header->magic != kFatBinaryMagic)
    return {{}, "the module's device image has an unknown form"};
  const auto whole = header->payload_bytes > images->content.size()
                         ? std::nullopt
                         : piece(images->content, 0, header->header_bytes + header->payload_bytes);
  if (!whole) return {{}, "the module's device image is cut short"};
  const std::string_view rest = images->content.substr(whole->size());
  if (rest.find_first_not_of('\0') != std::string_view::npos && defence_is_on(Defence::one_image))
    return {{}, kSeveral};
  return {std::string(*whole), {}};
}

ImageReading read_device_image(std::string_view fat_binary) {
  ImageReading reading;
  const auto header = read_at<FatHeader>(fat_binary, 0);
  if (!header || header->magic != kFatBinaryMagic) {
    reading.refusal = "the device image has an unknown form";
    return reading;
  }
  const auto entry = read_at<EntryHeader>(fat_binary, header->header_bytes);
  const auto cubin =
      !entry || entry->kind != kElfEntry
          ? std::nullopt
          : piece(fat_binary, std::uint64_t{header->header_bytes} + entry->header_bytes,
                  entry->payload_bytes);
  if (!cubin || !cubin->starts_with(ELFMAG)) {
    reading.refusal =
        "the device image holds no plain machine code first: build for one sm_... with "
        "-gencode=arch=compute_X,code=sm_X";
    return reading;
  }
  constexpr std::uint64_t kAlignment = 8;
  const std::uint64_t used =
      std::uint64_t{header->header_bytes} + entry->header_bytes + entry->payload_bytes;
  if (fat_binary.size() - used >= kAlignment) {
    reading.refusal = "the device image holds code for more than one architecture; build for one";
    return reading;
  }
  reading.refusal = read_cubin(*cubin, reading.image);
  return reading;
}

}  // namespace kbeam
