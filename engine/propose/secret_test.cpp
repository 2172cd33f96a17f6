#include "propose/secret.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"

namespace kbeam {
namespace {

constexpr char kKey[] = "sk-test/0123456789abcdef+XYZ";

TEST(Secret, EveryFormOfTheKeyIsTakenOut) {
  const Secret secret(kKey);
  for (const std::string& text :
       {std::string("use ") + kKey + " please, " + kKey,
        std::string("url?key=sk-test%2F0123456789abcdef%2BXYZ"),
        std::string("you sent sk-test/0123456***"),
        std::string("you sent ***/0123456789abcdef+XYZ, and 0123456789abcd"),
        std::string("***ydGVzdC8wMTIzNDU2Nzg5YWJjZGVmK1hZWg=="),
        // base64 of "Bearer " + key, and of the key alone.
        std::string("QmVhcmVyIHNrLXRlc3QvMDEyMzQ1Njc4OWFiY2RlZitYWVo="),
        std::string("c2stdGVzdC8wMTIzNDU2Nzg5YWJjZGVmK1hZWg==")}) {
    const std::string shown = secret.redact(text);
    EXPECT_NE(shown.find("[key]"), std::string::npos) << shown;
    EXPECT_EQ(shown.find("0123456"), std::string::npos) << shown;
    EXPECT_EQ(shown.find("MTIzNDU2Nzg5"), std::string::npos) << shown;
  }
  EXPECT_EQ(secret.redact("sk-test is a common beginning"), "sk-test is a common beginning");
  EXPECT_EQ(Secret().redact("text"), "text");
}

TEST(Secret, TroubleNamesTheSourceAndNeverTheKey) {
  ::setenv("KBEAM_TEST_KEY", "short", 1);
  const auto too_short = Secret::load({"env:KBEAM_TEST_KEY"});
  ASSERT_FALSE(too_short.ok());
  EXPECT_EQ(too_short.error().text().find("short,"), std::string::npos);
  EXPECT_NE(too_short.error().text().find("KBEAM_TEST_KEY"), std::string::npos);
  ::setenv("KBEAM_TEST_KEY", "has a blank in it", 1);
  EXPECT_FALSE(Secret::load({"env:KBEAM_TEST_KEY"}).ok());
  ::setenv("KBEAM_TEST_KEY", kKey, 1);
  EXPECT_EQ(Secret::load({"env:KBEAM_TEST_KEY"})->reveal(), kKey);
  ::unsetenv("KBEAM_TEST_KEY");
  EXPECT_FALSE(Secret::load({"env:KBEAM_TEST_KEY"}).ok());

  const auto as_typed = Secret::load({kKey});
  ASSERT_FALSE(as_typed.ok());
  EXPECT_EQ(as_typed.error().text().find("0123"), std::string::npos);
}

TEST(Secret, AFileThatOthersMayReadIsRefused) {
  const auto folder = make_temporary_folder(std::filesystem::temp_directory_path(), "secret-");
  const std::filesystem::path file = *folder / "key";
  ASSERT_TRUE(write_file(file, std::string(kKey) + "\nsecond line\n").ok());
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  EXPECT_FALSE(Secret::load({"file:" + file.string()}).ok());
  const auto no_file = Secret::load({"file:" + folder->string()});
  ASSERT_FALSE(no_file.ok());
  EXPECT_EQ(no_file.error().text().find("chmod"), std::string::npos) << no_file.error().text();
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  EXPECT_EQ(Secret::load({"file:" + file.string()})->reveal(), kKey);
  std::filesystem::remove_all(*folder);
}

}  // namespace
}  // namespace kbeam
