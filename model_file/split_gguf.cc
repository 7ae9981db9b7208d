#include "model_file/split_gguf.h"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "model_file/mapped_file.h"

namespace warmpath {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMaxParts = 9999;

bool five_digits(std::string_view text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return text.size() == 5 && error == std::errc() && end == text.data() + text.size();
}

// "NAME-00001-of-00003.gguf" -> ("NAME", 1, 3)
struct PartName {
  std::string base;
  uint64_t number = 0;
  uint64_t count = 0;
};
std::optional<PartName> part_name(const fs::path& path) {
  const std::string stem = path.stem().string();
  constexpr size_t kTail = std::string_view("-00001-of-00003").size();
  PartName name;
  if (path.extension() != ".gguf" || stem.size() <= kTail) return std::nullopt;
  const std::string_view tail = std::string_view(stem).substr(stem.size() - kTail);
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || !five_digits(tail.substr(1, 5), name.number) ||
      !five_digits(tail.substr(10), name.count) || name.number < 1 || name.number > name.count ||
      name.count > kMaxParts) {
    return std::nullopt;
  }
  name.base = stem.substr(0, stem.size() - kTail);
  return name;
}

Status add_part(const fs::path& path, uint64_t number, GgufFile& file) {
  Result<MappedFile> mapping = MappedFile::open(path.string());
  if (!mapping.ok()) return mapping.status();
  const Result<GgufFile> part = GgufFile::parse(mapping->bytes(), path.string());
  if (!part.ok()) return part.status();
  const Result<uint64_t> claimed = part->get_uint("split.no");
  if (!claimed.ok()) return claimed.status();
  if (*claimed + 1 != number) {
    return invalid_argument(
        fmt::format("{}: key 'split.no': {} in the part of number {}", path.string(), *claimed, number));
  }
  ForeignTensors foreign;
  for (const GgufTensor& tensor : part->tensors()) {
    foreign.tensors.push_back(
        {std::string(tensor.name), path.string(), tensor.type, tensor.shape, tensor.data, tensor.offset});
  }
  foreign.mappings.push_back(std::move(*mapping));
  return file.adopt(std::move(foreign));
}

}  // namespace

std::vector<fs::path> split_files(const fs::path& path) {
  const std::optional<PartName> name = part_name(path);
  if (!name) return {path};
  std::vector<fs::path> files;
  for (uint64_t number = 1; name->number == 1 && number <= name->count; ++number) {
    files.push_back(path.parent_path() / fmt::format("{}-{:05}-of-{:05}.gguf", name->base, number, name->count));
  }
  return files;
}

Result<GgufFile> open_gguf(const fs::path& path) {
  Result<GgufFile> file = GgufFile::open(path.string());
  if (!file.ok()) return file;
  const Result<uint64_t> count = file->get_uint_or("split.count", 1);
  if (!count.ok()) return count.status();
  if (*count <= 1) return file;
  const Result<uint64_t> number = file->get_uint_or("split.no", 0);
  if (!number.ok()) return number.status();
  const std::vector<fs::path> parts = split_files(path);
  if (*number != 0 || parts.size() != *count) {
    return invalid_argument(
        fmt::format("{}: key 'split.no': part {} of {}; give the first one, under its name "
                    "NAME-00001-of-{:05}.gguf, with the others beside it",
                    path.string(), *number + 1, *count, *count));
  }
  for (size_t index = 1; index < parts.size(); ++index) {
    WARMPATH_RETURN_IF_ERROR(add_part(parts[index], index + 1, *file));
  }
  return file;
}

}  // namespace warmpath
