#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "base/block_chain.h"
#include "base/hash128.h"
#include "base/status.h"
#include "base/version.h"

namespace warmpath {
namespace {

TEST(Hash128, HexRoundTripAndRefusals) {
  const Hash128 hash = hash128("warmpath");
  EXPECT_EQ(hash128_from_hex(to_hex(hash)), hash);
  EXPECT_EQ(hash128_from_hex("0123"), std::nullopt);
  EXPECT_EQ(hash128_from_hex(std::string(32, 'G')), std::nullopt);
}

TEST(BlockChain, OnlyWholeBlocksAndEveryInputMatters) {
  std::vector<TokenId> tokens(40);
  std::iota(tokens.begin(), tokens.end(), 0);
  const Hash128 root = chain_root(hash128("model"), "salt", "");
  const auto chain = chain_of(root, tokens);
  ASSERT_EQ(chain.size(), 2u);
  std::set<Hash128> roots{root, chain_root(hash128("model2"), "salt", ""), chain_root(hash128("model"), "salt2", ""),
                          chain_root(hash128("model"), "salt", "l"), chain_root(hash128("model"), "sal", "t")};
  EXPECT_EQ(roots.size(), 5u);
  tokens[0] = 1;
  const auto changed = chain_of(root, tokens);
  EXPECT_NE(changed[0], chain[0]);
  EXPECT_NE(changed[1], chain[1]) << "an identity covers everything before it";
}

TEST(Version, IsTheOneThatTheBuildNames) { EXPECT_STREQ(kVersion, WARMPATH_PROJECT_VERSION); }

TEST(Status, NamesItsCode) {
  EXPECT_EQ(Status().to_string(), "ok");
  EXPECT_EQ(invalid_argument("x").to_string(), "invalid_argument: x");
  Result<int> missing = not_found("no such model");
  EXPECT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace warmpath
