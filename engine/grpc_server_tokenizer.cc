#include "engine/grpc_server_tokenizer.h"

#include <cstdint>
#include <cstring>

namespace warmpath {

namespace {

// GGUF v3, little-endian: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kVersion3 = 3;
constexpr size_t kAlignment = 32;

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

bool belongs(std::string_view key) {
  return key == "general.architecture" || key == "general.name" || key.starts_with("tokenizer.");
}

}  // namespace

std::string tokenizer_gguf(const GgufFile& model) {
  std::string entries;
  uint64_t count = 0;
  for (const GgufEntry& entry : model.entries()) {
    if (!belongs(entry.key)) continue;
    ++count;
    append<uint64_t>(entries, entry.key.size());
    entries += entry.key;
    append(entries, static_cast<uint32_t>(entry.type));
    if (entry.type == GgufType::kArray) {
      append(entries, static_cast<uint32_t>(entry.element_type));
      append<uint64_t>(entries, entry.count);
    } else if (entry.type == GgufType::kString) {
      append<uint64_t>(entries, entry.payload.size());
    }
    entries.append(reinterpret_cast<const char*>(entry.payload.data()), entry.payload.size());
  }
  std::string file;
  append(file, kMagic);
  append(file, kVersion3);
  append<uint64_t>(file, 0);  // tensors
  append(file, count);
  file += entries;
  file.resize((file.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
  return file;
}

}  // namespace warmpath
