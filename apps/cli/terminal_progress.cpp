#include "apps/cli/terminal_progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "model/plain_text.h"

namespace kbeam::cli {
namespace {

constexpr int kPlainEvery = 10;  // evaluations between two plain lines
constexpr int kUnknownWidth = 100;

int terminal_width(int file) {
  winsize size{};
  return ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUnknownWidth;
}

std::string bar(double share, int width) {
  const int full = std::clamp(static_cast<int>(share * width), 0, width);
  return std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(width - full), '.');
}

std::string budget_line(const ProgressView& view) {
  std::string line = fmt::format("round {}  {} evaluations", view.round, view.evaluations);
  if (view.budget_evaluations > 0) line += fmt::format(" of {}", view.budget_evaluations);
  if (view.budget_s > 0)
    line += fmt::format("  [{}] {:.0f} of {:.0f} s, {:.0f} s left",
                        bar(view.used_s / view.budget_s, 20), view.used_s, view.budget_s,
                        std::max(0.0, view.budget_s - view.used_s));
  else
    line += fmt::format("  {:.0f} s", view.used_s);
  if (view.budget_device_s > 0)
    line += fmt::format("  {:.0f} of {:.0f} s of the device", view.device_s, view.budget_device_s);
  if (view.tokens > 0) line += fmt::format("  {} tokens", view.tokens);
  if (view.tokens > 0 && view.budget_tokens > 0) line += fmt::format(" of {}", view.budget_tokens);
  if (view.money > 0) line += fmt::format("  {:.4f} in money", view.money);
  if (view.money > 0 && view.budget_money > 0) line += fmt::format(" of {:.4f}", view.budget_money);
  if (view.best_speedup > 0) line += fmt::format("  best {:.2f}x", view.best_speedup);
  return line;
}

std::string rejects_line(const ProgressView& view) {
  std::string line = "rejected:";
  for (const auto& [verdict, count] : view.rejects)
    line += fmt::format(" {} {}", count, to_string(verdict));
  return view.rejects.empty() ? "rejected: none" : line;
}

std::string champions_line(const ProgressView& view) {
  std::string line = "leading:";
  for (const Champion& champion : view.champions)
    line += fmt::format(" {} {:.2f}x", champion.case_name, champion.speedup);
  return view.champions.empty() ? "leading: the baseline everywhere" : line;
}

std::string family_line(const FamilyState& family) {
  return fmt::format("  {:<24} {:<11} {:>4} tried {:>4} right  best {:.2f}x", family.name,
                     family.retired ? "retired" : to_string(family.role), family.evaluations,
                     family.accepted, family.best_speedup);
}

}  // namespace

TerminalProgress::TerminalProgress(std::FILE* stream)
    : stream_(stream), live_(isatty(fileno(stream)) != 0), width_(terminal_width(fileno(stream))) {
  const char* const terminal = std::getenv("TERM");
  if (terminal != nullptr && std::string_view(terminal) == "dumb") live_ = false;
}

TerminalProgress::~TerminalProgress() {
  erase();
}

void TerminalProgress::print_line(std::string_view line) {
  erase();
  fmt::print(stream_, "{}\n", one_line(line));  // it may quote a compiler, a model, an agent
  std::fflush(stream_);
}

void TerminalProgress::phase(std::string_view name) {
  phase_ = name;
  print_line(fmt::format("== {}", name));
  draw();
}

void TerminalProgress::event(std::string_view line) {
  print_line(fmt::format("   {}", line));
  draw();
}

void TerminalProgress::attempt(std::string_view line) {
  last_attempt_ = one_line(line);
  draw();
}

void TerminalProgress::refresh(const ProgressView& view) {
  view_ = view;
  if (live_) {
    draw();
  } else if (view.evaluations >= plain_evaluations_ + kPlainEvery) {
    plain_evaluations_ = view.evaluations;
    print_line(budget_line(view) + "  " + champions_line(view) + "  " + rejects_line(view));
  }
}

void TerminalProgress::erase() {
  if (!live_ || drawn_lines_ == 0) return;
  fmt::print(stream_, "\x1b[{}A\x1b[J", drawn_lines_);
  drawn_lines_ = 0;
}

void TerminalProgress::draw() {
  if (!live_) return;
  erase();
  std::vector<std::string> lines;
  if (view_.evaluations > 0) {
    lines = {budget_line(view_), champions_line(view_), rejects_line(view_)};
    for (const FamilyState& family : view_.families) lines.push_back(family_line(family));
  }
  if (!last_attempt_.empty()) lines.push_back(last_attempt_);
  for (const std::string& line : lines)
    fmt::print(stream_, "{}\n",
               std::string_view(line).substr(0, static_cast<std::size_t>(width_ - 1)));
  drawn_lines_ = static_cast<int>(lines.size());
  std::fflush(stream_);
}

}  // namespace kbeam::cli
