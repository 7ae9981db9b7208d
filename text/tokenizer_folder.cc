// The files of a Hugging Face folder that concern text, packed as GGUF metadata.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "model_file/gguf_writer.h"
#include "text/json_node.h"
#include "text/text_pipeline.h"

namespace warmpath {
namespace {

// The largest published ones have about 35 MB.
constexpr uintmax_t kMaxFileBytes = uintmax_t{200} << 20;

// nullopt when the file is not there.
Result<std::optional<std::string>> read_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::optional<std::string>();
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) return invalid_argument(fmt::format("{}: {}", path.string(), error.message()));
  if (bytes > kMaxFileBytes) {
    return invalid_argument(fmt::format("{}: {} bytes; at most {} are read", path.string(), bytes, kMaxFileBytes));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) return invalid_argument(fmt::format("{}: cannot be read", path.string()));
  return std::optional(std::move(text));
}

// One JSON file of the folder; every accessor answers "absent" when the file is.
struct JsonFile {
  std::string name;
  simdjson::dom::parser parser;
  std::optional<JsonNode> root;

  Status open(const std::filesystem::path& path) {
    name = path.string();
    const auto text = read_file(path);
    if (!text.ok()) return text.status();
    if (!*text) return {};
    simdjson::dom::element element;
    if (const auto error = parser.parse(**text).get(element)) {
      return invalid_argument(fmt::format("{}: not valid JSON: {}", name, simdjson::error_message(error)));
    }
    root.emplace(element, name);
    return root->is_object() ? Status() : root->must_be("an object");
  }
  std::optional<JsonNode> find(std::string_view key) const { return root ? root->find(key) : std::nullopt; }
};

// A special token is written as its text or as {"content": text, ...}.
Result<std::string> special_token_text(const JsonNode& node) {
  const Result<std::string_view> text = node.is_object() ? node.text_of("content") : node.text();
  if (!text.ok()) return text.status();
  return std::string(*text);
}

class FolderPacker {
 public:
  explicit FolderPacker(const std::filesystem::path& path)
      : folder_(std::filesystem::is_directory(path) ? path : path.parent_path()),
        tokenizer_(std::filesystem::is_directory(path) ? path / "tokenizer.json" : path) {}

  Result<std::vector<std::byte>> pack() {
    auto tokenizer = read_file(tokenizer_);
    if (!tokenizer.ok()) return tokenizer.status();
    if (!*tokenizer) {
      return not_found(fmt::format("{}: no such file; a model's folder needs its tokenizer.json", tokenizer_.string()));
    }
    WARMPATH_RETURN_IF_ERROR(config_.open(folder_ / "tokenizer_config.json"));
    WARMPATH_RETURN_IF_ERROR(map_.open(folder_ / "special_tokens_map.json"));
    WARMPATH_RETURN_IF_ERROR(generation_.open(folder_ / "generation_config.json"));
    WARMPATH_RETURN_IF_ERROR(model_.open(folder_ / "config.json"));
    writer_.add_string("general.name", folder_.filename().string());
    for (const std::string_view name : {"bos_token", "eos_token", "unk_token"}) {
      WARMPATH_RETURN_IF_ERROR(add_special(name));
    }
    WARMPATH_RETURN_IF_ERROR(add_sides());
    WARMPATH_RETURN_IF_ERROR(add_end_tokens());
    WARMPATH_RETURN_IF_ERROR(add_template());
    writer_.add_string("tokenizer.huggingface.json", **tokenizer);
    return writer_.finish();
  }

 private:
  Status add_special(std::string_view name) {
    auto node = config_.find(name);
    if (!node) node = map_.find(name);
    if (!node) return {};
    const auto text = special_token_text(*node);
    if (!text.ok()) return text.status();
    writer_.add_string(fmt::format("tokenizer.huggingface.{}", name), *text);
    return {};
  }

  // transformers' Llama and Gemma classes put bos and eos as these flags say, whatever the post-processor says.
  Status add_sides() {
    const auto class_node = config_.find("tokenizer_class");
    if (!class_node) return {};
    const auto class_name = class_node->text();
    if (!class_name.ok()) return class_name.status();
    const bool obeys =
        class_name->starts_with("Llama") || class_name->starts_with("Gemma") || class_name->starts_with("CodeLlama");
    for (const std::string_view name : {"add_bos_token", "add_eos_token"}) {
      const auto node = config_.find(name);
      if (!node || !obeys) continue;
      const auto flag = node->flag();
      if (!flag.ok()) return flag.status();
      writer_.add_bool(fmt::format("tokenizer.huggingface.{}", name), *flag);
    }
    return {};
  }

  // The ids that end an answer: generation_config.json's, else config.json's.
  Status add_end_tokens() {
    auto node = generation_.find("eos_token_id");
    if (!node) node = model_.find("eos_token_id");
    if (!node) return {};
    std::vector<int32_t> ids;
    const auto add = [&ids](const JsonNode& item) -> Status {
      const auto id = item.integer(0, std::numeric_limits<int32_t>::max());
      if (!id.ok()) return id.status();
      ids.push_back(static_cast<int32_t>(*id));
      return {};
    };
    WARMPATH_RETURN_IF_ERROR(node->is_array() ? node->each_item(add) : add(*node));
    writer_.add_int32s("tokenizer.huggingface.eos_token_ids", ids);
    return {};
  }

  Status add_template() {
    auto source = read_file(folder_ / "chat_template.jinja");
    if (!source.ok()) return source.status();
    if (!*source) {
      JsonFile alone;  // older multi-modal models
      WARMPATH_RETURN_IF_ERROR(alone.open(folder_ / "chat_template.json"));
      auto node = alone.find("chat_template");
      if (!node) node = config_.find("chat_template");
      if (!node) return {};
      const auto text = node->is_array() ? default_of(*node) : node->text();
      if (!text.ok()) return text.status();
      *source = std::string(*text);
    }
    if (!(*source)->empty()) writer_.add_string("tokenizer.chat_template", **source);
    return {};
  }

  // Several named templates: "default", as transformers takes it when none is asked for.
  static Result<std::string_view> default_of(const JsonNode& list) {
    std::optional<std::string_view> found;
    const Status status = list.each_item([&found](const JsonNode& item) -> Status {
      const auto name = item.text_of("name");
      if (!name.ok()) return name.status();
      const auto text = item.text_of("template");
      if (!text.ok()) return text.status();
      if (*name == "default") found = *text;
      return {};
    });
    if (!status.ok()) return status;
    if (!found) return list.refuse("has no template named 'default'");
    return *found;
  }

  std::filesystem::path folder_;
  std::filesystem::path tokenizer_;
  JsonFile config_;
  JsonFile map_;
  JsonFile generation_;
  JsonFile model_;
  GgufWriter writer_;
};

bool starts_as_gguf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  return file.read(magic, sizeof magic) && std::string_view(magic, sizeof magic) == "GGUF";
}

}  // namespace

Result<std::vector<std::byte>> tokenizer_gguf_from_folder(const std::filesystem::path& path) {
  return FolderPacker(path).pack();
}

Result<Vocabulary> vocabulary_from_path(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path) && starts_as_gguf(path)) {
    const auto file = GgufFile::open(path.string());
    return file.ok() ? vocabulary_from_gguf(*file) : Result<Vocabulary>(file.status());
  }
  auto bytes = tokenizer_gguf_from_folder(path);
  if (!bytes.ok()) return bytes.status();
  const auto file = GgufFile::parse(*std::move(bytes), path.string());
  return file.ok() ? vocabulary_from_gguf(*file) : Result<Vocabulary>(file.status());
}

}  // namespace warmpath
