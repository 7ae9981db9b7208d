#include "base/block_chain.h"

#include <cstring>
#include <string>

#include "base/check.h"

namespace warmpath {

namespace {

void append_sized(std::string& bytes, std::string_view text) {
  const uint64_t size = text.size();
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes.append(text);
}

}  // namespace

Hash128 chain_root(Hash128 fingerprint, std::string_view salt, std::string_view lora) {
  std::string bytes;
  bytes.append(reinterpret_cast<const char*>(&fingerprint.hi), 8);
  bytes.append(reinterpret_cast<const char*>(&fingerprint.lo), 8);
  append_sized(bytes, salt);
  append_sized(bytes, lora);
  return hash128(bytes);
}

Hash128 chain_next(Hash128 parent, std::span<const TokenId> tokens) {
  WARMPATH_DCHECK(tokens.size() == static_cast<size_t>(kBlockTokens), "a block identity covers exactly one block");
  struct {
    uint64_t hi, lo;
    TokenId tokens[kBlockTokens];
  } block{parent.hi, parent.lo, {}};
  static_assert(sizeof block == 16 + 4 * kBlockTokens);
  std::memcpy(block.tokens, tokens.data(), sizeof block.tokens);
  return hash128(&block, sizeof block);
}

std::vector<Hash128> chain_of(Hash128 root, std::span<const TokenId> tokens) {
  std::vector<Hash128> identities(tokens.size() / kBlockTokens);
  Hash128 parent = root;
  for (size_t block = 0; block < identities.size(); ++block) {
    parent = chain_next(parent, tokens.subspan(block * kBlockTokens, kBlockTokens));
    identities[block] = parent;
  }
  return identities;
}

}  // namespace warmpath
