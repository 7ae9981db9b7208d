#include "model_file/gguf_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace warmpath {

static_assert(std::endian::native == std::endian::little, "GGUF values are read as they lie in the file");

namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kVersion = 3;
constexpr uint64_t kMaxKeyBytes = 65535;  // the specification's limit
constexpr uint64_t kMaxTensorNameBytes = 64;
constexpr uint32_t kMaxDimensions = 4;
constexpr int kMaxArrayDepth = 4;
constexpr uint64_t kMaxAlignment = 1 << 20;
// The smallest possible entry: an empty key's length, a type and one byte; and tensor: length, dimensions, type,
// offset.
constexpr uint64_t kMinEntryBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;

bool multiply_overflows(uint64_t left, uint64_t right, uint64_t& product) {
  return __builtin_mul_overflow(left, right, &product);
}

}  // namespace

Status GgufParser::fail_at(uint64_t offset, std::string_view problem) const {
  return invalid_argument(fmt::format("{}: {} at byte {}: {}", file_.name_, place_, offset, problem));
}

template <typename T>
Status GgufParser::read(T& value, std::string_view what) {
  if (remaining() < sizeof(T)) return fail(fmt::format("the file ends inside {}", what));
  std::memcpy(&value, bytes_.data() + at_, sizeof(T));
  at_ += sizeof(T);
  return {};
}

Status GgufParser::read_string(std::string_view& value, uint64_t max_bytes, std::string_view what) {
  uint64_t length = 0;
  WARMPATH_RETURN_IF_ERROR(read(length, what));
  if (length > remaining()) return fail(fmt::format("{} of {} bytes reaches past the end of the file", what, length));
  if (length > max_bytes) return fail(fmt::format("{} of {} bytes; the limit is {}", what, length, max_bytes));
  value = {reinterpret_cast<const char*>(bytes_.data()) + at_, static_cast<size_t>(length)};
  at_ += length;
  return {};
}

Status GgufParser::read_type(GgufType& type) {
  uint32_t number = 0;
  WARMPATH_RETURN_IF_ERROR(read(number, "a value type"));
  if (number >= kGgufTypeCount) return fail_at(at_ - 4, fmt::format("unknown value type {}", number));
  type = static_cast<GgufType>(number);
  return {};
}

Status GgufParser::parse() {
  WARMPATH_RETURN_IF_ERROR(parse_header());
  file_.entries_.reserve(entry_count_);
  for (uint64_t index = 0; index < entry_count_; ++index) {
    place_ = fmt::format("metadata entry {}", index);
    WARMPATH_RETURN_IF_ERROR(parse_entry());
  }
  if (file_.has("general.alignment")) {
    const Result<uint64_t> alignment = file_.get_uint("general.alignment");
    if (!alignment.ok()) return alignment.status();
    place_ = "key 'general.alignment'";
    if (!std::has_single_bit(*alignment) || *alignment < 8 || *alignment > kMaxAlignment) {
      return fail_at(file_.find_entry("general.alignment")->offset,
                     fmt::format("alignment {} is not a power of two from 8 to {}", *alignment, kMaxAlignment));
    }
    alignment_ = *alignment;
  }
  file_.tensors_.reserve(tensor_count_);
  for (uint64_t index = 0; index < tensor_count_; ++index) {
    place_ = fmt::format("tensor entry {}", index);
    WARMPATH_RETURN_IF_ERROR(parse_tensor());
  }
  return locate_tensors();
}

Status GgufParser::parse_header() {
  uint32_t magic = 0;
  uint32_t version = 0;
  WARMPATH_RETURN_IF_ERROR(read(magic, "the magic number"));
  if (magic != kMagic) return fail_at(0, "not a GGUF file (it does not start with 'GGUF')");
  WARMPATH_RETURN_IF_ERROR(read(version, "the version"));
  if (version != kVersion) {
    if (version == __builtin_bswap32(kVersion)) return fail_at(4, "a big-endian GGUF file; only little-endian is read");
    if (version == 1 || version == 2) {
      return fail_at(4, fmt::format("GGUF version {} is obsolete; convert the model again to version 3", version));
    }
    return fail_at(4, fmt::format("GGUF version {} is not known; this reader knows version 3", version));
  }
  WARMPATH_RETURN_IF_ERROR(read(tensor_count_, "the tensor count"));
  WARMPATH_RETURN_IF_ERROR(read(entry_count_, "the metadata count"));
  if (tensor_count_ > remaining() / kMinTensorBytes) {
    return fail_at(8, fmt::format("{} tensors cannot fit in the file", tensor_count_));
  }
  if (entry_count_ > remaining() / kMinEntryBytes) {
    return fail_at(16, fmt::format("{} metadata entries cannot fit in the file", entry_count_));
  }
  return {};
}

Status GgufParser::parse_entry() {
  const uint64_t start = at_;
  GgufEntry entry;
  WARMPATH_RETURN_IF_ERROR(read_string(entry.key, kMaxKeyBytes, "a key"));
  place_ = fmt::format("key '{}'", printable(entry.key));
  if (entry.key.empty()) return fail_at(start, "empty key");
  WARMPATH_RETURN_IF_ERROR(read_type(entry.type));
  if (entry.type == GgufType::kArray) {
    WARMPATH_RETURN_IF_ERROR(parse_array(entry));
  } else if (entry.type == GgufType::kString) {
    std::string_view text;
    WARMPATH_RETURN_IF_ERROR(read_string(text, bytes_.size(), "a string"));
    entry.payload = std::as_bytes(std::span(text.data(), text.size()));
    entry.offset = at_ - text.size();
  } else {
    entry.offset = at_;
    const uint32_t size = gguf_type_bytes(entry.type);
    if (remaining() < size) return fail("the file ends inside a value");
    entry.payload = bytes_.subspan(at_, size);
    at_ += size;
    if (entry.type == GgufType::kBool && static_cast<uint8_t>(entry.payload[0]) > 1) {
      return fail_at(entry.offset, "a bool that is neither 0 nor 1");
    }
  }
  if (!file_.entry_index_.emplace(entry.key, file_.entries_.size()).second)
    return fail_at(start, "the key occurs twice");
  file_.entries_.push_back(entry);
  return {};
}

Status GgufParser::parse_array(GgufEntry& entry) {
  WARMPATH_RETURN_IF_ERROR(read_type(entry.element_type));
  WARMPATH_RETURN_IF_ERROR(read(entry.count, "an array's length"));
  entry.offset = at_;
  WARMPATH_RETURN_IF_ERROR(skip_values(entry.element_type, entry.count, 1));
  entry.payload = bytes_.subspan(entry.offset, at_ - entry.offset);
  return {};
}

Status GgufParser::skip_values(GgufType type, uint64_t count, int depth) {
  const uint32_t size = gguf_type_bytes(type);
  if (size > 0) {
    uint64_t total = 0;
    if (multiply_overflows(count, size, total) || total > remaining()) {
      return fail(
          fmt::format("an array of {} {} values reaches past the end of the file", count, gguf_type_name(type)));
    }
    at_ += total;
    return {};
  }
  // A string takes at least 8 bytes and an array 12, so a huge count ends at the end of the file, not of memory.
  if (count > remaining() / 8) {
    return fail(fmt::format("an array of {} {} values reaches past the end of the file", count, gguf_type_name(type)));
  }
  for (uint64_t index = 0; index < count; ++index) {
    if (type == GgufType::kString) {
      std::string_view text;
      WARMPATH_RETURN_IF_ERROR(read_string(text, bytes_.size(), "a string"));
      continue;
    }
    if (depth >= kMaxArrayDepth) return fail(fmt::format("arrays nested deeper than {}", kMaxArrayDepth));
    GgufType inner = GgufType::kUint8;
    uint64_t inner_count = 0;
    WARMPATH_RETURN_IF_ERROR(read_type(inner));
    WARMPATH_RETURN_IF_ERROR(read(inner_count, "an array's length"));
    WARMPATH_RETURN_IF_ERROR(skip_values(inner, inner_count, depth + 1));
  }
  return {};
}

Status GgufParser::parse_tensor() {
  const uint64_t start = at_;
  GgufTensor tensor;
  WARMPATH_RETURN_IF_ERROR(read_string(tensor.name, kMaxTensorNameBytes, "a tensor name"));
  place_ = fmt::format("tensor '{}'", printable(tensor.name));
  if (tensor.name.empty()) return fail_at(start, "empty tensor name");
  uint32_t dimensions = 0;
  WARMPATH_RETURN_IF_ERROR(read(dimensions, "the number of dimensions"));
  if (dimensions > kMaxDimensions) {
    return fail_at(at_ - 4, fmt::format("{} dimensions; the limit is {}", dimensions, kMaxDimensions));
  }
  tensor.shape.resize(dimensions);
  tensor.elements = 1;
  for (uint64_t& size : tensor.shape) {
    WARMPATH_RETURN_IF_ERROR(read(size, "a dimension"));
    if (size == 0) return fail_at(at_ - 8, "a dimension of 0");
    if (multiply_overflows(tensor.elements, size, tensor.elements)) return fail_at(at_ - 8, "the dimensions overflow");
  }
  uint32_t type = 0;
  WARMPATH_RETURN_IF_ERROR(read(type, "the tensor type"));
  tensor.type = static_cast<TensorType>(type);
  const TensorLayout* layout = tensor_layout(tensor.type);
  if (layout == nullptr) return fail_at(at_ - 4, fmt::format("unknown tensor type {}", type));
  if (tensor.columns() % layout->block_elements != 0) {
    return fail_at(at_ - 4, fmt::format("rows of {} elements are not whole {} blocks of {}", tensor.columns(),
                                        layout->name, layout->block_elements));
  }
  WARMPATH_RETURN_IF_ERROR(read(tensor.offset, "the data offset"));
  if (tensor.offset % alignment_ != 0) {
    return fail_at(at_ - 8,
                   fmt::format("data offset {} is not a multiple of the alignment {}", tensor.offset, alignment_));
  }
  if (!file_.tensor_index_.emplace(tensor.name, file_.tensors_.size()).second) {
    return fail_at(start, "the tensor occurs twice");
  }
  file_.tensors_.push_back(std::move(tensor));
  return {};
}

// Offsets in the directory count from the data section, which starts at the next multiple of the alignment.
Status GgufParser::locate_tensors() {
  const uint64_t data_offset = (at_ + alignment_ - 1) & ~(alignment_ - 1);
  file_.data_offset_ = data_offset;
  for (GgufTensor& tensor : file_.tensors_) {
    place_ = fmt::format("tensor '{}'", printable(tensor.name));
    const TensorLayout& layout = *tensor_layout(tensor.type);
    uint64_t size = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    if (multiply_overflows(tensor.elements / layout.block_elements, layout.block_bytes, size) ||
        __builtin_add_overflow(data_offset, tensor.offset, &begin) || __builtin_add_overflow(begin, size, &end)) {
      return fail_at(tensor.offset, "the tensor's place overflows");
    }
    if (end > bytes_.size()) {
      return fail_at(begin,
                     fmt::format("its {} bytes of data reach past the end of the file ({} bytes); is the download "
                                 "complete?",
                                 size, bytes_.size()));
    }
    tensor.data = bytes_.subspan(begin, size);
    tensor.offset = begin;
  }
  std::vector<size_t> order(file_.tensors_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t left, size_t right) { return file_.tensors_[left].offset < file_.tensors_[right].offset; });
  for (size_t index = 1; index < order.size(); ++index) {
    const GgufTensor& before = file_.tensors_[order[index - 1]];
    const GgufTensor& tensor = file_.tensors_[order[index]];
    if (before.offset + before.data.size() > tensor.offset) {
      place_ = fmt::format("tensor '{}'", printable(tensor.name));
      return fail_at(tensor.offset, fmt::format("its data overlaps tensor '{}'", printable(before.name)));
    }
  }
  return {};
}

}  // namespace warmpath
