// Keys that this project adds to those of the GGUF specification, where a model comes from somewhere else
// (safetensors_folder.h).
#pragma once

#include <string_view>

namespace warmpath {

// Which dimensions of q and k turn together: "adjacent" (2i, 2i + 1) or "halves" (i, i + half).
inline constexpr std::string_view kRopePairsKey = "warmpath.rope_pairs";
inline constexpr std::string_view kRopePairsHalves = "halves";

}  // namespace warmpath
