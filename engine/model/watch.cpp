#include "model/watch.h"

namespace kbeam {

std::string_view to_string(Watch watch) {
  return watch == Watch::memory ? "address_undefined" : "thread";
}

}  // namespace kbeam
