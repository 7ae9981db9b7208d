// heap_bytes: what one heap block of `bytes` costs with glibc's allocator (8 bytes of header, multiples of 16, at least
// 32). The index accounts its memory with it, so that its cap means resident memory.
#pragma once

#include <algorithm>
#include <cstddef>

namespace warmpath {

constexpr size_t heap_bytes(size_t bytes) { return bytes == 0 ? 0 : std::max<size_t>(32, (bytes + 8 + 15) / 16 * 16); }

}  // namespace warmpath
