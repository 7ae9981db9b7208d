// A GGUF model cut into several files by llama-gguf-split, opened as one: NAME-00001-of-00003.gguf holds the keys, and
// all of them tensors. Thread safety: functions of the file system.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/status.h"
#include "model_file/gguf_file.h"

namespace warmpath {

// Opens a GGUF file; when it is the first of several, with the tensors of the others, which lie beside it. A later one
// is refused: its keys are not the model's.
Result<GgufFile> open_gguf(const std::filesystem::path& path);

// The files of a split model whose first one is at `path`, by its name; just `path` when the name is not of that form;
// nothing when it names a later one.
std::vector<std::filesystem::path> split_files(const std::filesystem::path& path);

}  // namespace warmpath
