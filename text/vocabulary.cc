#include "text/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "base/check.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer_family.h"
#include "text/tokenizer_json.h"
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

// "left right" strings to ids; a token may itself start with a space.
Status read_merges(const GgufFile& file, Vocabulary& vocabulary) {
  constexpr std::string_view key = "tokenizer.ggml.merges";
  if (!file.has(key)) return {};
  const auto merges = file.get_strings(key);
  if (!merges.ok()) return merges.status();
  std::unordered_map<std::string_view, TokenId> id_of;
  id_of.reserve(vocabulary.tokens.size());
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    id_of.emplace(vocabulary.tokens[id], static_cast<TokenId>(id));
  }
  vocabulary.merges.reserve(merges->size());
  std::string joined;
  for (const std::string_view merge : *merges) {
    const size_t space = merge.find(' ', 1);
    const auto refuse = [&](std::string_view problem) {
      return invalid_argument(
          fmt::format("{}: {}[{}] '{}' {}", file.name(), key, vocabulary.merges.size(), printable(merge), problem));
    };
    if (space == std::string_view::npos || space + 1 == merge.size()) return refuse("is not two tokens");
    joined.assign(merge.substr(0, space)).append(merge.substr(space + 1));
    const auto left = id_of.find(merge.substr(0, space));
    const auto right = id_of.find(merge.substr(space + 1));
    const auto both = id_of.find(joined);
    if (left == id_of.end() || right == id_of.end()) return refuse("names a token that the vocabulary lacks");
    if (both == id_of.end()) return refuse("joins to a token that the vocabulary lacks");
    vocabulary.merges.push_back({left->second, right->second, both->second});
  }
  return {};
}

void collect_added(Vocabulary& vocabulary) {
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const TokenType type = vocabulary.types[id];
    if (type != TokenType::kControl && type != TokenType::kUserDefined) continue;
    AddedToken added;
    added.id = static_cast<TokenId>(id);
    added.text = vocabulary.tokens[id];
    added.control = type == TokenType::kControl;
    vocabulary.added.push_back(std::move(added));
  }
}

}  // namespace

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

std::string_view Vocabulary::text_of(std::optional<TokenId> id) const {
  if (!id || *id < 0 || static_cast<size_t>(*id) >= tokens.size()) return {};
  return tokens[static_cast<size_t>(*id)];
}

Result<Vocabulary> vocabulary_from_gguf(const GgufFile& file) {
  if (!file.has("tokenizer.ggml.model") && file.has("tokenizer.huggingface.json")) return vocabulary_from_json(file);
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
  WARMPATH_RETURN_IF_ERROR(read_merges(file, vocabulary));
  collect_added(vocabulary);

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
  // llama.cpp's defaults: SentencePiece vocabularies and the Llama 3 and Tekken families begin with BOS.
  const TokenizerFamily* family = find_tokenizer_family(vocabulary.pre);
  const bool spaced = vocabulary.model == "llama";
  const auto add_bos =
      file.get_bool_or("tokenizer.ggml.add_bos_token", spaced || (family != nullptr && family->whole_pieces_first));
  if (!add_bos.ok()) return add_bos.status();
  if (*add_bos && vocabulary.bos) vocabulary.prompt_prefix.push_back(*vocabulary.bos);
  const auto add_eos = file.get_bool_or("tokenizer.ggml.add_eos_token", false);
  if (!add_eos.ok()) return add_eos.status();
  if (*add_eos && vocabulary.eos) vocabulary.prompt_suffix.push_back(*vocabulary.eos);
  const auto add_space = file.get_bool_or("tokenizer.ggml.add_space_prefix", spaced);
  if (!add_space.ok()) return add_space.status();
  auto rules = rules_of_family(vocabulary.model, vocabulary.pre, *add_space);
  if (!rules.ok()) return Status(rules.status().code(), fmt::format("{}: {}", file.name(), rules.status().message()));
  vocabulary.rules = *std::move(rules);
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
  vocabulary.rules = *rules_of_family(vocabulary.model, vocabulary.pre, false);
  collect_added(vocabulary);
  vocabulary.bos = 257;
  vocabulary.eos = 258;
  vocabulary.chat_template = kChatMl;
  collect_end_of_generation(vocabulary);
  return vocabulary;
}

}  // namespace warmpath
