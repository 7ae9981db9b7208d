// JSON text into Values, as Python's json.loads reads it: key order kept, the last of duplicate keys wins, integers of
// any size keep their digits. Stricter in one thing and milder in another: bytes must be valid UTF-8, and a lone
// surrogate escape (which JavaScript clients do send when they cut a string) becomes U+FFFD instead of an unprintable
// string. Bounds: nesting at most Value::kMaxDepth, and as many values (keys included) as the caller allows: each takes
// about kValueBytes, fifty times what `{},` takes as text. Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "text/value.h"

namespace warmpath {

// What a value of any kind takes in memory, about, besides a string's bytes.
inline constexpr size_t kValueBytes = 112;

// Every list and dict in the result is frozen, every string has `origin`. Errors name the byte offset where known.
Result<Value> value_from_json(std::string_view json, Origin origin = Origin::kMessage, size_t max_values = SIZE_MAX);

}  // namespace warmpath
