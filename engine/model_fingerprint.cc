#include "engine/model_fingerprint.h"

#include <fmt/format.h>

#include <cstring>
#include <string>

namespace warmpath {

Hash128 model_fingerprint(const GgufFile& file, const KvLayout& layout, Precision precision) {
  const Hash128 content = file.content_hash();
  std::string input(sizeof(content), '\0');
  std::memcpy(input.data(), &content, sizeof(content));
  input += fmt::format("kv {} {} {} {} {} precision {}", layout.layers, layout.kv_heads, layout.head_dim,
                       kv_type_name(layout.type), KvLayout::kTokens, precision == Precision::kFloat ? "float" : "fast");
  return hash128(input);
}

}  // namespace warmpath
