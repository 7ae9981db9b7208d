// The release that this tree builds; CMake's project version is checked against it in base_test.
#pragma once

namespace warmpath {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace warmpath
