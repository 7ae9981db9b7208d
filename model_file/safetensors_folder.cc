#include "model_file/safetensors_folder.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "model_file/gguf_writer.h"
#include "model_file/hugging_face_config.h"
#include "model_file/mapped_file.h"
#include "model_file/safetensors_file.h"

namespace warmpath {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kConfig = "config.json";
constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
// An index of 100,000 tensors has about 10 MB.
constexpr size_t kMaxJsonBytes = size_t{64} << 20;

Result<MappedFile> map_json(const fs::path& path) {
  Result<MappedFile> file = MappedFile::open(path.string());
  if (file.ok() && file->bytes().size() > kMaxJsonBytes) {
    return invalid_argument(
        fmt::format("{}: {} bytes; at most {} are read", path.string(), file->bytes().size(), kMaxJsonBytes));
  }
  return file;
}

// Tensor names by the shard that the index says holds them. One shard, whose tensors are not named, without an index.
struct Shards {
  std::vector<std::string> files;
  std::map<std::string, std::string, std::less<>> of_tensor;
};

Result<Shards> find_shards(const fs::path& folder) {
  std::error_code error;
  const fs::path index_path = folder / kIndex;
  Shards shards;
  if (!fs::exists(index_path, error)) {
    if (fs::exists(folder / kSingle, error)) {
      shards.files.emplace_back(kSingle);
      return shards;
    }
    return not_found(fmt::format("{}: neither {} nor {} is there", folder.string(), kSingle, kIndex));
  }
  const Result<MappedFile> file = map_json(index_path);
  if (!file.ok()) return file.status();
  simdjson::dom::parser parser;
  simdjson::dom::object map;
  const std::string name = index_path.string();
  simdjson::dom::element root;
  if (const auto problem =
          parser.parse(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()).get(root)) {
    return invalid_argument(fmt::format("{}: not valid JSON: {}", name, simdjson::error_message(problem)));
  }
  if (!root.is_object() || root["weight_map"].get_object().get(map)) {
    return invalid_argument(fmt::format("{}: key 'weight_map': is missing", name));
  }
  std::set<std::string> files;
  for (const auto& [tensor, value] : map) {
    std::string_view shard;
    // A plain file name: an index may not point out of its folder.
    if (value.get_string().get(shard) || shard.empty() || shard.find('/') != std::string_view::npos || shard == ".." ||
        shard == "." || shard.find('\0') != std::string_view::npos) {
      return invalid_argument(
          fmt::format("{}: key 'weight_map.{}': is no file name of this folder", name, printable(tensor)));
    }
    files.emplace(shard);
    shards.of_tensor.emplace(tensor, shard);
  }
  if (files.empty()) return invalid_argument(fmt::format("{}: key 'weight_map': is empty", name));
  shards.files.assign(files.begin(), files.end());
  return shards;
}

std::optional<TensorType> tensor_type_of(std::string_view dtype) {
  if (dtype == "F32") return TensorType::kF32;
  if (dtype == "F16") return TensorType::kF16;
  if (dtype == "BF16") return TensorType::kBF16;
  return std::nullopt;
}

// One shard's tensors, under their GGUF names.
Status read_shard(const MappedFile& mapping, const std::string& path, const std::string& shard, const Shards& shards,
                  bool tied, ForeignTensors& out) {
  Result<std::vector<SafetensorsTensor>> tensors = parse_safetensors(mapping.bytes(), path);
  if (!tensors.ok()) return tensors.status();
  for (SafetensorsTensor& tensor : *tensors) {
    const auto fail = [&](StatusCode code, std::string_view problem) {
      return Status(
          code, fmt::format("{}: tensor '{}' at byte {}: {}", path, printable(tensor.name), tensor.offset, problem));
    };
    if (!shards.of_tensor.empty()) {
      const auto listed = shards.of_tensor.find(tensor.name);
      if (listed == shards.of_tensor.end() || listed->second != shard) {
        return fail(StatusCode::kInvalidArgument, fmt::format("{} does not say that it is here", kIndex));
      }
    }
    if (tensor.name.ends_with("rotary_emb.inv_freq")) continue;  // every reader computes it
    if (tied && tensor.name == "lm_head.weight") continue;       // a copy of the embedding
    const std::optional<TensorType> type = tensor_type_of(tensor.dtype);
    if (!type) {
      return fail(StatusCode::kUnimplemented,
                  fmt::format("dtype {} is not supported; supported: F32, F16, BF16", tensor.dtype));
    }
    if (tensor.shape.empty() || tensor.shape.size() > 4 || std::ranges::count(tensor.shape, 0u) > 0) {
      return fail(StatusCode::kInvalidArgument, "it has no elements or is no vector or matrix");
    }
    ForeignTensors::Tensor& added = out.tensors.emplace_back();
    added.name = gguf_tensor_name(tensor.name);
    added.file = path;
    added.type = *type;
    added.shape.assign(tensor.shape.rbegin(), tensor.shape.rend());
    added.data = tensor.data;
    added.offset = tensor.offset;
  }
  return {};
}

}  // namespace

bool is_model_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error) && fs::is_regular_file(path / kConfig, error);
}

Result<std::vector<fs::path>> safetensors_folder_files(const fs::path& folder) {
  const Result<Shards> shards = find_shards(folder);
  if (!shards.ok()) return shards.status();
  std::vector<fs::path> files = {folder / kConfig};
  for (const std::string& shard : shards->files) files.push_back(folder / shard);
  return files;
}

Result<GgufFile> open_safetensors_folder(const fs::path& folder) {
  const fs::path config_path = folder / kConfig;
  const Result<MappedFile> json = map_json(config_path);
  if (!json.ok()) return json.status();
  GgufWriter writer;
  const Result<HuggingFaceConfig> config = translate_config(json->bytes(), config_path.string(), writer);
  if (!config.ok()) return config.status();
  const Result<Shards> shards = find_shards(folder);
  if (!shards.ok()) return shards.status();
  ForeignTensors tensors;
  for (const std::string& shard : shards->files) {
    const std::string path = (folder / shard).string();
    Result<MappedFile> mapping = MappedFile::open(path);
    if (!mapping.ok()) return mapping.status();
    WARMPATH_RETURN_IF_ERROR(read_shard(*mapping, path, shard, *shards, config->tied, tensors));
    tensors.mappings.push_back(std::move(*mapping));
  }
  // Untied, an output matrix must be there: without one a reader of GGUF files would take the embedding.
  if (!config->tied &&
      std::ranges::none_of(tensors.tensors, [](const auto& tensor) { return tensor.name == "output.weight"; })) {
    return not_found(fmt::format("{}: tensor 'lm_head.weight' is missing, and key 'tie_word_embeddings' is not true",
                                 folder.string()));
  }
  Result<GgufFile> file = GgufFile::parse(writer.finish(), folder.string());
  if (!file.ok()) return file.status();
  WARMPATH_RETURN_IF_ERROR(file->adopt(std::move(tensors)));
  return file;
}

}  // namespace warmpath
