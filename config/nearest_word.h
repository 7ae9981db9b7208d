// nearest_word: "did you mean ...?" for keys, enum words and the names of policies and models.
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace warmpath {

// Damerau-Levenshtein distance (insert, delete, replace, swap two neighbours), upper and lower case alike. Words longer
// than 64 bytes count as infinitely far (SIZE_MAX), so that untrusted words cost nothing.
size_t edit_distance(std::string_view left, std::string_view right);

// The candidate that a writer of `word` most likely meant: the nearest by edit distance, if it is at most a third of
// the word's length away (at least 2), else one that `word` begins or that begins with it. nullptr when none is
// plausible. Ties go to the earlier candidate.
const std::string* nearest_word(std::string_view word, std::span<const std::string> candidates);

// "; did you mean \"X\"?", or "; it must be one of A, B, C" when nothing is near (up to 20 words, then "..."), or "".
std::string suggest_word(std::string_view word, std::span<const std::string> candidates);

}  // namespace warmpath
