// RenderLimits: what one rendering may cost. Templates come with model files and messages from anywhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warmpath {

struct RenderLimits {
  uint64_t steps = 20'000'000;              // nodes evaluated, values copied, and bytes scanned / 256
  size_t output_bytes = size_t{256} << 20;  // of the prompt, and of any string built on the way
  int depth = 800;                          // nested evaluations; about 300 bytes of stack each
};

}  // namespace warmpath
