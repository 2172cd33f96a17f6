// A campaign on the terminal: a few lines redrawn in place, or plain lines when the output is no
// terminal.
#pragma once

#include <cstdio>
#include <string>

#include "loop/progress.h"

namespace kbeam::cli {

class TerminalProgress final : public Progress {
 public:
  explicit TerminalProgress(std::FILE* stream);
  ~TerminalProgress() override;
  void phase(std::string_view name) override;
  void event(std::string_view line) override;
  void attempt(std::string_view line) override;
  void refresh(const ProgressView& view) override;

 private:
  void print_line(std::string_view line);
  void draw();
  void erase();

  std::FILE* stream_;
  bool live_;
  int width_;
  int drawn_lines_ = 0;
  std::string phase_;
  std::string last_attempt_;
  ProgressView view_;
  int plain_evaluations_ = 0;  // at the last plain line
};

}  // namespace kbeam::cli
