#include "text/tokenizer_json.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "text/json_node.h"
#include "text/rules_json.h"

namespace warmpath {
namespace {

// Bounds what a small file can make this program allocate.
constexpr int64_t kMaxTokens = int64_t{1} << 22;

class Reader {
 public:
  explicit Reader(JsonNode root) : root_(std::move(root)) {}

  Result<Vocabulary> read() {
    vocabulary_.model = "huggingface";
    auto rules = std::make_shared<TextRules>();
    WARMPATH_RETURN_IF_ERROR(read_model(*rules));
    WARMPATH_RETURN_IF_ERROR(read_added());
    WARMPATH_RETURN_IF_ERROR(read_rules(root_, *rules));
    if (const auto processor = root_.find("post_processor")) WARMPATH_RETURN_IF_ERROR(read_processor(*processor));
    set_types(*rules);
    vocabulary_.rules = std::move(rules);
    return std::move(vocabulary_);
  }

 private:
  Status read_model(TextRules& rules) {
    const auto model = root_.require("model");
    if (!model.ok()) return model.status();
    const auto type = model->text_or("type", "BPE");  // older files do not say
    if (!type.ok()) return type.status();
    if (*type != "BPE") {
      return unimplemented(model->refuse(fmt::format("is a '{}' model; BPE models are supported", *type)).message());
    }
    for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const auto value = model->text_or(key, "");
      if (!value.ok()) return value.status();
      if (!value->empty()) return unimplemented(model->find(key)->refuse("is not supported").message());
    }
    const auto fallback = model->flag_or("byte_fallback", false);
    if (!fallback.ok()) return fallback.status();
    rules.byte_fallback = *fallback;
    const auto fuse = model->flag_or("fuse_unk", false);
    if (!fuse.ok()) return fuse.status();
    rules.fuse_unknown = *fuse;
    const auto whole = model->flag_or("ignore_merges", false);
    if (!whole.ok()) return whole.status();
    rules.whole_pieces_first = *whole;
    WARMPATH_RETURN_IF_ERROR(read_vocabulary(*model));
    const auto unknown = model->text_or("unk_token", "");
    if (!unknown.ok()) return unknown.status();
    if (!unknown->empty()) {
      const auto found = ids_.find(*unknown);
      if (found == ids_.end()) return model->find("unk_token")->refuse("is not in the vocabulary");
      vocabulary_.unknown = found->second;
    }
    return read_merges(*model);
  }

  Status place_token(TokenId id, std::string_view text) {
    const auto index = static_cast<size_t>(id);
    if (index >= vocabulary_.tokens.size()) {
      vocabulary_.tokens.resize(index + 1);
      vocabulary_.types.resize(index + 1, TokenType::kUnused);
    }
    vocabulary_.tokens[index] = text;
    vocabulary_.types[index] = TokenType::kNormal;
    return {};
  }

  Status read_vocabulary(const JsonNode& model) {
    const auto node = model.require("vocab");
    if (!node.ok()) return node.status();
    return node->each_entry([&](std::string_view text, simdjson::dom::element value) -> Status {
      const auto id = node->entry(text, value).integer(0, kMaxTokens - 1);
      if (!id.ok()) return id.status();
      const auto token = static_cast<TokenId>(*id);
      if (static_cast<size_t>(token) < vocabulary_.tokens.size() &&
          vocabulary_.types[static_cast<size_t>(token)] != TokenType::kUnused) {
        return node->entry(text, value).refuse(fmt::format("is {}, which another token has", token));
      }
      ids_.insert_or_assign(text, token);
      return place_token(token, text);
    });
  }

  // "left right", or ["left", "right"].
  Status read_merges(const JsonNode& model) {
    const auto node = model.require("merges");
    if (!node.ok()) return node.status();
    std::string joined;
    return node->each_item([&](const JsonNode& item) -> Status {
      std::string_view left;
      std::string_view right;
      if (item.is_string()) {
        const std::string_view both = *item.text();
        const size_t space = both.find(' ');
        if (space == std::string_view::npos || both.find(' ', space + 1) != std::string_view::npos) {
          return item.must_be("two tokens with one space between them");
        }
        left = both.substr(0, space);
        right = both.substr(space + 1);
      } else {
        std::vector<std::string_view> parts;
        WARMPATH_RETURN_IF_ERROR(item.each_item([&parts](const JsonNode& part) -> Status {
          const auto text = part.text();
          if (!text.ok()) return text.status();
          parts.push_back(*text);
          return {};
        }));
        if (parts.size() != 2) return item.must_be("a pair of tokens");
        left = parts[0];
        right = parts[1];
      }
      joined.assign(left).append(right);
      TokenMerge merge;
      for (const auto& [text, id] : {std::pair(left, &merge.left), std::pair(right, &merge.right),
                                     std::pair(std::string_view(joined), &merge.joined)}) {
        const auto found = ids_.find(text);
        if (found == ids_.end()) {
          return item.refuse(fmt::format("needs the token '{}', which the vocabulary lacks", printable(text)));
        }
        *id = found->second;
      }
      vocabulary_.merges.push_back(merge);
      return {};
    });
  }

  Status read_added() {
    const auto list = root_.find("added_tokens");
    if (!list) return {};
    return list->each_item([this](const JsonNode& item) -> Status {
      const auto text = item.text_of("content");
      if (!text.ok()) return text.status();
      const auto node = item.require("id");
      if (!node.ok()) return node.status();
      const auto id = node->integer(0, kMaxTokens - 1);
      if (!id.ok()) return id.status();
      AddedToken added;
      added.id = static_cast<TokenId>(*id);
      added.text = *text;
      const std::pair<std::string_view, bool*> flags[] = {{"special", &added.control},
                                                          {"lstrip", &added.strip_left},
                                                          {"rstrip", &added.strip_right},
                                                          {"single_word", &added.single_word}};
      for (const auto& [key, flag] : flags) {
        const auto value = item.flag_or(key, false);
        if (!value.ok()) return value.status();
        *flag = *value;
      }
      const auto normalized = item.flag_or("normalized", !added.control);
      if (!normalized.ok()) return normalized.status();
      added.normalized = *normalized;
      // A token of the vocabulary keeps its id there.
      const auto known = ids_.find(*text);
      if (known != ids_.end()) added.id = known->second;
      WARMPATH_RETURN_IF_ERROR(place_token(added.id, *text));
      if (!text->empty()) vocabulary_.added.push_back(std::move(added));
      return {};
    });
  }

  Result<TokenId> id_of(const JsonNode& node) {
    const auto text = node.text();
    if (!text.ok()) return text.status();
    return id_of_text(node, *text);
  }
  Result<TokenId> id_of_text(const JsonNode& node, std::string_view text) {
    for (const AddedToken& added : vocabulary_.added) {
      if (added.text == text) return added.id;
    }
    const auto found = ids_.find(text);
    if (found == ids_.end()) return node.refuse(fmt::format("is '{}', which is no token", printable(text)));
    return found->second;
  }

  Status read_processor(const JsonNode& node) {
    const auto type = node.text_of("type");
    if (!type.ok()) return type.status();
    if (*type == "ByteLevel") return {};
    if (*type == "Sequence") {
      const auto list = node.require("processors");
      return list.ok() ? list->each_item([this](const JsonNode& item) { return read_processor(item); }) : list.status();
    }
    if (*type == "BertProcessing" || *type == "RobertaProcessing") {
      for (const auto& [key, into] :
           {std::pair("cls", &vocabulary_.prompt_prefix), std::pair("sep", &vocabulary_.prompt_suffix)}) {
        const auto pair = node.require(key);
        if (!pair.ok()) return pair.status();
        std::optional<TokenId> id;
        WARMPATH_RETURN_IF_ERROR(pair->each_item([this, &id](const JsonNode& item) -> Status {
          if (!item.is_string()) return {};
          const auto found = id_of(item);
          if (!found.ok()) return found.status();
          id = *found;
          return {};
        }));
        if (!id) return pair->must_be("a pair of a token and its id");
        into->push_back(*id);
      }
      return {};
    }
    if (*type != "TemplateProcessing") {
      return unimplemented(node.find("type")->refuse(fmt::format("is '{}', which is not supported", *type)).message());
    }
    const auto single = node.require("single");
    if (!single.ok()) return single.status();
    bool behind = false;
    return single->each_item([&](const JsonNode& item) -> Status {
      if (const auto sequence = item.find("Sequence")) {
        behind = true;
        return {};
      }
      const auto token = item.require("SpecialToken");
      if (!token.ok()) return token.status();
      const auto name = token->text_of("id");
      if (!name.ok()) return name.status();
      auto& side = behind ? vocabulary_.prompt_suffix : vocabulary_.prompt_prefix;
      // The post-processor's own table names the ids; without an entry the name is a token.
      const auto table = node.find("special_tokens");
      const auto entry = table ? table->find(*name) : std::nullopt;
      if (!entry) {
        const auto id = id_of_text(*token, *name);
        if (!id.ok()) return id.status();
        side.push_back(*id);
        return {};
      }
      const auto ids = entry->require("ids");
      if (!ids.ok()) return ids.status();
      return ids->each_item([this, &side](const JsonNode& number) -> Status {
        const auto id = number.integer(0, static_cast<int64_t>(vocabulary_.tokens.size()) - 1);
        if (!id.ok()) return id.status();
        side.push_back(static_cast<TokenId>(*id));
        return {};
      });
    });
  }

  void set_types(const TextRules& rules) {
    if (vocabulary_.unknown) vocabulary_.types[static_cast<size_t>(*vocabulary_.unknown)] = TokenType::kUnknown;
    if (rules.byte_fallback) {
      for (int byte = 0; byte < 256; ++byte) {
        const auto found = ids_.find(fmt::format("<0x{:02X}>", byte));
        if (found != ids_.end()) vocabulary_.types[static_cast<size_t>(found->second)] = TokenType::kByte;
      }
    }
    for (const AddedToken& added : vocabulary_.added) {
      vocabulary_.types[static_cast<size_t>(added.id)] = added.control ? TokenType::kControl : TokenType::kUserDefined;
    }
  }

  const JsonNode root_;
  Vocabulary vocabulary_;
  std::unordered_map<std::string_view, TokenId> ids_;  // of the model's vocabulary; views into the document
};

}  // namespace

Result<Vocabulary> vocabulary_from_tokenizer_json(std::string_view json, std::string_view name) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (const auto error = parser.parse(json.data(), json.size(), true).get(root)) {
    return invalid_argument(fmt::format("{}: not valid JSON: {}", name, simdjson::error_message(error)));
  }
  return Reader(JsonNode(root, name)).read();
}

Result<Vocabulary> vocabulary_from_json(const GgufFile& file) {
  const auto json = file.get_string("tokenizer.huggingface.json");
  if (!json.ok()) return json.status();
  auto vocabulary = vocabulary_from_tokenizer_json(*json, fmt::format("{} (tokenizer.json)", file.name()));
  if (!vocabulary.ok()) return vocabulary;
  const auto special = [&](std::string_view key, std::optional<TokenId>& into) -> Status {
    const auto text = file.get_string_or(key, "");
    if (!text.ok()) return text.status();
    if (text->empty()) return {};
    const auto found = std::find(vocabulary->tokens.begin(), vocabulary->tokens.end(), *text);
    if (found == vocabulary->tokens.end()) {
      return invalid_argument(fmt::format("{}: {} is '{}', which is no token", file.name(), key, printable(*text)));
    }
    into = static_cast<TokenId>(found - vocabulary->tokens.begin());
    return {};
  };
  WARMPATH_RETURN_IF_ERROR(special("tokenizer.huggingface.bos_token", vocabulary->bos));
  WARMPATH_RETURN_IF_ERROR(special("tokenizer.huggingface.eos_token", vocabulary->eos));
  // Flags that overrule the post-processor: first bos, last eos, or none of them.
  const auto side = [&](std::string_view key, std::optional<TokenId> token, std::vector<TokenId>& ids) -> Status {
    if (!file.has(key) || !token) return {};
    const auto flag = file.get_bool(key);
    if (!flag.ok()) return flag.status();
    std::erase(ids, *token);
    if (*flag) ids.push_back(*token);
    return {};
  };
  WARMPATH_RETURN_IF_ERROR(side("tokenizer.huggingface.add_bos_token", vocabulary->bos, vocabulary->prompt_prefix));
  WARMPATH_RETURN_IF_ERROR(side("tokenizer.huggingface.add_eos_token", vocabulary->eos, vocabulary->prompt_suffix));
  if (file.has("tokenizer.huggingface.eos_token_ids")) {
    const auto ends = file.get_ints("tokenizer.huggingface.eos_token_ids");
    if (!ends.ok()) return ends.status();
    for (const int64_t id : *ends) {
      if (id >= 0 && static_cast<size_t>(id) < vocabulary->tokens.size()) {
        vocabulary->end_of_generation.push_back(static_cast<TokenId>(id));
      }
    }
  }
  const auto chat_template = file.get_string_or("tokenizer.chat_template", "");
  if (!chat_template.ok()) return chat_template.status();
  vocabulary->chat_template = *chat_template;
  collect_end_of_generation(*vocabulary);
  return vocabulary;
}

}  // namespace warmpath
