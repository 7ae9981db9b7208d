#include "base/hash128.h"

#include <xxhash.h>

namespace warmpath {

Hash128 hash128(const void* data, size_t bytes) {
  const XXH128_hash_t digest = XXH3_128bits(data, bytes);
  return {digest.high64, digest.low64};
}

std::string to_hex(Hash128 hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex(32, '0');
  for (int digit = 0; digit < 16; ++digit) {
    hex[15 - digit] = kDigits[(hash.hi >> (4 * digit)) & 15];
    hex[31 - digit] = kDigits[(hash.lo >> (4 * digit)) & 15];
  }
  return hex;
}

std::optional<Hash128> hash128_from_hex(std::string_view hex) {
  if (hex.size() != 32) return std::nullopt;
  Hash128 hash;
  for (size_t pos = 0; pos < 32; ++pos) {
    const char c = hex[pos];
    uint64_t digit;
    if (c >= '0' && c <= '9') {
      digit = static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<uint64_t>(c - 'a' + 10);
    } else {
      return std::nullopt;
    }
    uint64_t& half = pos < 16 ? hash.hi : hash.lo;
    half = half << 4 | digit;
  }
  return hash;
}

}  // namespace warmpath
