// Reads images that nvcc made for the tests, and damaged copies of them.
#include "target/cuda/device_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/files.h"
#include "target/cuda/planner_fixture.h"

namespace kbeam {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::string module_bytes(const std::string& name) {
  const auto bytes = read_file(test_module(name));
  return bytes.ok() ? *bytes : std::string();
}

const ImageKernel* find(const DeviceImage& image, const std::string& part) {
  for (const auto& [name, kernel] : image.kernels)
    if (name.find(part) != std::string::npos) return &kernel;
  return nullptr;
}

TEST(DeviceImage, KnowsKernelsParametersAndResources) {
  const FatBinary binary = find_fat_binary(module_bytes("every_feature"));
  ASSERT_EQ(binary.refusal, "");
  const ImageReading reading = read_device_image(binary.bytes);
  ASSERT_EQ(reading.refusal, "");
  const DeviceImage& image = reading.image;
  EXPECT_GE(image.architecture, 80);
  EXPECT_THAT(image.writable_variables, ElementsAre());
  const ImageKernel* const structs = find(image, "use_struct");
  ASSERT_NE(structs, nullptr);
  EXPECT_THAT(structs->parameter_sizes, ElementsAre(8, 40, 1, 2));
  const ImageKernel* const table = find(image, "take_table");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->resources.static_shared_bytes, 1024);
  EXPECT_EQ(table->resources.max_threads, 256);
  EXPECT_GT(table->resources.registers, 4);
  EXPECT_LE(table->resources.registers, 128);
  const ImageKernel* const tile = find(image, "4tile");
  ASSERT_NE(tile, nullptr);
  EXPECT_THAT(tile->parameter_sizes, ElementsAre(128, 8));
  const ImageKernel* const cluster = find(image, "fixed_cluster");
  ASSERT_NE(cluster, nullptr);
  EXPECT_THAT(cluster->cluster, ElementsAre(2, 1, 1));
}

TEST(DeviceImage, FindsVariablesThatWouldOutliveACall) {
  const FatBinary binary = find_fat_binary(module_bytes("device_variables"));
  const ImageReading reading = read_device_image(binary.bytes);
  ASSERT_EQ(reading.refusal, "");
  ASSERT_EQ(reading.image.writable_variables.size(), 1U);
  EXPECT_THAT(reading.image.writable_variables[0], HasSubstr("calls"));
}

TEST(DeviceImage, TheCompilersOwnTablesAreNoVariables) {
  const ImageReading reading =
      read_device_image(find_fat_binary(module_bytes("compiler_tables")).bytes);
  ASSERT_EQ(reading.refusal, "");
  EXPECT_THAT(reading.image.writable_variables, ElementsAre());
}

TEST(DeviceImage, AVariableWithTheNameOfACompilersTableIsAVariable) {
  const ImageReading reading = read_device_image(find_fat_binary(module_bytes("own_tables")).bytes);
  ASSERT_EQ(reading.refusal, "");
  EXPECT_THAT(
      reading.image.writable_variables,
      UnorderedElementsAre("__cudart_i2opi_d", "__cudart_i2opi_f", "__cudart_sin_cos_coeffs"));
}

// The real names and sizes with other content, wherever it differs.
TEST(DeviceImage, ATableWithAnotherByteIsAVariable) {
  const std::string image = find_fat_binary(module_bytes("compiler_tables")).bytes;
  const std::map<std::string, std::pair<std::string, std::size_t>> tables{
      {"__cudart_i2opi_d", {"\x08\x5d\x8d\x1f\xb1\x5f\xfb\x6b", 144}},
      {"__cudart_i2opi_f", {"\x41\x90\x43\x3c\x99\x95\x62\xdb", 24}},
      {"__cudart_sin_cos_coeffs", {"\x46\xd2\xb0\x2c\xf1\xe5\x5a\xbe", 128}}};
  for (const auto& [name, table] : tables) {
    const auto& [beginning, bytes] = table;
    // The digits of the short table also end the long one: the last place is the table's own, or
    // the first where it is the only one.
    std::vector<std::size_t> places;
    for (std::size_t at = image.find(beginning); at != std::string::npos;
         at = image.find(beginning, at + 1))
      places.push_back(at);
    ASSERT_FALSE(places.empty()) << name;
    for (std::size_t byte = 0; byte < bytes; ++byte) {
      std::size_t noticed = 0;
      for (const std::size_t at : places) {
        if (at + byte >= image.size()) continue;
        std::string changed = image;
        changed[at + byte] = static_cast<char>(changed[at + byte] ^ 1);
        const ImageReading reading = read_device_image(changed);
        noticed +=
            static_cast<std::size_t>(std::ranges::count(reading.image.writable_variables, name));
      }
      EXPECT_GE(noticed, 1U) << name << " byte " << byte;
    }
  }
}

// Every cut and every changed byte of the headers is refused or read; nothing else happens. The
// sanitizer build watches.
TEST(DeviceImage, DamageIsNeverFatal) {
  const std::string module = module_bytes("device_variables");
  const std::string image = find_fat_binary(module).bytes;
  ASSERT_FALSE(image.empty());
  for (std::size_t size = 0; size < image.size(); size += 1 + size / 7)
    EXPECT_NE(read_device_image(image.substr(0, size)).refusal, "") << size;
  int refused = 0;
  for (std::size_t at = 0; at < image.size(); ++at) {
    std::string changed = image;
    changed[at] = static_cast<char>(changed[at] ^ 0xff);
    refused += read_device_image(changed).refusal.empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 10);
  for (std::size_t size = 0; size < module.size(); size += 1 + size / 5)
    find_fat_binary(std::string_view(module).substr(0, size));
}

TEST(DeviceImage, RefusesSeveralImages) {
  std::string module = module_bytes("device_variables");
  const std::string image = find_fat_binary(module).bytes;
  const std::size_t at = module.find(image);
  ASSERT_NE(at, std::string::npos);
  // A shorter payload length leaves the rest of the first image behind as a second one.
  module[at + 8] = 0x40;
  module[at + 9] = 0;
  module[at + 10] = 0;
  EXPECT_THAT(find_fat_binary(module).refusal, HasSubstr("several device images"));
  EXPECT_THAT(find_fat_binary("no module").refusal, HasSubstr("no shared object"));
}

TEST(DeviceImage, AModuleWithoutDeviceCodeHasNone) {
  const FatBinary binary = find_fat_binary(module_bytes("planner_deeds"));
  EXPECT_EQ(binary.bytes, "");
  EXPECT_EQ(binary.refusal, "");
}

}  // namespace
}  // namespace kbeam
