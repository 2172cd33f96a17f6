// Confines a compiler run: it reads the toolchain and the folders it is given, writes one folder,
// and has no network. What this machine cannot do is left out and said in `weaknesses`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace kbeam {

class CompilerSandbox {
 public:
  // Tries each layer once in a child. `toolchains`: folders that hold the programs of a build in
  // their bin/, beside those of the system.
  static CompilerSandbox detect(std::vector<std::filesystem::path> toolchains);

  const std::vector<std::string>& weaknesses() const { return weaknesses_; }

  struct Access {
    std::vector<std::filesystem::path> read;
    std::filesystem::path write;  // reading too
    double cpu_s = 60;            // a backstop when nobody is left to enforce the time limit
  };
  // For ProcessRequest::before_exec. Keep the function only for one run: it holds descriptors.
  Result<std::function<bool()>> confine(const Access& access) const;

 private:
  std::vector<std::filesystem::path> toolchains_;
  int landlock_version_ = 0;  // 0: none
  bool private_network_ = false;
  std::vector<std::string> weaknesses_;
};

}  // namespace kbeam
