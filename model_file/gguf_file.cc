#include "model_file/gguf_file.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "model_file/file_hash.h"
#include "model_file/gguf_parser.h"

namespace warmpath {

namespace {

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

bool is_integer(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kUint16:
    case GgufType::kInt16:
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kUint64:
    case GgufType::kInt64:
      return true;
    default:
      return false;
  }
}

bool is_float(GgufType type) { return type == GgufType::kFloat32 || type == GgufType::kFloat64; }

// REQUIRES is_integer(type). False when a uint64 does not fit.
bool load_integer(GgufType type, const std::byte* at, int64_t& value) {
  switch (type) {
    case GgufType::kUint8:
      value = load<uint8_t>(at);
      return true;
    case GgufType::kInt8:
      value = load<int8_t>(at);
      return true;
    case GgufType::kUint16:
      value = load<uint16_t>(at);
      return true;
    case GgufType::kInt16:
      value = load<int16_t>(at);
      return true;
    case GgufType::kUint32:
      value = load<uint32_t>(at);
      return true;
    case GgufType::kInt32:
      value = load<int32_t>(at);
      return true;
    case GgufType::kInt64:
      value = load<int64_t>(at);
      return true;
    default:
      break;
  }
  const uint64_t wide = load<uint64_t>(at);
  value = static_cast<int64_t>(wide);
  return wide <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

double load_float(GgufType type, const std::byte* at) {
  return type == GgufType::kFloat32 ? static_cast<double>(load<float>(at)) : load<double>(at);
}

}  // namespace

std::string_view GgufStrings::Iterator::operator*() const {
  return {reinterpret_cast<const char*>(at_) + 8, static_cast<size_t>(load<uint64_t>(at_))};
}

GgufStrings::Iterator& GgufStrings::Iterator::operator++() {
  at_ += 8 + load<uint64_t>(at_);
  return *this;
}

Result<GgufFile> GgufFile::open(const std::string& path) {
  Result<MappedFile> mapping = MappedFile::open(path);
  if (!mapping.ok()) return mapping.status();
  Result<GgufFile> file = parse(mapping->bytes(), path);
  if (file.ok()) file->mapping_ = std::move(*mapping);
  return file;
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, std::string_view name) {
  GgufFile file;
  file.name_ = name;
  file.bytes_ = bytes;
  WARMPATH_RETURN_IF_ERROR(GgufParser(file).parse());
  return file;
}

Result<GgufFile> GgufFile::parse(std::vector<std::byte>&& bytes, std::string_view name) {
  Result<GgufFile> file = parse(std::span<const std::byte>(bytes), name);
  if (file.ok()) file->owned_ = std::move(bytes);
  return file;
}

Hash128 GgufFile::content_hash() const {
  const Hash128 own = mapping_.bytes().empty() ? hash128(bytes_.data(), bytes_.size()) : file_hash(mapping_);
  if (foreign_.empty() && absorbed_.empty()) return own;
  std::vector<Hash128> hashes = {own};
  for (const auto& foreign : foreign_) {
    for (const MappedFile& mapping : foreign->mappings) hashes.push_back(file_hash(mapping));
  }
  for (const auto& keys : absorbed_) hashes.push_back(keys->content_hash());
  return hash128(hashes.data(), hashes.size() * sizeof(Hash128));
}

void GgufFile::drop_pages() const {
  mapping_.drop_pages();
  for (const auto& foreign : foreign_) {
    for (const MappedFile& mapping : foreign->mappings) mapping.drop_pages();
  }
}

Status GgufFile::adopt(ForeignTensors foreign) {
  const auto& kept = foreign_.emplace_back(std::make_unique<const ForeignTensors>(std::move(foreign)));
  for (const ForeignTensors::Tensor& from : kept->tensors) {
    GgufTensor tensor;
    tensor.name = from.name;
    tensor.type = from.type;
    tensor.shape = from.shape;
    tensor.elements = 1;
    for (const uint64_t extent : from.shape) tensor.elements *= extent;  // its bytes exist: no overflow
    tensor.data = from.data;
    tensor.offset = from.offset;
    tensor.file = from.file;
    if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) {
      return invalid_argument(fmt::format("{}: is there twice", place(tensor)));
    }
    tensors_.push_back(std::move(tensor));
  }
  return {};
}

Status GgufFile::absorb(GgufFile keys) {
  const auto& kept = absorbed_.emplace_back(std::make_unique<const GgufFile>(std::move(keys)));
  for (const GgufEntry& entry : kept->entries()) {
    if (!entry_index_.emplace(entry.key, entries_.size()).second) {
      return invalid_argument(fmt::format("{}: key '{}' is also in {}", kept->name(), printable(entry.key), name_));
    }
    entries_.push_back(entry);
  }
  return {};
}

std::string GgufFile::place(const GgufTensor& tensor) const {
  return fmt::format("{}: tensor '{}' at byte {}", tensor.file.empty() ? std::string_view(name_) : tensor.file,
                     printable(tensor.name), tensor.offset);
}

const GgufEntry* GgufFile::find_entry(std::string_view key) const {
  const auto found = entry_index_.find(key);
  return found != entry_index_.end() ? &entries_[found->second] : nullptr;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found != tensor_index_.end() ? &tensors_[found->second] : nullptr;
}

Status GgufFile::wrong_kind(const GgufEntry& entry, std::string_view wanted) const {
  const bool array = entry.type == GgufType::kArray;
  return invalid_argument(fmt::format("{}: key '{}' at byte {}: expected {}, found {}{}", name_, printable(entry.key),
                                      entry.offset, wanted, array ? "an array of " : "",
                                      gguf_type_name(array ? entry.element_type : entry.type)));
}

Result<const GgufEntry*> GgufFile::require(std::string_view key, std::string_view wanted,
                                           bool matches(const GgufEntry&)) const {
  const GgufEntry* entry = find_entry(key);
  if (entry == nullptr) return not_found(fmt::format("{}: key '{}' is missing", name_, printable(key)));
  if (!matches(*entry)) return wrong_kind(*entry, wanted);
  return entry;
}

Result<int64_t> GgufFile::get_int(std::string_view key) const {
  const auto entry = require(key, "an integer", [](const GgufEntry& found) { return is_integer(found.type); });
  if (!entry.ok()) return entry.status();
  int64_t value = 0;
  if (!load_integer((*entry)->type, (*entry)->payload.data(), value))
    return wrong_kind(**entry, "an integer below 2^63");
  return value;
}

Result<uint64_t> GgufFile::get_uint(std::string_view key) const {
  const Result<int64_t> value = get_int(key);
  if (!value.ok()) return value.status();
  if (*value < 0) return wrong_kind(*find_entry(key), "a non-negative integer");
  return static_cast<uint64_t>(*value);
}

Result<double> GgufFile::get_float(std::string_view key) const {
  const auto entry =
      require(key, "a number", [](const GgufEntry& found) { return is_integer(found.type) || is_float(found.type); });
  if (!entry.ok()) return entry.status();
  if (is_float((*entry)->type)) return load_float((*entry)->type, (*entry)->payload.data());
  const Result<int64_t> value = get_int(key);
  if (!value.ok()) return value.status();
  return static_cast<double>(*value);
}

Result<bool> GgufFile::get_bool(std::string_view key) const {
  const auto entry = require(key, "a bool", [](const GgufEntry& found) { return found.type == GgufType::kBool; });
  if (!entry.ok()) return entry.status();
  return load<uint8_t>((*entry)->payload.data()) != 0;
}

Result<std::string_view> GgufFile::get_string(std::string_view key) const {
  const auto entry = require(key, "a string", [](const GgufEntry& found) { return found.type == GgufType::kString; });
  if (!entry.ok()) return entry.status();
  const std::span<const std::byte> payload = (*entry)->payload;
  return std::string_view(reinterpret_cast<const char*>(payload.data()), payload.size());
}

Result<GgufStrings> GgufFile::get_strings(std::string_view key) const {
  const auto entry = require(key, "an array of strings", [](const GgufEntry& found) {
    return found.type == GgufType::kArray && found.element_type == GgufType::kString;
  });
  if (!entry.ok()) return entry.status();
  return GgufStrings((*entry)->payload, (*entry)->count);
}

Result<std::vector<int64_t>> GgufFile::get_ints(std::string_view key) const {
  const auto entry = require(key, "an array of integers", [](const GgufEntry& found) {
    return found.type == GgufType::kArray && is_integer(found.element_type);
  });
  if (!entry.ok()) return entry.status();
  std::vector<int64_t> values((*entry)->count);
  const uint32_t stride = gguf_type_bytes((*entry)->element_type);
  const std::byte* at = (*entry)->payload.data();
  for (int64_t& value : values) {
    if (!load_integer((*entry)->element_type, at, value)) return wrong_kind(**entry, "integers below 2^63");
    at += stride;
  }
  return values;
}

Result<std::vector<float>> GgufFile::get_floats(std::string_view key) const {
  const auto entry = require(key, "an array of floats", [](const GgufEntry& found) {
    return found.type == GgufType::kArray && is_float(found.element_type);
  });
  if (!entry.ok()) return entry.status();
  std::vector<float> values((*entry)->count);
  const uint32_t stride = gguf_type_bytes((*entry)->element_type);
  const std::byte* at = (*entry)->payload.data();
  for (float& value : values) {
    value = static_cast<float>(load_float((*entry)->element_type, at));
    at += stride;
  }
  return values;
}

Result<uint64_t> GgufFile::get_uint_or(std::string_view key, uint64_t fallback) const {
  if (!has(key)) return fallback;
  return get_uint(key);
}

Result<double> GgufFile::get_float_or(std::string_view key, double fallback) const {
  if (!has(key)) return fallback;
  return get_float(key);
}

Result<bool> GgufFile::get_bool_or(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  return get_bool(key);
}

Result<std::string_view> GgufFile::get_string_or(std::string_view key, std::string_view fallback) const {
  if (!has(key)) return fallback;
  return get_string(key);
}

std::string printable(std::string_view text) {
  constexpr size_t kMaxShown = 64;
  std::string shown;
  for (const char c : text.substr(0, kMaxShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte >= 0x7f || c == '\\' || c == '\'') {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown.push_back(c);
    }
  }
  if (text.size() > kMaxShown) shown += "...";
  return shown;
}

}  // namespace warmpath
