#include "model_file/safetensors_file.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "model_file/gguf_file.h"

namespace warmpath {

namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxDimensions = 8;

struct Dtype {
  std::string_view name;
  uint64_t bytes;
};
constexpr Dtype kDtypes[] = {{"F32", 4},  {"F16", 2},     {"BF16", 2},    {"F64", 8}, {"I64", 8},    {"I32", 4},
                             {"I16", 2},  {"I8", 1},      {"U64", 8},     {"U32", 4}, {"U16", 2},    {"U8", 1},
                             {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"C64", 8}, {"F8_E8M0", 1}};

std::optional<uint64_t> dtype_bytes(std::string_view name) {
  const auto* found = std::ranges::find(kDtypes, name, &Dtype::name);
  return found != std::end(kDtypes) ? std::optional(found->bytes) : std::nullopt;
}

class SafetensorsParser {
 public:
  SafetensorsParser(std::span<const std::byte> bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  Result<std::vector<SafetensorsTensor>> parse() {
    uint64_t header = 0;
    if (bytes_.size() < kLengthBytes) return fail(0, "too short for a safetensors file");
    std::memcpy(&header, bytes_.data(), kLengthBytes);
    if (header > kMaxHeaderBytes) {
      return fail(0, fmt::format("a header of {} bytes; the limit is {}", header, kMaxHeaderBytes));
    }
    if (header > bytes_.size() - kLengthBytes) {
      return fail(0, fmt::format("a header of {} bytes, but the file has {}", header, bytes_.size()));
    }
    data_offset_ = kLengthBytes + header;
    // The parser wants room behind the text; it copies.
    simdjson::dom::parser parser;
    simdjson::dom::object root;
    const auto* text = reinterpret_cast<const char*>(bytes_.data()) + kLengthBytes;
    if (header == 0 || *text != '{') return fail(kLengthBytes, "the header is no JSON object");
    if (const auto error = parser.parse(text, header).get(root)) {
      return fail(kLengthBytes, fmt::format("the header is not valid JSON: {}", simdjson::error_message(error)));
    }
    for (const auto& [key, value] : root) {
      if (key == "__metadata__") continue;
      WARMPATH_RETURN_IF_ERROR(read_tensor(key, value));
    }
    WARMPATH_RETURN_IF_ERROR(check_cover());
    return std::move(tensors_);
  }

 private:
  Status fail(uint64_t offset, std::string_view problem) const {
    return invalid_argument(fmt::format("{}: at byte {}: {}", name_, offset, problem));
  }
  Status fail(const SafetensorsTensor& tensor, std::string_view problem) const {
    return invalid_argument(fmt::format("{}: tensor '{}' at byte {}: {}", name_, printable(tensor.name),
                                        tensor.offset == 0 ? kLengthBytes : tensor.offset, problem));
  }

  Status read_tensor(std::string_view name, simdjson::dom::element value) {
    SafetensorsTensor tensor;
    tensor.name = name;
    if (!names_.insert(tensor.name).second) return fail(tensor, "is there twice");
    std::string_view dtype;
    if (value["dtype"].get_string().get(dtype)) return fail(tensor, "has no dtype");
    const std::optional<uint64_t> element_bytes = dtype_bytes(dtype);
    if (!element_bytes) return fail(tensor, fmt::format("dtype '{}' is unknown", printable(dtype)));
    tensor.dtype = dtype;

    simdjson::dom::array shape;
    if (value["shape"].get_array().get(shape)) return fail(tensor, "has no shape");
    uint64_t size = *element_bytes;
    for (const simdjson::dom::element dimension : shape) {
      uint64_t extent = 0;
      if (dimension.get_uint64().get(extent)) return fail(tensor, "a dimension is no number");
      if (tensor.shape.size() == kMaxDimensions) {
        return fail(tensor, fmt::format("more than {} dimensions", kMaxDimensions));
      }
      tensor.shape.push_back(extent);
      if (__builtin_mul_overflow(size, extent, &size)) return fail(tensor, "its shape overflows");
    }

    simdjson::dom::array offsets;
    uint64_t ends[2] = {};
    size_t count = 0;
    if (value["data_offsets"].get_array().get(offsets)) return fail(tensor, "has no data_offsets");
    for (const simdjson::dom::element end : offsets) {
      if (count == 2 || end.get_uint64().get(ends[count])) return fail(tensor, "data_offsets are not two numbers");
      ++count;
    }
    if (count != 2) return fail(tensor, "data_offsets are not two numbers");
    const uint64_t data_bytes = bytes_.size() - data_offset_;
    if (ends[0] > ends[1] || ends[1] > data_bytes) {
      return fail(tensor, fmt::format("data_offsets {} to {} of {} bytes of data", ends[0], ends[1], data_bytes));
    }
    tensor.offset = data_offset_ + ends[0];
    if (ends[1] - ends[0] != size) {
      return fail(tensor, fmt::format("{} bytes, but its shape and dtype {} need {}", ends[1] - ends[0], dtype, size));
    }
    tensor.data = bytes_.subspan(tensor.offset, size);
    tensors_.push_back(std::move(tensor));
    return {};
  }

  // Every byte of the data belongs to one tensor.
  Status check_cover() {
    std::ranges::sort(tensors_, [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
      return a.offset != b.offset ? a.offset < b.offset : a.data.size() < b.data.size();
    });
    uint64_t end = data_offset_;
    for (const SafetensorsTensor& tensor : tensors_) {
      if (tensor.offset < end) return fail(tensor, fmt::format("overlaps the tensor that ends at byte {}", end));
      if (tensor.offset > end) return fail(tensor, fmt::format("leaves a gap: the tensor before ends at byte {}", end));
      end = tensor.offset + tensor.data.size();
    }
    if (end != bytes_.size()) {
      return fail(end, fmt::format("{} bytes that belong to no tensor", bytes_.size() - end));
    }
    return {};
  }

  const std::span<const std::byte> bytes_;
  const std::string_view name_;
  uint64_t data_offset_ = 0;
  std::vector<SafetensorsTensor> tensors_;
  std::unordered_set<std::string> names_;
};

}  // namespace

Result<std::vector<SafetensorsTensor>> parse_safetensors(std::span<const std::byte> bytes, std::string_view name) {
  return SafetensorsParser(bytes, name).parse();
}

}  // namespace warmpath
