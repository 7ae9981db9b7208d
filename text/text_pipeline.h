// TextPipeline: a model's tokenizer and chat template, made from whatever holds them: a GGUF file, a Hugging Face
// folder, or a tokenizer.json alone.
//
// Folders take one road: tokenizer_gguf_from_folder() packs what concerns text into a GGUF file without tensors, and
// vocabulary_from_gguf() reads that as it reads any other, in the engine and, after FetchTokenizer, in the gateway.
// Thread safety: pure functions of the file system; a TextPipeline is immutable.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace warmpath {

struct TextPipeline {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;  // null: the model has none
};

Result<TextPipeline> make_text_pipeline(Vocabulary vocabulary);

// Packs tokenizer.json (`path` itself, or in the folder `path`) and what stands beside it: tokenizer_config.json,
// special_tokens_map.json, generation_config.json, chat_template.jinja or chat_template.json. The same files always
// give the same bytes. Keys: docs/formats.md. Errors name the file and the place in it.
Result<std::vector<std::byte>> tokenizer_gguf_from_folder(const std::filesystem::path& path);

// `path`: a GGUF file, a folder with tokenizer.json, or a tokenizer.json.
Result<Vocabulary> vocabulary_from_path(const std::filesystem::path& path);

}  // namespace warmpath
