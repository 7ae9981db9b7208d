// tokenizer.json files that use each part of the format, against Hugging Face tokenizers (testdata/tokenizers, written
// by reference/tokenizer_cases.py); what malformed files are told; and folders.
#include "text/tokenizer_json.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/hash128.h"
#include "text/mixed_text_for_test.h"
#include "text/text_pipeline.h"
#include "text/unicode.h"

namespace warmpath {
namespace {

const std::filesystem::path kCases = std::filesystem::path(WARMPATH_SOURCE_DIR) / "text/testdata/tokenizers";

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string digest(const std::vector<TokenId>& ids) {
  return to_hex(hash128(ids.data(), ids.size() * sizeof(TokenId))).substr(0, 16);
}

// Of the planes beyond the first only emoji, as reference/tokenizer_cases.py has it.
std::string text_of(uint64_t index) {
  const std::string document = MixedText::document(index, 9);
  std::string text;
  const auto* at = reinterpret_cast<const uint8_t*>(document.data());
  for (const uint8_t* end = at + document.size(); at < end;) {
    const DecodedChar here = decode_utf8(at, end);
    const uint32_t code = here.code_point;
    if (code < 0x10000 || (code >= 0x1F300 && code <= 0x1F64F)) append_utf8(code, text);
    at += here.size;
  }
  return text;
}

TEST(TokenizerJson, EveryCaseEncodesAsHuggingFaceDoes) {
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kCases)) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = entry.path().stem().string();
    SCOPED_TRACE(name);
    auto vocabulary = vocabulary_from_path(entry.path());
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
    const auto tokenizer = Tokenizer::create(*std::move(vocabulary));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    std::ifstream rows(kCases / (name + ".tsv"));
    uint64_t index = 0;
    int wrong = 0;
    for (std::string as_text, parsed; rows >> as_text >> parsed; ++index) {
      const std::string document = text_of(index);
      const auto text_ids = (*tokenizer)->encode(document, SpecialTokens::kText);
      const auto parsed_ids = (*tokenizer)->encode(document, SpecialTokens::kParse);
      ASSERT_TRUE(text_ids.ok() && parsed_ids.ok());
      if (digest(*text_ids) != as_text || digest(*parsed_ids) != parsed) ++wrong;
      if ((*tokenizer)->lossless()) {
        EXPECT_EQ((*tokenizer)->decode(*text_ids), document);
      }
    }
    EXPECT_EQ(wrong, 0) << "of " << index << " documents";
    EXPECT_GT(index, 40u);
    ++cases;
  }
  EXPECT_GE(cases, 15);
}

std::string refusal(std::string_view json) {
  const auto vocabulary = vocabulary_from_tokenizer_json(json, "t.json");
  return vocabulary.ok() ? "" : vocabulary.status().message();
}

TEST(TokenizerJson, RefusalsNameThePlace) {
  const auto model = [](std::string_view rest) {
    return std::string(R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]})") +
           std::string(rest) + "}";
  };
  EXPECT_EQ(refusal(model("")), "");
  const auto names = [](const std::string& message, std::string_view place) {
    return message.find(place) != std::string::npos ? "" : "'" + message + "' does not name " + std::string(place);
  };
  EXPECT_EQ(names(refusal("{"), "not valid JSON"), "");
  EXPECT_EQ(names(refusal("{}"), "lacks 'model'"), "");
  EXPECT_EQ(names(refusal(R"({"model":{"type":"Unigram"}})"), "t.json: model is a 'Unigram' model"), "");
  EXPECT_EQ(names(refusal(R"({"model":{"vocab":{"a":-1},"merges":[]}})"), R"(model.vocab["a"] must be an integer)"),
            "");
  EXPECT_EQ(
      names(refusal(R"({"model":{"vocab":{"a":1,"b":1},"merges":[]}})"), R"(model.vocab["b"] is 1, which another)"),
      "");
  EXPECT_EQ(
      names(refusal(R"({"model":{"vocab":{"a":0,"b":1},"merges":["a b",5]}})"), "model.merges[0] needs the token 'ab'"),
      "");
  EXPECT_EQ(names(refusal(R"({"model":{"vocab":{"a":0},"merges":[5]}})"), "model.merges[0] must be a list"), "");
  EXPECT_EQ(names(refusal(model(R"(,"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"UnicodeScripts"}]})")),
                  "pre_tokenizer.pretokenizers[0].type is 'UnicodeScripts'"),
            "");
  EXPECT_EQ(names(refusal(model(R"(,"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated"})")),
                  "pre_tokenizer holds a pattern"),
            "");
  EXPECT_EQ(names(refusal(model(R"(,"normalizer":{"type":"Prepend"})")), "normalizer lacks 'prepend'"), "");
  EXPECT_EQ(names(refusal(model(R"(,"added_tokens":[{"id":99999999,"content":"x"}])")), "added_tokens[0].id must be"),
            "");
}

TEST(TokenizerJson, HostilePatternsEndWithAnError) {
  const std::string json =
      R"({"model":{"vocab":{"a":0},"merges":[]},"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a+)+[bc]"},)"
      R"("behavior":"Isolated"}})";
  auto vocabulary = vocabulary_from_tokenizer_json(json, "t.json");
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  const auto tokenizer = Tokenizer::create(*std::move(vocabulary));
  ASSERT_TRUE(tokenizer.ok());
  const auto ids = (*tokenizer)->encode(std::string(5000, 'a'));
  ASSERT_FALSE(ids.ok());
  EXPECT_NE(ids.status().message().find("(a+)+[bc]"), std::string::npos) << ids.status().message();
}

TEST(TokenizerJson, AFolderGivesItsTemplateAndSpecialTokens) {
  const auto folder = std::filesystem::temp_directory_path() / ("warmpath_folder_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(kCases / "llama.json", folder / "tokenizer.json",
                             std::filesystem::copy_options::overwrite_existing);
  write_file(
      folder / "tokenizer_config.json",
      R"({"bos_token":{"content":"<|endoftext|>"},"eos_token":"<|im_end|>","tokenizer_class":"LlamaTokenizerFast",)"
      R"("add_bos_token":true,"chat_template":[{"name":"tool_use","template":"no"},{"name":"default","template":)"
      R"("{{ bos_token }}{{ messages[0].content }}"}]})");
  write_file(folder / "generation_config.json", R"({"eos_token_id":[7,3]})");
  auto vocabulary = vocabulary_from_path(folder);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  EXPECT_EQ(vocabulary->text_of(vocabulary->bos), "<|endoftext|>");
  EXPECT_EQ(vocabulary->prompt_prefix, std::vector<TokenId>{*vocabulary->bos});
  EXPECT_EQ(vocabulary->end_of_generation.size(), 4u);  // 3, 7, eos and <|endoftext|>
  const auto pipeline = make_text_pipeline(*vocabulary);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status().message();
  Conversation conversation;
  conversation.add_message("user", "hi");
  const auto text = pipeline->chat_template->render(conversation);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(text->to_string(), "<|endoftext|>hi");
  // What an engine ships to a gateway is the same tokenizer, by fingerprint.
  const auto bytes = tokenizer_gguf_from_folder(folder);
  ASSERT_TRUE(bytes.ok());
  const auto file = GgufFile::parse(std::span<const std::byte>(*bytes), "shipped");
  ASSERT_TRUE(file.ok());
  const auto shipped = make_text_pipeline(*vocabulary_from_gguf(*file));
  ASSERT_TRUE(shipped.ok());
  EXPECT_EQ(shipped->tokenizer->fingerprint(), pipeline->tokenizer->fingerprint());
  // A template file beside it goes first.
  write_file(folder / "chat_template.jinja", "file");
  EXPECT_EQ(vocabulary_from_path(folder)->chat_template, "file");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace warmpath
