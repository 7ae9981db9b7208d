// Where tests and benches find vocabularies: the shared model data beside the source tree, and the default model in
// WARMPATH_MODEL or the user's cache. Test code only.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace warmpath {

// The GGUF file whose tokens and merges stand for `family`, its own or, for families without one here, another's: how a
// family splits text does not depend on them. nullopt when this machine has none.
inline std::optional<std::string> find_vocabulary(std::string family) {
  if (family == "deepseek-v3" || family == "deepseek-coder") family = "deepseek-llm";
  if (family == "gpt-4o" || family == "tekken" || family == "kimi-k2") family = "llama-bpe";
  std::filesystem::path path;
  if (family == "smollm") {
    const auto variable = [](const char* name) {
      const char* value = std::getenv(name);
      return std::string(value != nullptr ? value : "");
    };
    const std::filesystem::path cache =
        variable("XDG_CACHE_HOME").empty() ? variable("HOME") + "/.cache" : variable("XDG_CACHE_HOME");
    path = variable("WARMPATH_MODEL").empty() ? cache / "warmpath/models/SmolLM2-135M-Instruct.Q4_1.gguf"
                                              : std::filesystem::path(variable("WARMPATH_MODEL"));
  } else {
    path =
        std::filesystem::path(WARMPATH_SOURCE_DIR) / "../shared/model_data/vocab" / ("ggml-vocab-" + family + ".gguf");
  }
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  return path.string();
}

}  // namespace warmpath
