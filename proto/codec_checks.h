// Checks that the codec_*.cc files share. Messages name the field. Thread safety: pure functions.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/token.h"

namespace warmpath::codec {

template <typename T>
Status not_negative(std::string_view field, T value) {
  if (value >= 0) return {};
  return invalid_argument(fmt::format("{} is {}; it must not be negative", field, value));
}

inline Status duration(std::string_view field, double seconds) {
  if (std::isfinite(seconds) && seconds >= 0) return {};
  return invalid_argument(fmt::format("{} is {}; it must be a finite number of seconds, 0 or more", field, seconds));
}

inline Status at_most(std::string_view field, size_t bytes, size_t limit) {
  if (bytes <= limit) return {};
  return invalid_argument(fmt::format("{} has {} bytes; at most {} are allowed", field, bytes, limit));
}

template <typename Repeated>
Status read_tokens(std::string_view field, const Repeated& from, std::vector<TokenId>& to) {
  to.assign(from.begin(), from.end());
  // One pass without branches: a prompt has 100,000 of them.
  TokenId any = 0;
  for (const TokenId token : to) any |= token;
  if (any >= 0) return {};
  const auto bad = std::find_if(to.begin(), to.end(), [](TokenId token) { return token < 0; });
  return invalid_argument(fmt::format("{}[{}] is {}; tokens are not negative", field, bad - to.begin(), *bad));
}

}  // namespace warmpath::codec
