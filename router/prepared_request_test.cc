// From a body to token ids, limits and identities.
#include "router/prepared_request.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <span>

#include "base/block_chain.h"
#include "model_file/gguf_file.h"
#include "router/gateway_fixture.h"
#include "text/vocabulary.h"

namespace warmpath {
namespace {

class PreparedRequestTest : public GatewayFixture {
 protected:
  PreparedRequest prepared(Wire wire, std::string body, std::string_view salt = "") {
    body.reserve(body.size() + 64);
    PreparedRequest request;
    WireError error;
    EXPECT_TRUE(prepare(wire, body, salt, core_->fleet(), request, error)) << error.message;
    return request;
  }
  static std::string conversation(const std::string& system, const std::string& user) {
    return R"({"messages":[{"role":"system","content":")" + system + R"("},{"role":"user","content":")" + user +
           "\"}]}";
  }
};

TEST_F(PreparedRequestTest, TheBaseIsWhatComesBeforeTheUser) {
  start();
  const std::string system(200, 's');
  const auto one = prepared(Wire::kChat, conversation(system, std::string(100, 'a')));
  const auto two = prepared(Wire::kChat, conversation(system, std::string(100, 'b')));
  const PreparedPrompt& prompt = one.prompts.at(0);
  // <|im_start|>system\n SYSTEM <|im_end|>\n<|im_start|>user\n
  EXPECT_EQ(prompt.base_tokens, 1 + 7 + 200 + 1 + 1 + 1 + 5);
  EXPECT_EQ(two.prompts.at(0).base_tokens, prompt.base_tokens);
  const auto base = static_cast<size_t>(prompt.base_tokens / kBlockTokens);
  EXPECT_EQ(prompt.chain.at(base - 1), two.prompts[0].chain.at(base - 1));
  EXPECT_NE(prompt.chain.at(base), two.prompts[0].chain.at(base));
}

TEST_F(PreparedRequestTest, ARememberedBaseIsNobodyElses) {
  start();
  const std::string user(100, 'a');
  const auto base_of = [&](const std::string& body) { return prepared(Wire::kChat, body).prompts.at(0).base_tokens; };
  const std::string plain = conversation(std::string(200, 's'), user);
  const std::string with_tools =
      plain.substr(0, plain.size() - 1) + R"(,"tools":[{"type":"function","function":{"name":"look"}}]})";
  const int64_t base = base_of(plain);
  EXPECT_EQ(base_of(conversation(std::string(150, 's'), user)), base - 50);
  EXPECT_GT(base_of(with_tools), base + 10);
  EXPECT_EQ(base_of(plain), base);
  EXPECT_GT(base_of(with_tools), base + 10);
  // Without a user message all of it is the base.
  const auto only = prepared(Wire::kChat, R"({"messages":[{"role":"system","content":")" + user + "\"}]}");
  EXPECT_GE(only.prompts[0].base_tokens, 100);
}

// Writes the replicas' tokenizer file with another chat template, for `tokenizer` in the configuration.
std::string file_with_template(std::string source) {
  std::string bytes = test_model_file();
  const auto file = GgufFile::parse(std::as_bytes(std::span(bytes)), "a test's model");
  const std::string before = vocabulary_from_gguf(*file)->chat_template;
  EXPECT_LT(source.size() + 4, before.size());
  source += "{#" + std::string(before.size() - source.size() - 4, ' ') + "#}";
  bytes.replace(bytes.find(before), before.size(), source);
  const std::string path = testing::TempDir() + "prepared_request_test.gguf";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST_F(PreparedRequestTest, WhatATemplateRefusesIsA400ThatSaysWhereAndWhy) {
  config_.models[0].tokenizer = file_with_template(
      "{% for m in messages %}\n{% if m.role == 'assistant' %}{{ raise_exception('no answers') }}\n"
      "{% elif m.content == 'add' %}{{ 1 + m.content }}{% endif %}{{ m.content }}{% endfor %}");
  start();
  reply_always("x");
  EXPECT_EQ(ask("POST", kChatPath, chat("hi")).status, 200);
  const SeenAnswer wrong = ask("POST", kChatPath, chat("add"));
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.body, testing::HasSubstr("chat template line 3, column 35: "));
  EXPECT_THAT(wrong.body, testing::HasSubstr("invalid_request_error"));
  EXPECT_THAT(wrong.body, testing::HasSubstr(R"("param":"messages")"));
  const SeenAnswer refused =
      ask("POST", kChatPath, R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, testing::HasSubstr("the model's chat template refuses this conversation: no answers "
                                               "(template line 2, column 49)"));
}

TEST_F(PreparedRequestTest, ControlTokensInMessagesAreTokensWhereTheModelSaysParse) {
  config_.models[0].message_specials = SpecialTokens::kParse;
  start();
  const auto count = [&](const std::string& text) {
    return prepared(Wire::kChat, chat(text)).prompts.at(0).tokens.size();
  };
  EXPECT_EQ(count("a<|im_end|>b"), count("a_b"));
}

TEST_F(PreparedRequestTest, IdentitiesAreThoseTheEngineWouldCompute) {
  start();
  const auto request = prepared(Wire::kCompletions, R"({"prompt":")" + std::string(100, 'x') + "\"}", "salt");
  const PreparedPrompt& prompt = request.prompts.at(0);
  EXPECT_EQ(prompt.chain, chain_of(chain_root({1, 2}, "salt", ""), prompt.tokens));
  EXPECT_EQ(prompt.chain.size(), prompt.tokens.size() / kBlockTokens);
}

TEST_F(PreparedRequestTest, ACacheSaltKeepsCallersOfOneTenantApart) {
  start();
  const std::string plain = R"({"prompt":")" + std::string(100, 'x') + "\"";
  const auto without = prepared(Wire::kCompletions, plain + "}", "t");
  const auto with = prepared(Wire::kCompletions, plain + R"(,"cache_salt":"mine"})", "t");
  EXPECT_NE(without.prompts[0].chain, with.prompts[0].chain);
  EXPECT_EQ(with.salt, std::string("t\0mine", 6));
}

TEST_F(PreparedRequestTest, ControlTokensInMessagesAreData) {
  start();
  const auto request = prepared(Wire::kChat, R"({"messages":[{"role":"user","content":"<|im_end|>"}]})");
  const auto& tokens = request.prompts[0].tokens;
  const TokenId end = *request.identity->tokenizer->special_token("<|im_end|>");
  const auto ends = std::count(tokens.begin(), tokens.end(), end);
  const auto control = prepared(Wire::kChat, R"({"messages":[{"role":"user","content":"plain"}]})");
  const auto& plain = control.prompts[0].tokens;
  EXPECT_EQ(ends, std::count(plain.begin(), plain.end(), end));
}

TEST_F(PreparedRequestTest, ChoicesAreBounded) {
  start();
  std::string body = R"({"n":128,"prompt":["a")";
  for (int prompt = 1; prompt < 9; ++prompt) body += R"(,"a")";
  body += "]}";
  body.reserve(body.size() + 64);
  PreparedRequest request;
  WireError error;
  EXPECT_FALSE(prepare(Wire::kCompletions, body, "", core_->fleet(), request, error));
  EXPECT_EQ(error.param, "n");
}

}  // namespace
}  // namespace warmpath
