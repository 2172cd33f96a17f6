#include "base/result.h"

namespace kbeam {

std::string Error::text() const {
  std::string text = "could not " + attempted + ": " + happened;
  if (!advice.empty()) text += "\n  what to do: " + advice;
  return text;
}

}  // namespace kbeam
