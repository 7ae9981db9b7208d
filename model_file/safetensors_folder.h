// A Hugging Face folder (config.json and model.safetensors, or the shards of model.safetensors.index.json) opened as
// the GgufFile that the same model would be: keys made from config.json, tensors under their GGUF names, read in place
// from the mapped shards. The tokenizer is not looked at (text/model_text.h adds its keys).
//
// Rows of q and k stay as Hugging Face orders them, which the key below says; nothing is converted or copied. What
// config.json asks for and no key can express is refused, naming the key (docs/formats.md). Thread safety: functions of
// the file system.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model_file/gguf_file.h"

namespace warmpath {

// Which dimensions of q and k turn together: "adjacent" (2i, 2i + 1) or "halves" (i, i + half).
inline constexpr std::string_view kRopePairsKey = "warmpath.rope_pairs";
inline constexpr std::string_view kRopePairsHalves = "halves";

// Whether `path` is a folder that holds a config.json.
bool is_model_folder(const std::filesystem::path& path);
// Errors name the file, the tensor and the offset.
Result<GgufFile> open_safetensors_folder(const std::filesystem::path& folder);
// The shards' paths, config.json first: what a change of the model changes.
Result<std::vector<std::filesystem::path>> safetensors_folder_files(const std::filesystem::path& folder);

}  // namespace warmpath
