// The bytes of answers, byte for byte, and that whatever a model writes becomes valid JSON.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <cmath>

#include "router/wire/answer_writer.h"
#include "router/wire/json_writer.h"

namespace warmpath {
namespace {

AnswerHead head() { return {.id = "chatcmpl-1", .created = 17, .model = "m", .fingerprint = "fp"}; }
const std::string kChunk =
    R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":17,"model":"m","system_fingerprint":"fp","choices":[)";

TEST(ChatWriter, StreamsRoleTextFinishUsageDone) {
  AnswerHead with_usage = head();
  with_usage.include_usage = true;
  const auto writer = chat_writer(with_usage);
  std::string out;
  writer->open(out, 1, {});
  EXPECT_EQ(
      out,
      kChunk +
          R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null})"
          "\n\n");
  out.clear();
  writer->text(out, 1, "a\"\n", {});
  EXPECT_EQ(out, kChunk +
                     R"({"index":1,"delta":{"content":"a\"\n"},"logprobs":null,"finish_reason":null}],"usage":null})"
                     "\n\n");
  out.clear();
  writer->finish(out, 0, {.reason = FinishReason::kLength, .called = true, .stop_string = {}});
  EXPECT_EQ(out, kChunk + R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}],"usage":null})"
                          "\n\n");
  out.clear();
  writer->close(out, {.prompt_tokens = 10, .cached_tokens = 8, .completion_tokens = 3, .reasoning_tokens = 2});
  EXPECT_EQ(
      out,
      kChunk +
          R"(],"usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":2}}})"
          "\n\ndata: [DONE]\n\n");
}

TEST(ChatWriter, WholeAnswerWithChances) {
  AnswerHead with_chances = head();
  with_chances.logprobs = true;
  const TokenChance chance{.bytes = "\xC3", .logprob = -0.5f, .top = {{"a", -1.0f}}};
  const AnswerChoice choice{.parts = {{.text = "hi", .id = {}, .name = {}}}, .chances = {chance}, .end = {}};
  EXPECT_EQ(
      chat_writer(with_chances)->whole(std::span(&choice, 1), {}),
      R"({"id":"chatcmpl-1","object":"chat.completion","created":17,"model":"m","system_fingerprint":"fp","choices":[)"
      R"({"index":0,"message":{"role":"assistant","content":"hi","refusal":null},"logprobs":{"content":[{"token":")"
      "\xEF\xBF\xBD"
      R"(","logprob":-0.5,"bytes":[195],"top_logprobs":[{"token":"a","logprob":-1,"bytes":[97]}]}],"refusal":null},"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}})");
}

TEST(CompletionWriter, OffsetsContinueAcrossChunks) {
  AnswerHead with_chances = head();
  with_chances.logprobs = true;
  const auto writer = completion_writer(with_chances);
  std::string out;
  const TokenChance first{.bytes = "abc", .logprob = -1, .top = {{"abc", -1.0f}}};
  const TokenChance second{.bytes = "d", .logprob = -2, .top = {}};
  writer->text(out, 0, "abc", std::span(&first, 1));
  EXPECT_NE(
      out.find(R"("logprobs":{"tokens":["abc"],"token_logprobs":[-1],"top_logprobs":[{"abc":-1}],"text_offset":[0]})"),
      std::string::npos)
      << out;
  out.clear();
  writer->text(out, 0, "d", std::span(&second, 1));
  EXPECT_NE(out.find(R"("text_offset":[3])"), std::string::npos) << out;
  out.clear();
  writer->finish(out, 0, {.reason = FinishReason::kStop});
  EXPECT_NE(out.find(R"("finish_reason":"stop")"), std::string::npos) << out;
}

TEST(JsonWriter, AnyBytesBecomeValidJson) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  for (const std::string& text :
       {every, std::string("\xF0\x9F\x98"), std::string("\xED\xA0\x80"), std::string("\xC0\xAF"),
        std::string("\xF4\x90\x80\x80"), std::string("caf\xC3\xA9 \xF0\x9F\x98\x80")}) {
    std::string json;
    append_json_string(json, text);
    simdjson::dom::parser parser;
    std::string_view back;
    ASSERT_EQ(parser.parse(json).get(back), simdjson::SUCCESS) << json;
  }
  std::string kept;
  append_json_string(kept, "caf\xC3\xA9 \xF0\x9F\x98\x80\x7F");
  EXPECT_EQ(kept, "\"caf\xC3\xA9 \xF0\x9F\x98\x80\x7F\"");
}

TEST(JsonWriter, NumbersReadBack) {
  std::string out;
  append_json_number(out, 0.1f);
  out += ' ';
  append_json_number(out, int64_t{-5});
  out += ' ';
  append_json_number(out, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(out, "0.1 -5 -9999");
}

}  // namespace
}  // namespace warmpath
