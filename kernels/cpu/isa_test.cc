#include "kernels/cpu/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/cpu/isa_trial.h"

namespace warmpath {
namespace {

class ChooseIsa : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* value = std::getenv("WARMPATH_ISA")) before_ = value;
  }
  void TearDown() override {
    if (before_.empty()) {
      unsetenv("WARMPATH_ISA");
    } else {
      setenv("WARMPATH_ISA", before_.c_str(), 1);
    }
  }
  std::string before_;
};

TEST_F(ChooseIsa, TheEnvironmentForcesOneByName) {
  for (Isa isa : supported_isas()) {
    setenv("WARMPATH_ISA", std::string(isa_name(isa)).c_str(), 1);
    const Result<Isa> chosen = choose_isa();
    ASSERT_TRUE(chosen.ok()) << chosen.status().to_string();
    EXPECT_EQ(*chosen, isa);
  }
}

TEST_F(ChooseIsa, WithoutItTheFastestWins) {
  unsetenv("WARMPATH_ISA");
  const Result<Isa> chosen = choose_isa();
  if (supported_isas().back() == Isa::kScalar) {
    EXPECT_EQ(chosen.status().code(), StatusCode::kFailedPrecondition);
  } else {
    ASSERT_TRUE(chosen.ok());
    // AMX is on trial (amx_test.cc).
    EXPECT_EQ(*chosen,
              supported_isas().back() == Isa::kAmx && !amx_trial().amx_wins() ? Isa::kAvx512 : supported_isas().back());
  }
}

TEST_F(ChooseIsa, AWrongNameIsAnsweredWithTheRightOnes) {
  setenv("WARMPATH_ISA", "sse9", 1);
  const Result<Isa> chosen = choose_isa();
  EXPECT_EQ(chosen.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(chosen.status().message(),
              ::testing::HasSubstr("WARMPATH_ISA: instruction set 'sse9' is none of: scalar, avx2"));
}

TEST(Isa, NamesGoBothWays) {
  for (Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) EXPECT_EQ(parse_isa(isa_name(isa)).value(), isa);
  EXPECT_TRUE(isa_supported(Isa::kScalar));
}

}  // namespace
}  // namespace warmpath
