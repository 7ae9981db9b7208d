#include "model_file/gguf_writer.h"

#include <utility>

namespace warmpath {

namespace {

constexpr size_t kAlignment = 32;

void append(std::vector<std::byte>& out, const void* data, size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  out.insert(out.end(), bytes, bytes + size);
}

template <typename T>
void append_number(std::vector<std::byte>& out, T value) {
  append(out, &value, sizeof(value));
}

void append_string(std::vector<std::byte>& out, std::string_view text) {
  append_number<uint64_t>(out, text.size());
  append(out, text.data(), text.size());
}

void pad(std::vector<std::byte>& out) { out.resize((out.size() + kAlignment - 1) / kAlignment * kAlignment); }

}  // namespace

void GgufWriter::begin_entry(std::string_view key, GgufType type) {
  append_string(metadata_, key);
  append_number(metadata_, static_cast<uint32_t>(type));
  ++entries_;
}

void GgufWriter::add_uint32(std::string_view key, uint32_t value) {
  begin_entry(key, GgufType::kUint32);
  append_number(metadata_, value);
}

void GgufWriter::add_float32(std::string_view key, float value) {
  begin_entry(key, GgufType::kFloat32);
  append_number(metadata_, value);
}

void GgufWriter::add_bool(std::string_view key, bool value) {
  begin_entry(key, GgufType::kBool);
  append_number<uint8_t>(metadata_, value ? 1 : 0);
}

void GgufWriter::add_string(std::string_view key, std::string_view value) {
  begin_entry(key, GgufType::kString);
  append_string(metadata_, value);
}

void GgufWriter::add_strings(std::string_view key, std::span<const std::string> values) {
  begin_entry(key, GgufType::kArray);
  append_number(metadata_, static_cast<uint32_t>(GgufType::kString));
  append_number<uint64_t>(metadata_, values.size());
  for (const std::string& value : values) append_string(metadata_, value);
}

void GgufWriter::add_int32s(std::string_view key, std::span<const int32_t> values) {
  begin_entry(key, GgufType::kArray);
  append_number(metadata_, static_cast<uint32_t>(GgufType::kInt32));
  append_number<uint64_t>(metadata_, values.size());
  append(metadata_, values.data(), values.size_bytes());
}

void GgufWriter::add_tensor(std::string_view name, TensorType type, std::vector<uint64_t> shape,
                            std::vector<std::byte> data) {
  tensors_.push_back({std::string(name), type, std::move(shape), std::move(data)});
}

std::vector<std::byte> GgufWriter::finish() const {
  std::vector<std::byte> out;
  append(out, "GGUF", 4);
  append_number<uint32_t>(out, 3);
  append_number<uint64_t>(out, tensors_.size());
  append_number<uint64_t>(out, entries_);
  append(out, metadata_.data(), metadata_.size());
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    append_string(out, tensor.name);
    append_number(out, static_cast<uint32_t>(tensor.shape.size()));
    for (const uint64_t size : tensor.shape) append_number(out, size);
    append_number(out, static_cast<uint32_t>(tensor.type));
    append_number(out, offset);
    offset += (tensor.data.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  pad(out);
  for (const Tensor& tensor : tensors_) {
    append(out, tensor.data.data(), tensor.data.size());
    pad(out);
  }
  return out;
}

}  // namespace warmpath
