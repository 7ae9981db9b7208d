#include "text/secret_hash.h"

#define XXH_STATIC_LINKING_ONLY  // XXH3_state_t on the stack
#include <xxhash.h>

#include <array>
#include <random>

namespace warmpath {
namespace {

using Secret = std::array<uint32_t, 48>;  // 192 bytes; XXH3 wants at least 136

const Secret& process_secret() {
  static const Secret secret = [] {
    Secret bytes;
    std::random_device entropy;  // getrandom() in libstdc++ on Linux
    for (uint32_t& word : bytes) word = entropy();
    return bytes;
  }();
  return secret;
}

Hash128 to_hash(XXH128_hash_t hash) { return {hash.high64, hash.low64}; }

}  // namespace

Hash128 secret_hash(std::string_view text) {
  const Secret& secret = process_secret();
  return to_hash(XXH3_128bits_withSecret(text.data(), text.size(), secret.data(), sizeof(secret)));
}

Hash128 secret_hash(std::span<const std::string_view> pieces) {
  if (pieces.size() == 1) return secret_hash(pieces[0]);
  const Secret& secret = process_secret();
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset_withSecret(&state, secret.data(), sizeof(secret));
  for (const std::string_view piece : pieces) XXH3_128bits_update(&state, piece.data(), piece.size());
  return to_hash(XXH3_128bits_digest(&state));
}

}  // namespace warmpath
