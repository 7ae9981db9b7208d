#include "config/nearest_word.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace warmpath {

namespace {

constexpr size_t kMaxWord = 64;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

size_t edit_distance(std::string_view left, std::string_view right) {
  if (left.size() > kMaxWord || right.size() > kMaxWord) return SIZE_MAX;
  // rows[n % 3][m]: distance between the first n bytes of `left` and the first m of `right`.
  std::array<std::array<size_t, kMaxWord + 1>, 3> rows;
  for (size_t m = 0; m <= right.size(); ++m) rows[0][m] = m;
  for (size_t n = 1; n <= left.size(); ++n) {
    auto& row = rows[n % 3];
    const auto& above = rows[(n + 2) % 3];
    row[0] = n;
    for (size_t m = 1; m <= right.size(); ++m) {
      const bool same = lower(left[n - 1]) == lower(right[m - 1]);
      row[m] = std::min({above[m] + 1, row[m - 1] + 1, above[m - 1] + (same ? 0 : 1)});
      if (n > 1 && m > 1 && lower(left[n - 1]) == lower(right[m - 2]) && lower(left[n - 2]) == lower(right[m - 1])) {
        row[m] = std::min(row[m], rows[(n + 1) % 3][m - 2] + 1);
      }
    }
  }
  return rows[left.size() % 3][right.size()];
}

const std::string* nearest_word(std::string_view word, std::span<const std::string> candidates) {
  if (word.empty()) return nullptr;
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    // A distance as long as the word itself means that nothing of it was kept.
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best = &candidate;
      best_distance = distance;
    }
  }
  if (best != nullptr || word.size() < 3) return best;
  for (const std::string& candidate : candidates) {
    if (candidate.starts_with(word) || word.starts_with(candidate) || candidate.ends_with(word)) return &candidate;
  }
  return nullptr;
}

std::string suggest_word(std::string_view word, std::span<const std::string> candidates) {
  if (candidates.empty()) return "";
  if (const std::string* nearest = nearest_word(word, candidates)) return "; did you mean \"" + *nearest + "\"?";
  constexpr size_t kShown = 20;
  std::string list = candidates.size() == 1 ? "; it must be " : "; it must be one of ";
  for (size_t n = 0; n < std::min(candidates.size(), kShown); ++n) list += (n > 0 ? ", " : "") + candidates[n];
  return candidates.size() > kShown ? list + ", ..." : list;
}

}  // namespace warmpath
