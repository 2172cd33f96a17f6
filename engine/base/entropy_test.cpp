#include "base/entropy.h"

#include <gmock/gmock.h>

#include <set>

namespace kbeam {
namespace {

TEST(Entropy, random_bits_do_not_repeat) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_bits());
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(Entropy, random_letters_are_fit_for_file_names) {
  const std::string letters = random_letters(200);
  EXPECT_EQ(letters.size(), 200u);
  EXPECT_THAT(letters,
              testing::Each(testing::AnyOf(testing::AllOf(testing::Ge('a'), testing::Le('z')),
                                           testing::AllOf(testing::Ge('2'), testing::Le('9')))));
  EXPECT_NE(random_letters(20), random_letters(20));
}

TEST(Entropy, a_derived_seed_depends_on_every_part_and_on_nothing_else) {
  EXPECT_EQ(derive_seed(7, "screen", 3), derive_seed(7, "screen", 3));
  const std::set<std::uint64_t> seeds = {derive_seed(7, "screen", 3), derive_seed(8, "screen", 3),
                                         derive_seed(7, "check", 3), derive_seed(7, "screen", 4),
                                         derive_seed(7, "screen3", 0)};
  EXPECT_EQ(seeds.size(), 5u);
}

// A stored campaign replays only while this mapping stays as it is.
TEST(Entropy, the_derivation_is_frozen) {
  EXPECT_EQ(derive_seed(1, "screen n64", 3), 0x588b0ce05a440e05u);
}

}  // namespace
}  // namespace kbeam
