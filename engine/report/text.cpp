#include "report/text.h"

#include <fmt/format.h>

#include <cmath>
#include <ctime>

#include "base/check.h"

namespace kbeam {

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += letter;
    }
  }
  return escaped;
}

// '<' occurs in JSON only inside strings, where its escape means the same.
std::string escape_json_for_script(std::string_view json) {
  std::string escaped;
  escaped.reserve(json.size());
  for (const char letter : json) {
    if (letter == '<')
      escaped += "\\u003c";
    else
      escaped += letter;
  }
  return escaped;
}

std::string escape_markdown(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    if (letter == '\n' || letter == '\r' || letter == '\t') {
      escaped += ' ';
      continue;
    }
    if (std::string_view("\\`*_{}[]<>#|~$").find(letter) != std::string_view::npos) escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

std::string markdown_code(std::string_view text) {
  if (text.empty()) return "-";
  std::string code = "`";
  for (const char letter : text) {
    if (letter == '`')
      code += '\'';
    else if (letter == '|')
      code += "\\|";
    else if (letter == '\n' || letter == '\r')
      code += ' ';
    else
      code += letter;
  }
  return code + "`";
}

std::string format_ratio(double ratio) {
  if (std::isnan(ratio)) return "-";
  if (std::isinf(ratio)) return ratio > 0 ? "inf" : "-inf";
  return fmt::format("{:.{}f}", ratio, ratio < 9.995 ? 2 : ratio < 99.95 ? 1 : 0);
}

std::string format_interval(double low, double high) {
  if (std::isnan(low) && std::isnan(high)) return "-";
  return format_ratio(low) + " to " + format_ratio(high);
}

std::string format_time_ns(double time_ns) {
  if (!std::isfinite(time_ns) || time_ns <= 0) return "-";
  constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  int unit = 0;
  while (time_ns >= 999.5 && unit < 3) {
    time_ns /= 1000;
    ++unit;
  }
  const int digits = time_ns < 9.995 ? 2 : time_ns < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", time_ns, unit == 0 ? 0 : digits, kUnits[unit]);
}

std::string format_time_s(double time_s) {
  if (!std::isfinite(time_s)) return "-";
  if (time_s < 9.95) return fmt::format("{:.1f} s", time_s);
  const auto seconds = static_cast<std::int64_t>(std::llround(time_s));
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7200) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

std::string format_date(std::int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm date{};
  gmtime_r(&seconds, &date);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &date);
  return text;
}

std::string shorten(std::string_view text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return std::string(text);
  while (most_bytes > 0 && (static_cast<unsigned char>(text[most_bytes]) & 0xc0) == 0x80)
    --most_bytes;
  return std::string(text.substr(0, most_bytes)) + "…";
}

std::string fill_slots(std::string_view frame,
                       const std::map<std::string_view, std::string>& slots) {
  std::string page;
  for (;;) {
    const std::size_t open = frame.find("{{");
    page += frame.substr(0, open);
    if (open == std::string_view::npos) return page;
    const std::size_t close = frame.find("}}", open);
    const auto slot = slots.find(frame.substr(open + 2, close - open - 2));
    CHECK(slot != slots.end(), "every slot of an embedded page is filled");
    page += slot->second;
    frame.remove_prefix(close + 2);
  }
}

}  // namespace kbeam
