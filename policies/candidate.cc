#include "policies/candidate.h"

#include <algorithm>

namespace warmpath {

Hash128 content_key_of(std::span<const Hash128> chain, int64_t base_tokens) {
  if (chain.empty()) return {};
  const int64_t base_blocks = (std::max<int64_t>(base_tokens, 0) + kBlockTokens - 1) / kBlockTokens;
  return chain[static_cast<size_t>(std::min<int64_t>(base_blocks, static_cast<int64_t>(chain.size()) - 1))];
}

Hash128 head_key_of(std::span<const Hash128> chain) {
  constexpr size_t kHeadBlocks = 256 / kBlockTokens;
  return chain.empty() ? Hash128{} : chain[std::min(chain.size(), kHeadBlocks) - 1];
}

Hash128 base_key_of(std::span<const Hash128> chain, int64_t base_tokens) {
  const int64_t base_blocks = std::min<int64_t>(base_tokens / kBlockTokens, static_cast<int64_t>(chain.size()));
  return base_blocks <= 0 ? Hash128{} : chain[static_cast<size_t>(base_blocks - 1)];
}

void set_cached_tokens(Candidate& candidate, const IndexMatch* match, int64_t prompt_tokens) {
  int64_t left = std::max<int64_t>(prompt_tokens - 1, 0);  // the last prompt token is always computed
  const auto take = [&](uint32_t blocks) {
    const int64_t tokens = std::min(left, static_cast<int64_t>(blocks) * kBlockTokens);
    left -= tokens;
    return tokens;
  };
  candidate.device_tokens = take(match == nullptr ? 0 : match->blocks[static_cast<size_t>(Tier::kDevice)]);
  candidate.host_tokens = take(match == nullptr ? 0 : match->blocks[static_cast<size_t>(Tier::kHost)]);
  candidate.disk_tokens = take(match == nullptr ? 0 : match->blocks[static_cast<size_t>(Tier::kDisk)]);
  candidate.placed_tokens = take(match == nullptr ? 0 : match->placed_blocks);
}

}  // namespace warmpath
