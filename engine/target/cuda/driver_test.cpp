#include "target/cuda/driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace kbeam {
namespace {

std::vector<std::string> symbols() {
  std::vector<std::string> names;
#define KBEAM_LIST_SYMBOL(name) names.emplace_back(KBEAM_DRIVER_SYMBOL(name));
  KBEAM_DRIVER_CALLS(KBEAM_LIST_SYMBOL)
#undef KBEAM_LIST_SYMBOL
  return names;
}

bool has(const std::vector<std::string>& names, const char* name) {
  return std::ranges::find(names, name) != names.end();
}

// A symbol of another form would be called with other parameters than it takes.
TEST(DriverTest, CallsAreResolvedInTheFormThatTheyAreDeclaredIn) {
  const std::vector<std::string> names = symbols();
  EXPECT_TRUE(has(names, "cuCtxSynchronize")) << "declared without parameters; _v2 takes a context";
  EXPECT_FALSE(has(names, "cuCtxSynchronize_v2"));
  EXPECT_TRUE(has(names, "cuEventDestroy_v2"));
}

// The toolkit's stub exports what drivers of its version do.
TEST(DriverTest, DriversOfThisToolkitHaveEveryCall) {
  void* const stub = ::dlopen(KBEAM_CUDA_STUB, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(stub, nullptr) << ::dlerror();
  for (const std::string& name : symbols()) EXPECT_NE(::dlsym(stub, name.c_str()), nullptr) << name;
}

}  // namespace
}  // namespace kbeam
