// Hash128: a 128-bit XXH3 digest. Not collision-resistant against an attacker who knows the seed input, which is why
// every chain of identities starts from a tenant's random salt (base/block_chain.h). Thread safety: values and pure
// functions.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace warmpath {

struct Hash128 {
  uint64_t hi = 0;
  uint64_t lo = 0;

  bool is_zero() const { return hi == 0 && lo == 0; }
  auto operator<=>(const Hash128&) const = default;
};

Hash128 hash128(const void* data, size_t bytes);
inline Hash128 hash128(std::string_view text) { return hash128(text.data(), text.size()); }

// 32 lower-case hexadecimal digits, high half first; and back (nullopt unless exactly that form).
std::string to_hex(Hash128 hash);
std::optional<Hash128> hash128_from_hex(std::string_view hex);

}  // namespace warmpath

template <>
struct std::hash<warmpath::Hash128> {
  size_t operator()(const warmpath::Hash128& hash) const noexcept { return hash.lo; }
};
