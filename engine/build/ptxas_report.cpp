#include "build/ptxas_report.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace kbeam {
namespace {

constexpr std::int64_t kMostThreads = 1024;  // of a block on every device

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// "...entry function '_Z1kPf' for..." -> _Z1kPf
std::string_view between(std::string_view line, std::string_view before, char after) {
  const std::size_t at = line.find(before);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + before.size());
  const std::size_t end = line.find(after);
  return end == std::string_view::npos ? std::string_view() : line.substr(0, end);
}

// The number that stands before `unit`: "Used 40 registers" has 40 before " registers".
std::optional<std::int64_t> number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == std::string_view::npos) return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  std::int64_t number = 0;
  const auto [rest, trouble] = std::from_chars(line.data() + begin, line.data() + end, number);
  if (trouble != std::errc() || rest != line.data() + end) return std::nullopt;
  return number;
}

template <typename T>
void raise(T& to, std::optional<std::int64_t> number) {
  if (number) to = std::max(to, static_cast<T>(*number));
}

}  // namespace

std::map<std::string, KernelResources> read_ptxas_report(std::string_view report) {
  std::map<std::string, KernelResources> kernels;
  KernelResources* entry = nullptr;       // whose "Used ..." line comes
  KernelResources* properties = nullptr;  // whose stack and spills come; none for device functions
  while (!report.empty()) {
    const std::string_view line = take_line(report);
    if (const auto name = between(line, "Compiling entry function '", '\''); !name.empty()) {
      entry = &kernels[std::string(name)];
      continue;
    }
    constexpr std::string_view kProperties = "Function properties for ";
    if (const std::size_t at = line.find(kProperties); at != std::string_view::npos) {
      const auto found = kernels.find(std::string(line.substr(at + kProperties.size())));
      properties = found == kernels.end() ? nullptr : &found->second;
      continue;
    }
    if (properties != nullptr && line.find("bytes stack frame") != std::string_view::npos) {
      raise(properties->stack_bytes, number_before(line, " bytes stack frame"));
      const std::int64_t stored = number_before(line, " bytes spill stores").value_or(0);
      const std::int64_t loaded = number_before(line, " bytes spill loads").value_or(0);
      raise(properties->spill_bytes, std::max(stored, loaded));
    }
    if (entry != nullptr && line.find(" registers") != std::string_view::npos) {
      raise(entry->registers, number_before(line, " registers"));
      raise(entry->static_shared_bytes, number_before(line, " bytes smem"));
      raise(entry->stack_bytes, number_before(line, " bytes cumulative stack size"));
      entry = nullptr;
    }
  }
  return kernels;
}

void read_launch_bounds(std::string_view ptx, std::map<std::string, KernelResources>& kernels) {
  KernelResources* entry = nullptr;
  while (!ptx.empty()) {
    const std::string_view line = take_line(ptx);
    if (const auto name = between(line, ".entry ", '('); !name.empty()) {
      const auto found = kernels.find(std::string(name));
      entry = found == kernels.end() ? nullptr : &found->second;
    }
    if (line.starts_with('{')) entry = nullptr;  // the body: what it says binds nobody
    if (entry == nullptr || !(line.starts_with(".maxntid") || line.starts_with(".reqntid")))
      continue;
    std::int64_t threads = 1;
    std::string_view rest = line.substr(line.find(' ') + 1);
    while (!rest.empty()) {
      const std::string_view part = rest.substr(0, std::min(rest.find(','), rest.size()));
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
      const std::size_t digits = part.find_first_not_of(' ');
      std::int64_t extent = 0;
      if (digits != std::string_view::npos &&
          std::from_chars(part.data() + digits, part.data() + part.size(), extent).ec ==
              std::errc() &&
          extent > 0 && extent <= kMostThreads)
        threads = std::min(threads * extent, kMostThreads);
    }
    entry->max_threads = static_cast<int>(threads);
  }
}

}  // namespace kbeam
