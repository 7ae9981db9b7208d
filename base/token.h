// TokenId: one entry of a model's vocabulary. Negative values never occur in a valid prompt.
#pragma once

#include <cstdint>

namespace warmpath {

using TokenId = int32_t;

// The grid of the index and of the in-tree engine's KV blocks, in tokens.
inline constexpr int kBlockTokens = 16;

}  // namespace warmpath
