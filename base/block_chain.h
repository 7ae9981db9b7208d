// The token chain: how 16-token blocks of a prompt get their 128-bit identities. The gateway and the engine both call
// this, so a block that the engine stores is the block that the gateway looks for.
//
//   root       = XXH3-128(fingerprint 16 B | salt length 8 B | salt | lora length 8 B | lora)
//   identity_n = XXH3-128(identity_(n-1) 16 B | 16 token ids, 4 B each)          all little-endian
//
// Only whole blocks have an identity. Thread safety: pure functions.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/hash128.h"
#include "base/token.h"

namespace warmpath {

// `fingerprint` names weights, tokenizer and KV layout; `salt` is the tenant's; `lora` is empty for the base model.
Hash128 chain_root(Hash128 fingerprint, std::string_view salt, std::string_view lora);

// REQUIRES tokens.size() == kBlockTokens.
Hash128 chain_next(Hash128 parent, std::span<const TokenId> tokens);

// Identities of every whole block of `tokens`, first block first; size = tokens.size() / kBlockTokens.
std::vector<Hash128> chain_of(Hash128 root, std::span<const TokenId> tokens);

}  // namespace warmpath
