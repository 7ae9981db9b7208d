// Both wires' request bodies: every field, its type, its range, and what is refused.
#include <gtest/gtest.h>

#include <string>

#include "router/wire/chat.h"
#include "router/wire/completions.h"

namespace warmpath {
namespace {

std::string padded(std::string body) {
  body.reserve(body.size() + 64);
  return body;
}

struct Parsed {
  bool ok = false;
  ChatRequest request;
  WireError error;
  std::string body;
};

// A chat body with `more` members after a model and one message.
std::unique_ptr<Parsed> chat(const std::string& more) {
  auto parsed = std::make_unique<Parsed>();
  parsed->body = padded(R"({"model":"m","messages":[{"role":"user","content":"hi"}])" + more + "}");
  parsed->ok = parse_chat(parsed->body, parsed->request, parsed->error);
  return parsed;
}

TEST(ChatBody, ReadsEveryField) {
  const auto parsed = chat(
      R"(,"max_tokens":7,"max_completion_tokens":9,"temperature":0.5,"top_p":0,"top_k":-1,"min_p":0.1,
        "presence_penalty":-2,"frequency_penalty":2,"repetition_penalty":1.1,"logit_bias":{"5":-100,"6":1.5},"seed":-3,
        "stop":["a","b"],"n":3,"stream":true,"stream_options":{"include_usage":true},"logprobs":true,"top_logprobs":4,
        "tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto","response_format":{"type":"text"},
        "parallel_tool_calls":true,"user":"u","store":false,"metadata":{"a":"b"},"min_tokens":2,"ignore_eos":true,
        "stop_token_ids":[3,4],"cache_salt":"s","prompt_cache_key":"k","never_heard_of":[1,{"x":null}])");
  ASSERT_TRUE(parsed->ok) << parsed->error.message;
  const ChatRequest& request = parsed->request;
  const SamplingParams& sampling = request.options.sampling;
  EXPECT_EQ(request.options.model, "m");
  EXPECT_EQ(sampling.max_tokens, 9);
  EXPECT_FLOAT_EQ(sampling.temperature, 0.5f);
  EXPECT_FLOAT_EQ(sampling.top_p, 1e-6f);
  EXPECT_EQ(sampling.top_k, 0);
  EXPECT_FLOAT_EQ(sampling.min_p, 0.1f);
  EXPECT_FLOAT_EQ(sampling.presence_penalty, -2);
  EXPECT_FLOAT_EQ(sampling.frequency_penalty, 2);
  EXPECT_FLOAT_EQ(sampling.repetition_penalty, 1.1f);
  ASSERT_EQ(sampling.logit_bias.size(), 2u);
  EXPECT_EQ(sampling.logit_bias[1], std::make_pair(TokenId{6}, 1.5f));
  EXPECT_EQ(sampling.seed, static_cast<uint64_t>(-3));
  EXPECT_EQ(sampling.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(sampling.stop_tokens, (std::vector<TokenId>{3, 4}));
  EXPECT_EQ(sampling.n, 3);
  EXPECT_EQ(sampling.min_tokens, 2);
  EXPECT_EQ(sampling.top_logprobs, 4);
  EXPECT_TRUE(sampling.ignore_eos);
  EXPECT_TRUE(request.options.stream);
  EXPECT_TRUE(request.options.include_usage);
  EXPECT_EQ(request.options.cache_salt, "s");
  EXPECT_EQ(request.options.prompt_cache_key, "k");
  ASSERT_EQ(request.messages.size(), 1u);
  EXPECT_EQ(request.messages[0], R"({"role":"user","content":"hi"})");
  ASSERT_EQ(request.tools.size(), 1u);
}

TEST(ChatBody, NullMeansAbsent) {
  const auto parsed = chat(R"(,"temperature":null,"stop":null,"tools":null,"n":null,"response_format":null,
                             "functions":null,"stream_options":null,"max_tokens":null})");
  EXPECT_FALSE(parsed->ok);  // one brace too many: the null fields do not hide trailing bytes
  const auto good = chat(R"(,"temperature":null,"stop":null,"tools":null,"n":null,"response_format":null,
                           "functions":null,"stream_options":null,"max_tokens":null)");
  ASSERT_TRUE(good->ok) << good->error.message;
  EXPECT_EQ(good->request.options.sampling.max_tokens, -1);
  EXPECT_FLOAT_EQ(good->request.options.sampling.temperature, 1);
}

TEST(ChatBody, ToolChoiceNoneHidesTheTools) {
  const auto parsed = chat(R"(,"tool_choice":"none","tools":[{"type":"function","function":{"name":"f"}}])");
  ASSERT_TRUE(parsed->ok);
  EXPECT_TRUE(parsed->request.tools.empty());
}

TEST(ChatBody, RefusalsNameTheField) {
  const std::pair<const char*, const char*> rows[] = {
      {R"("temperature":2.5)", "temperature"},
      {R"("temperature":"hot")", "temperature"},
      {R"("top_p":1.01)", "top_p"},
      {R"("top_k":-2)", "top_k"},
      {R"("top_k":1.5)", "top_k"},
      {R"("min_p":-0.1)", "min_p"},
      {R"("presence_penalty":3)", "presence_penalty"},
      {R"("frequency_penalty":-3)", "frequency_penalty"},
      {R"("repetition_penalty":0)", "repetition_penalty"},
      {R"("logit_bias":{"x":1})", "logit_bias"},
      {R"("logit_bias":{"1":101})", "logit_bias"},
      {R"("logit_bias":[1])", "logit_bias"},
      {R"("seed":"1")", "seed"},
      {R"("stop":[""])", "stop"},
      {R"("stop":[1])", "stop"},
      {R"("stop":{"a":1})", "stop"},
      {R"("stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"])", "stop"},
      {R"("n":0)", "n"},
      {R"("n":129)", "n"},
      {R"("max_tokens":0)", "max_tokens"},
      {R"("max_completion_tokens":-1)", "max_completion_tokens"},
      {R"("max_tokens":99999999999)", "max_tokens"},
      {R"("stream":"yes")", "stream"},
      {R"("stream_options":{"include_usage":1})", "stream_options.include_usage"},
      {R"("stream_options":true)", "stream_options"},
      {R"("logprobs":1)", "logprobs"},
      {R"("top_logprobs":3)", "top_logprobs"},
      {R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
      {R"("tools":{})", "tools"},
      {R"("tools":["x"])", "tools"},
      {R"("tool_choice":{"type":"function","function":{}})", "tool_choice"},
      {R"("tool_choice":{"type":"web_search"})", "tool_choice"},
      {R"("tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"name":"f"}]})", "tool_choice"},
      {R"("tool_choice":"maybe")", "tool_choice"},
      {R"("parallel_tool_calls":"no")", "parallel_tool_calls"},
      {R"("response_format":{"type":"xml"})", "response_format"},
      {R"("response_format":{"type":"json_object"},"guided_regex":"a")", "guided_regex"},
      {R"("guided_choice":[])", "guided_choice"},
      {R"("structured_outputs":{"structural_tag":{}})", "structured_outputs.structural_tag"},
      {R"("response_format":{"type":"json_schema","json_schema":{}})", "response_format"},
      {R"("functions":[{"name":"f"}])", "functions"},
      {R"("function_call":"auto")", "function_call"},
      {R"("modalities":["text","audio"])", "modalities"},
      {R"("audio":{"voice":"a"})", "audio"},
      {R"("best_of":2)", "best_of"},
      {R"("use_beam_search":true)", "use_beam_search"},
      {R"("guided_json":5)", "guided_json"},
      {R"("messages":"hi")", "messages"},
      {R"("messages":[])", "messages"},
      {R"("messages":["hi"])", "messages"},
      {R"("model":5)", "model"},
      {R"("chat_template":"{{x}}")", "chat_template"},
      {R"("chat_template_kwargs":[1])", "chat_template_kwargs"},
  };
  for (const auto& [field, param] : rows) {
    const auto parsed = chat("," + std::string(field));
    EXPECT_FALSE(parsed->ok) << field;
    EXPECT_EQ(parsed->error.status, 400) << field;
    EXPECT_EQ(parsed->error.param, param) << field << ": " << parsed->error.message;
    EXPECT_NE(error_body(parsed->error).find("\"invalid_request_error\""), std::string::npos);
  }
}

TEST(ChatBody, DemandsOnTheAnswersShape) {
  using Kind = Grammar::Kind;
  const auto rules = [](const std::string& members) { return chat("," + members)->request.options.rules; };
  const auto named = rules(R"("tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":false)");
  EXPECT_EQ(named.calls, OutputRules::Calls::kRequired);
  EXPECT_EQ(named.only, std::vector<std::string>{"f"});
  EXPECT_FALSE(named.parallel);
  EXPECT_EQ(rules(R"("tool_choice":"required")").calls, OutputRules::Calls::kRequired);
  const auto allowed = rules(R"("tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[
      {"type":"function","function":{"name":"a"}},{"type":"function","name":"b"}]}})");
  EXPECT_EQ(allowed.only, (std::vector<std::string>{"a", "b"}));
  const auto schema = rules(R"("response_format":{"json_schema":{"name":"n","schema":{"type": "null"},"strict":true},
      "type":"json_schema"})");
  EXPECT_EQ(schema.format.kind, Kind::kJsonSchema);
  EXPECT_EQ(schema.format.text, R"({"type": "null"})");
  EXPECT_EQ(schema.format_param, "response_format");
  EXPECT_EQ(rules(R"("guided_json":"{}")").format.text, "{}");
  EXPECT_EQ(rules(R"("structured_outputs":{"regex":"a+","backend":"x"})").format, Grammar::regex("a+"));
  EXPECT_EQ(rules(R"("guided_choice":["x","y"])").format,
            Grammar::any_of({Grammar::literal("x"), Grammar::literal("y")}));
  EXPECT_EQ(rules(R"("grammar":"root ::= \"a\"")").format, Grammar::ebnf("root ::= \"a\""));
  EXPECT_TRUE(rules(R"("response_format":{"type":"text"},"guided_regex":"")").format.empty());
}

TEST(ChatBody, NeutralValuesOfUnsupportedFieldsAreFine) {
  const auto parsed = chat(R"(,"best_of":1,"use_beam_search":false,"length_penalty":1.0,"functions":[],"echo":false,
                             "modalities":["text"],"guided_json":null,"verbosity":"medium")");
  EXPECT_TRUE(parsed->ok) << parsed->error.message;
}

TEST(ChatBody, BrokenJsonIsToldWithItsPlace) {
  for (const char* body : {"", "{", "[]", "null", "\"x\"", "{\"messages\":[}", "{\"messages\":[{]}", "{\"a\":1}}",
                           "{\"a\":1} x", "{\"model\":\"\\ud800\"}", "{\"stop\":[\"a\",]}", "{\"n\":01}", "{\"n\":tru}",
                           "{\"a\" 1}", "{a:1}", "\xFF\xFE", "{\"model\":\"\xC3\"}"}) {
    ChatRequest request;
    WireError error;
    const std::string bytes = padded(body);
    EXPECT_FALSE(parse_chat(bytes, request, error)) << body;
    EXPECT_EQ(error.status, 400) << body;
    EXPECT_FALSE(error.message.empty());
  }
}

struct ParsedCompletion {
  bool ok = false;
  CompletionRequest request;
  WireError error;
};

ParsedCompletion completion(const std::string& members) {
  ParsedCompletion parsed;
  const std::string body = padded("{" + members + "}");
  parsed.ok = parse_completion(body, parsed.request, parsed.error);
  return parsed;
}

TEST(CompletionBody, ReadsEveryKindOfPrompt) {
  const auto text = completion(R"("prompt":"a\nb")");
  ASSERT_TRUE(text.ok) << text.error.message;
  EXPECT_EQ(text.request.prompts.at(0).text, "a\nb");
  EXPECT_EQ(text.request.options.sampling.max_tokens, kDefaultCompletionTokens);

  const auto texts = completion(R"("prompt":["a","b"],"n":2,"logprobs":0,"max_tokens":5)");
  ASSERT_TRUE(texts.ok);
  EXPECT_EQ(texts.request.prompts.at(1).text, "b");
  EXPECT_EQ(texts.request.options.sampling.top_logprobs, 0);
  EXPECT_EQ(texts.request.options.sampling.max_tokens, 5);

  const auto ids = completion(R"("prompt":[1,2,3])");
  ASSERT_TRUE(ids.ok);
  ASSERT_EQ(ids.request.prompts.size(), 1u);
  EXPECT_EQ(ids.request.prompts[0].tokens, (std::vector<TokenId>{1, 2, 3}));

  const auto lists = completion(R"("prompt":[[1,2],[3]])");
  ASSERT_TRUE(lists.ok);
  ASSERT_EQ(lists.request.prompts.size(), 2u);
  EXPECT_EQ(lists.request.prompts[1].tokens, (std::vector<TokenId>{3}));
}

TEST(CompletionBody, Refusals) {
  const std::pair<const char*, const char*> rows[] = {
      {R"("model":"m")", "prompt"},
      {R"("prompt":{})", "prompt"},
      {R"("prompt":7)", "prompt"},
      {R"("prompt":[])", "prompt"},
      {R"("prompt":[[]])", "prompt"},
      {R"("prompt":["a",1])", "prompt"},
      {R"("prompt":[1,"a"])", "prompt"},
      {R"("prompt":[-1])", "prompt"},
      {R"("prompt":[1.5])", "prompt"},
      {R"("prompt":[[1],["a"]])", "prompt"},
      {R"("prompt":"a","echo":true)", "echo"},
      {R"("prompt":"a","suffix":"b")", "suffix"},
      {R"("prompt":"a","best_of":3)", "best_of"},
      {R"("prompt":"a","logprobs":21)", "logprobs"},
      {R"("prompt":"a","logprobs":true)", "logprobs"},
      {R"("prompt":"a","max_tokens":0)", "max_tokens"},
  };
  for (const auto& [members, param] : rows) {
    const auto parsed = completion(members);
    EXPECT_FALSE(parsed.ok) << members;
    EXPECT_EQ(parsed.error.param, param) << members << ": " << parsed.error.message;
  }
}

}  // namespace
}  // namespace warmpath
