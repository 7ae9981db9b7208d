// The generated tables behind text/unicode.h; nothing else includes this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace warmpath {

inline constexpr size_t kUnicodeRunCount = 4108;
extern const uint32_t kUnicodeRuns[kUnicodeRunCount];

// Code points first, first + stride, ... last map to themselves + offset; or, when `letters` is not empty, `first`
// alone maps to those code points (up to three, the rest 0).
struct CaseMapping {
  uint32_t first;
  uint32_t last;
  uint32_t stride;
  int32_t offset;
  std::array<uint32_t, 3> letters;
};
const std::vector<CaseMapping>& upper_case_mappings();
const std::vector<CaseMapping>& lower_case_mappings();
const std::vector<CaseMapping>& title_case_mappings();  // where they differ from upper case

}  // namespace warmpath
