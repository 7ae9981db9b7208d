// SecretHash: 128-bit XXH3 under a random secret of this process, for caches whose keys are hashes of what clients
// sent: without the secret nobody can make two texts collide. Values mean nothing outside the process. Thread safety:
// pure functions over a secret made on first use.
#pragma once

#include <span>
#include <string_view>

#include "base/hash128.h"

namespace warmpath {

Hash128 secret_hash(std::string_view text);
// Of the pieces joined together.
Hash128 secret_hash(std::span<const std::string_view> pieces);

}  // namespace warmpath
