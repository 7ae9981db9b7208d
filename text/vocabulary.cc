#include "text/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/check.h"
#include "text/byte_alphabet.h"
#include "text/unicode.h"

namespace warmpath {
namespace {

// Tokens that end an answer wherever a vocabulary has them: end of turn, end of text, and the markers with which code
// models start another file. The list is llama.cpp's (src/llama-vocab.cpp, "special_eog_ids"), so that both stop alike.
constexpr std::array<std::string_view, 26> kEndOfGeneration = {"<|eot_id|>",
                                                               "<|im_end|>",
                                                               "<|end|>",
                                                               "<|return|>",
                                                               "<|call|>",
                                                               "<|flush|>",
                                                               "<|calls|>",
                                                               "<end_of_turn>",
                                                               "<|endoftext|>",
                                                               "</s>",
                                                               "<|eom_id|>",
                                                               "<EOT>",
                                                               "_<EOT>",
                                                               "[EOT]",
                                                               "[EOS]",
                                                               "<|end_of_text|>",
                                                               "<end_of_utterance>",
                                                               "<｜end▁of▁sentence｜>",
                                                               "<|fim_pad|>",
                                                               "<fim-pad>",
                                                               "<fim_pad>",
                                                               "<|fim_repo|>",
                                                               "<|repo_name|>",
                                                               "<fim-repo>",
                                                               "<reponame>",
                                                               "<|file_sep|>"};

constexpr std::string_view kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
    "'\\n' "
    "}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

Result<std::optional<TokenId>> read_id(const GgufFile& file, std::string_view key, size_t tokens) {
  if (!file.has(key)) return std::optional<TokenId>();
  const Result<int64_t> id = file.get_int(key);
  if (!id.ok()) return id.status();
  // Converters write -1 (also as 4294967295) for "none".
  if (*id < 0 || *id == std::numeric_limits<uint32_t>::max()) return std::optional<TokenId>();
  if (static_cast<uint64_t>(*id) >= tokens) {
    return invalid_argument(fmt::format("{}: {} is {}, but there are {} tokens", file.name(), key, *id, tokens));
  }
  return std::optional<TokenId>(static_cast<TokenId>(*id));
}

Status read_types(const GgufFile& file, Vocabulary& vocabulary) {
  constexpr std::string_view key = "tokenizer.ggml.token_type";
  vocabulary.types.assign(vocabulary.tokens.size(), TokenType::kNormal);
  if (!file.has(key)) return {};
  const Result<std::vector<int64_t>> types = file.get_ints(key);
  if (!types.ok()) return types.status();
  if (types->size() != vocabulary.tokens.size()) {
    return invalid_argument(
        fmt::format("{}: {} has {} entries for {} tokens", file.name(), key, types->size(), vocabulary.tokens.size()));
  }
  for (size_t id = 0; id < types->size(); ++id) {
    const int64_t type = (*types)[id];
    if (type < 0 || type > static_cast<int64_t>(TokenType::kByte)) {
      return invalid_argument(fmt::format("{}: {}[{}] is {}, not 1 to 6", file.name(), key, id, type));
    }
    // 0 is "undefined", which ggml treats as normal.
    vocabulary.types[id] = type == 0 ? TokenType::kNormal : static_cast<TokenType>(type);
  }
  return {};
}

void collect_end_of_generation(Vocabulary& vocabulary) {
  auto& ends = vocabulary.end_of_generation;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.types[id] != TokenType::kControl && vocabulary.types[id] != TokenType::kUserDefined) continue;
    if (std::find(kEndOfGeneration.begin(), kEndOfGeneration.end(), vocabulary.tokens[id]) != kEndOfGeneration.end()) {
      ends.push_back(static_cast<TokenId>(id));
    }
  }
  if (vocabulary.eos) ends.push_back(*vocabulary.eos);
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
}

}  // namespace

std::string_view Vocabulary::text_of(std::optional<TokenId> id) const {
  if (!id || *id < 0 || static_cast<size_t>(*id) >= tokens.size()) return {};
  return tokens[static_cast<size_t>(*id)];
}

Result<Vocabulary> vocabulary_from_gguf(const GgufFile& file) {
  Vocabulary vocabulary;
  const auto model = file.get_string("tokenizer.ggml.model");
  if (!model.ok()) return model.status();
  vocabulary.model = *model;
  const auto pre = file.get_string_or("tokenizer.ggml.pre", "default");
  if (!pre.ok()) return pre.status();
  vocabulary.pre = *pre;

  const auto tokens = file.get_strings("tokenizer.ggml.tokens");
  if (!tokens.ok()) return tokens.status();
  if (tokens->empty() || tokens->size() > static_cast<size_t>(std::numeric_limits<TokenId>::max())) {
    return invalid_argument(fmt::format("{}: tokenizer.ggml.tokens has {} entries", file.name(), tokens->size()));
  }
  vocabulary.tokens.assign(tokens->begin(), tokens->end());
  WARMPATH_RETURN_IF_ERROR(read_types(file, vocabulary));

  if (file.has("tokenizer.ggml.scores")) {
    auto scores = file.get_floats("tokenizer.ggml.scores");
    if (!scores.ok()) return scores.status();
    if (scores->size() != vocabulary.tokens.size()) {
      return invalid_argument(fmt::format("{}: tokenizer.ggml.scores has {} entries for {} tokens", file.name(),
                                          scores->size(), vocabulary.tokens.size()));
    }
    vocabulary.scores = std::move(*scores);
  }
  if (file.has("tokenizer.ggml.merges")) {
    const auto merges = file.get_strings("tokenizer.ggml.merges");
    if (!merges.ok()) return merges.status();
    vocabulary.merges.assign(merges->begin(), merges->end());
  }

  const auto id_of = [&](std::string_view key, std::optional<TokenId>& into) -> Status {
    const auto id = read_id(file, key, vocabulary.tokens.size());
    if (!id.ok()) return id.status();
    into = *id;
    return {};
  };
  WARMPATH_RETURN_IF_ERROR(id_of("tokenizer.ggml.bos_token_id", vocabulary.bos));
  WARMPATH_RETURN_IF_ERROR(id_of("tokenizer.ggml.eos_token_id", vocabulary.eos));
  WARMPATH_RETURN_IF_ERROR(id_of("tokenizer.ggml.unknown_token_id", vocabulary.unknown));
  for (const std::string_view key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    std::optional<TokenId> end;
    WARMPATH_RETURN_IF_ERROR(id_of(key, end));
    if (end) vocabulary.end_of_generation.push_back(*end);
  }
  const auto add_bos = file.get_bool_or("tokenizer.ggml.add_bos_token", false);
  if (!add_bos.ok()) return add_bos.status();
  vocabulary.add_bos = *add_bos && vocabulary.bos.has_value();
  const auto chat_template = file.get_string_or("tokenizer.chat_template", "");
  if (!chat_template.ok()) return chat_template.status();
  vocabulary.chat_template = *chat_template;
  collect_end_of_generation(vocabulary);
  return vocabulary;
}

Vocabulary synthetic_vocabulary(int size) {
  WARMPATH_CHECK(size >= 320, "a synthetic vocabulary needs room for its bytes and control tokens");
  Vocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "gpt-2";
  for (uint32_t byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.emplace_back();
    append_utf8(spelling_of_byte(static_cast<uint8_t>(byte)), vocabulary.tokens.back());
  }
  vocabulary.types.assign(256, TokenType::kNormal);
  for (const std::string_view control : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    vocabulary.tokens.emplace_back(control);
    vocabulary.types.push_back(TokenType::kControl);
  }
  while (vocabulary.tokens.size() < static_cast<size_t>(size)) {
    vocabulary.tokens.push_back(fmt::format("<|unused_{}|>", vocabulary.tokens.size()));
    vocabulary.types.push_back(TokenType::kUnused);
  }
  vocabulary.bos = 257;
  vocabulary.eos = 258;
  vocabulary.chat_template = kChatMl;
  collect_end_of_generation(vocabulary);
  return vocabulary;
}

}  // namespace warmpath
