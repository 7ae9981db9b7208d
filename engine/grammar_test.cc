#include "engine/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "engine/grammar_walk.h"
#include "engine/test_engine.h"
#include "text/answer/answer_parser.h"
#include "text/answer/call_grammar.h"
#include "text/schema/schema_check_for_test.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kSize = 320;

// The synthetic vocabulary: one token is one byte.
struct GrammarTest : testing::Test {
  GrammarTest() : vocabulary(synthetic_vocabulary()), text(vocabulary) {
    if (!GrammarCompiler::available()) return;
    auto made = GrammarCompiler::create(text, kSize, {kTestEnd});
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    compiler = std::move(*made);
  }
  void SetUp() override {
    if (!GrammarCompiler::available()) GTEST_SKIP() << "this build has no structured output";
  }

  std::shared_ptr<const CompiledGrammar> compile(const Grammar& grammar) const {
    const auto compiled = compiler->compile(grammar);
    EXPECT_TRUE(compiled.ok()) << compiled.status().to_string();
    return compiled.ok() ? *compiled : nullptr;
  }
  std::unique_ptr<GrammarMatcher> match(const Grammar& grammar) const {
    return GrammarMatcher::create(compile(grammar), {kTestEnd});
  }
  TokenId byte(char letter) const {
    for (TokenId token = 0; token < kSize; ++token) {
      if (text.of(token) == std::string_view(&letter, 1)) return token;
    }
    return -1;
  }
  // What the mask allows, as text; '$' for the end.
  std::string allowed(const GrammarMatcher& matcher) const {
    std::string out;
    for (TokenId token = 0; token < kSize; ++token) {
      if (matcher.allows(token)) out += token == kTestEnd ? "$" : std::string(text.of(token));
    }
    return out;
  }
  bool accept(GrammarMatcher& matcher, std::string_view bytes) const {
    return std::all_of(bytes.begin(), bytes.end(), [&](char letter) { return matcher.accept(byte(letter)); });
  }

  const Vocabulary vocabulary;
  const TokenText text;
  std::unique_ptr<GrammarCompiler> compiler;
};

TEST_F(GrammarTest, TheMaskIsWhatMayFollow) {
  const auto matcher = match(Grammar::regex("ab?c|x"));
  EXPECT_EQ(allowed(*matcher), "ax");
  EXPECT_FALSE(matcher->accept(byte('c'))) << "nothing moves";
  EXPECT_TRUE(accept(*matcher, "a"));
  EXPECT_EQ(allowed(*matcher), "bc");
  EXPECT_TRUE(accept(*matcher, "b"));
  EXPECT_EQ(allowed(*matcher), "c");
  EXPECT_FALSE(matcher->may_end());
  EXPECT_TRUE(accept(*matcher, "c"));
  EXPECT_TRUE(matcher->may_end());
  EXPECT_TRUE(matcher->must_end());
  EXPECT_EQ(allowed(*matcher), "$");
  matcher->roll_back(2);
  EXPECT_EQ(allowed(*matcher), "bc");
  EXPECT_FALSE(matcher->may_end());
}

TEST_F(GrammarTest, AnEndIsAllowedWhereMoreMayCome) {
  const auto matcher = match(Grammar::ebnf("root ::= \"a\" more\nmore ::= (\",\" \"a\")*"));
  EXPECT_EQ(allowed(*matcher), "a");
  EXPECT_TRUE(accept(*matcher, "a"));
  EXPECT_EQ(allowed(*matcher), ",$");
  EXPECT_TRUE(matcher->may_end());
  EXPECT_FALSE(matcher->must_end());
  EXPECT_FALSE(matcher->accept(kTestEnd)) << "an end does not move it";
}

TEST_F(GrammarTest, PartsAndMarkers) {
  constexpr TokenId marker = 257;  // a control token, as the one behind it
  const auto matcher =
      match(Grammar::sequence({Grammar::token(marker), Grammar::any_of({Grammar::literal("x"), Grammar::literal("yz")}),
                               Grammar::repeat(Grammar::literal("!"), 0, 1)}));
  EXPECT_TRUE(matcher->allows(marker));
  EXPECT_EQ(allowed(*matcher), "") << "only the marker, which spells nothing";
  EXPECT_TRUE(matcher->accept(marker));
  EXPECT_EQ(allowed(*matcher), "xy");
  EXPECT_TRUE(accept(*matcher, "yz"));
  EXPECT_EQ(allowed(*matcher), "!$");
  const auto free = match(Grammar::sequence({Grammar::tokens_without({marker}), Grammar::token(marker)}));
  EXPECT_TRUE(accept(*free, "anything \n"));
  EXPECT_FALSE(free->allows(kTestEnd));
  EXPECT_FALSE(free->allows(marker + 1)) << "another control token";
  EXPECT_TRUE(free->accept(marker));
  EXPECT_TRUE(free->must_end());
  const auto until = match(Grammar::sequence({Grammar::text_without({"<e>"}), Grammar::literal("<e>")}));
  EXPECT_TRUE(accept(*until, "a<<e>"));
  EXPECT_TRUE(until->must_end());
}

constexpr const char* kSchemas[] = {
    R"({"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":2000},
        "deep":{"type":"boolean"}},"required":["path"]})",
    R"({"type":"object","properties":{"edits":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"object",
        "properties":{"old":{"type":"string","minLength":1,"maxLength":5},"new":{"type":["string","null"]}},
        "required":["old","new"],"additionalProperties":false}}},"required":["edits"]})",
    R"({"$defs":{"tree":{"type":"object","properties":{"v":{"enum":["a","b\"c",3,null,1.5]},
        "l":{"$ref":"#/$defs/tree"},"r":{"$ref":"#/$defs/tree"}},"required":["v"]}},"$ref":"#/$defs/tree"})",
    R"({"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"items":{"type":"boolean"},"minItems":2})",
    R"({"anyOf":[{"type":"integer","exclusiveMinimum":-3,"exclusiveMaximum":12},{"const":{"x":[1,"y"]}},{"type":"null"}]})",
    R"({"oneOf":[{"type":"string","enum":["all"]},{"type":"string","pattern":"^[1-9][0-9]*$"}]})",
    R"({"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":3})",
    R"({"type":"object","patternProperties":{"^[a-c]+$":{"type":"boolean"}}})",
    R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}},
        "minProperties":2})",
    R"({"type":"number","minimum":-1.5,"maximum":2.25})",
    R"({"type":"integer","multipleOf":7,"minimum":10,"maximum":50})",
    R"({"type":"string","pattern":"^[a-z.-]{2,4}\\d [^x]\\S.$"})",
    R"({"type":"string","minLength":3})",
    R"({"type":"object","properties":{"naïve \"key\"":{"type":"string","format":"date"}},"required":["naïve \"key\"","z"]})",
    R"({"type":"object"})",
    "true",
};

// Whatever a grammar allows, the schema accepts.
TEST_F(GrammarTest, WalksThroughSchemasAreValid) {
  std::mt19937 random(7);
  for (const char* schema : kSchemas) {
    const auto compiled = compile(Grammar::json_schema(schema, 2));
    ASSERT_NE(compiled, nullptr) << schema;
    int ended = 0;
    for (int n = 0; n < 60; ++n) {
      const auto matcher = GrammarMatcher::create(compiled, {kTestEnd});
      const GrammarWalk walk = walk_grammar(*matcher, text, random, 400);
      // Bytes that are no character (halves of surrogates) are written as U+FFFD before anyone reads JSON.
      if (!walk.ended || !is_valid_utf8(walk.text)) continue;
      ++ended;
      EXPECT_TRUE(SchemaCheck::accepts(schema, walk.text)) << schema << "\nallowed " << walk.text;
    }
    EXPECT_GE(ended, 10) << schema;
  }
}

TEST_F(GrammarTest, HostilePatternsAreRefusedOrCheap) {
  for (const Grammar& grammar :
       {Grammar::regex("(a{1,1000}){1,1000}"), Grammar::regex("((a{99}){99}){99}"), Grammar::regex("a{9999999}"),
        Grammar::regex(std::string(5000, 'a')), Grammar::regex(std::string(100, '(') + "a" + std::string(100, ')')),
        Grammar::regex("(?=a)b"), Grammar::regex("(a)\\1"), Grammar::regex("["), Grammar::regex("a)"),
        Grammar::ebnf("root ::= missing"), Grammar::ebnf("nothing"), Grammar::ebnf("root ::= ((\"a\"{300}){300}){300}"),
        Grammar::literal("\xff"), Grammar::json_schema(R"({"type":"string","pattern":"(?!x)y"})", 1)}) {
    const auto compiled = compiler->compile(grammar);
    ASSERT_FALSE(compiled.ok()) << grammar.text;
    EXPECT_EQ(compiled.status().code(), StatusCode::kInvalidArgument);
  }
  // These are fine, and must not take long: a machine that would be exponential if it were made deterministic.
  EXPECT_NE(compile(Grammar::regex("(a|b)*a(a|b){12}")), nullptr);
  EXPECT_NE(compile(Grammar::regex("(a+)+$")), nullptr);
  EXPECT_NE(compile(Grammar::json_schema(
                R"({"type":"array","maxItems":5000,"items":{"type":"string","maxLength":20000}})", 1)),
            nullptr);
}

// --- In the engine

std::string spelled(const TestEngine& engine, const std::vector<TokenId>& tokens) {
  std::string out;
  for (const TokenId token : tokens) out += engine.core->text().of(token);
  return out;
}

GenerateRequest constrained(std::string id, Grammar grammar, int32_t max_tokens, float temperature) {
  GenerateRequest request = test_request(std::move(id), test_prompt(40), max_tokens, temperature);
  request.grammar = std::move(grammar);
  return request;
}

TEST_F(GrammarTest, AnAnswerFollowsItsGrammarAtEveryTemperature) {
  TestEngine engine;
  for (const float temperature : {0.0f, 1.0f}) {
    GenerateRequest request =
        constrained(temperature == 0 ? "cold" : "hot", Grammar::regex("[ab]{3}(, [0-9]+)? end"), 100, temperature);
    request.sampling.n = temperature == 0 ? 1 : 4;
    const auto sink = engine.start(request);
    engine.run();
    ASSERT_TRUE(sink->done->ok()) << sink->done->to_string();
    for (int32_t choice = 0; choice < request.sampling.n; ++choice) {
      const auto index = static_cast<size_t>(choice);
      EXPECT_THAT(spelled(engine, sink->tokens[index]), testing::MatchesRegex("[ab][ab][ab](, [0-9]+)? end"));
      EXPECT_EQ(sink->finish[index]->reason, FinishReason::kStop) << "the end is the grammar's";
    }
  }
}

TEST_F(GrammarTest, LogprobsAreThoseOfWhatIsAllowed) {
  TestEngine engine;
  GenerateRequest request =
      constrained("a", Grammar::any_of({Grammar::literal("x"), Grammar::literal("y"), Grammar::literal("z")}), 5, 1);
  request.sampling.top_logprobs = 20;
  const auto sink = engine.start(request);
  engine.run();
  ASSERT_EQ(sink->outputs.size(), 1u);
  double sum = 0;
  for (const auto& [token, logprob] : sink->outputs[0].top_logprobs) sum += std::exp(logprob);
  EXPECT_EQ(sink->outputs[0].top_logprobs.size(), 3u);
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST_F(GrammarTest, CutByItsLengthAndByStopStrings) {
  TestEngine engine;
  const auto cut = engine.start(constrained("cut", Grammar::regex("a{50}"), 7, 1));
  GenerateRequest stopped = constrained("stop", Grammar::regex("a{3}b{50}"), 60, 1);
  stopped.sampling.stop = {"abb"};
  const auto stop = engine.start(stopped);
  GenerateRequest least = constrained("least", Grammar::regex("a{2,5}"), 60, 1);
  least.sampling.min_tokens = 5;
  const auto full = engine.start(least);
  GenerateRequest endless = constrained("endless", Grammar::regex("a{4}"), 60, 1);
  endless.sampling.ignore_eos = true;
  const auto last = engine.start(endless);
  engine.run();
  EXPECT_EQ(spelled(engine, cut->tokens[0]), "aaaaaaa");
  EXPECT_EQ(cut->finish[0]->reason, FinishReason::kLength);
  EXPECT_EQ(stop->finish[0]->stop_string, 0);
  EXPECT_EQ(spelled(engine, full->tokens[0]), "aaaaa");
  EXPECT_EQ(spelled(engine, last->tokens[0]), "aaaa");
  EXPECT_EQ(last->finish[0]->reason, FinishReason::kStop) << "nothing may follow";
}

// A preempted answer is computed again from its tokens; its matcher has stayed where it was.
TEST_F(GrammarTest, PreemptionChangesNothing) {
  const Grammar grammar = Grammar::regex("([a-m][n-z][0-9]){70}");
  TestBackend::Options roomy, tight;
  tight.kv_blocks = 30;
  std::vector<std::vector<TokenId>> answers[2];
  for (const bool is_tight : {false, true}) {
    TestEngine engine(is_tight ? tight : roomy);
    std::vector<std::shared_ptr<RecordingSink>> sinks;
    for (int n = 0; n < 3; ++n) {
      GenerateRequest request = constrained(std::to_string(n), grammar, 210, 1);
      request.prompt = test_prompt(60, n);
      sinks.push_back(engine.start(request));
    }
    engine.run();
    EXPECT_EQ(engine.core->stats().preemptions > 0, is_tight);
    for (const auto& sink : sinks) {
      ASSERT_TRUE(sink->done->ok()) << sink->done->to_string();
      answers[is_tight].push_back(sink->tokens[0]);
    }
  }
  EXPECT_EQ(answers[0], answers[1]);
}

TEST_F(GrammarTest, AResumeGoesOnWhereItWas) {
  TestEngine engine;
  const Grammar grammar = Grammar::regex("[ab]{6}[cd]{6}");
  const auto whole = engine.start(constrained("whole", grammar, 50, 1));
  engine.run();
  ASSERT_EQ(whole->tokens[0].size(), 12u);
  for (const size_t said : {1u, 6u, 11u, 12u}) {
    GenerateRequest request = constrained("rest" + std::to_string(said), grammar, 50, 1);
    request.output_prefix.assign(whole->tokens[0].begin(), whole->tokens[0].begin() + static_cast<ptrdiff_t>(said));
    const auto rest = engine.start(request);
    engine.run();
    ASSERT_TRUE(rest->done->ok()) << rest->done->to_string();
    std::vector<TokenId> joined = request.output_prefix;
    joined.insert(joined.end(), rest->tokens[0].begin(), rest->tokens[0].end());
    EXPECT_EQ(joined, whole->tokens[0]);
  }
  GenerateRequest wrong = constrained("wrong", grammar, 50, 1);
  wrong.output_prefix = {whole->tokens[0][11]};
  const auto refused = engine.start(wrong);
  engine.run();
  EXPECT_EQ(refused->done->code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(engine.core->idle());
}

// --- Calls of tools

constexpr const char* kTools = R"([
  {"type":"function","function":{"name":"read_file","parameters":{"type":"object","properties":{
    "path":{"type":"string"},"line":{"type":"integer"},"whole":{"type":"boolean"}},"required":["path"]}}},
  {"type":"function","function":{"name":"now"}},
  {"type":"function","function":{"name":"put","parameters":{"type":"object","properties":{
    "items":{"type":"array","items":{"type":"string","enum":["a","b"]},"maxItems":3},
    "mode":{"type":"string","enum":["fast","slow"]}},"required":["items","mode"]}}}])";

struct Call {
  std::string name;
  std::string arguments;
};

std::vector<Call> calls_in(const AnswerMarkers& markers, const Value& tools, const std::string& answer,
                           int64_t& malformed, std::string& text) {
  AnswerParser parser(std::make_shared<const AnswerMarkers>(markers), {.tools = tools});
  parser.push_text(answer);
  parser.finish();
  malformed = parser.malformed_calls();
  std::vector<Call> calls;
  for (const AnswerPiece& piece : parser.take_pieces()) {
    if (piece.kind == AnswerPiece::Kind::kCall) calls.push_back({piece.text, {}});
    if (piece.kind == AnswerPiece::Kind::kArguments) calls.back().arguments += piece.text;
    if (piece.kind == AnswerPiece::Kind::kText) text += piece.text;
  }
  return calls;
}

// In every model family's format: what the grammar allows, the parser reads as calls that the schemas accept.
TEST_F(GrammarTest, DemandedCallsAreReadBackAsValidCalls) {
  const Value tools = *value_from_json(kTools);
  std::map<std::string, std::string> schemas;
  for (const Value& tool : tools.as_list().items) {
    schemas[tool.find("function")->find("name")->string_or_empty()] = parameters_schema(tool);
  }
  const std::pair<const char*, AnswerFormat> formats[] = {
      {"hermes", {CallFormat::kTagged, ReasoningFormat::kNone, ArgumentFormat::kJson}},
      {"hermes, reasoning", {CallFormat::kTagged, ReasoningFormat::kThink, ArgumentFormat::kJson}},
      {"qwen3-coder", {CallFormat::kTagged, ReasoningFormat::kNone, ArgumentFormat::kParameters}},
      {"glm", {CallFormat::kTagged, ReasoningFormat::kNone, ArgumentFormat::kPairs}},
      {"llama3", {CallFormat::kLlama3, ReasoningFormat::kNone, ArgumentFormat::kJson}},
      {"mistral", {CallFormat::kMistral, ReasoningFormat::kNone, ArgumentFormat::kJson}},
      {"deepseek v3.1", {CallFormat::kDeepSeek, ReasoningFormat::kThink, ArgumentFormat::kJson}},
      {"deepseek v3", {CallFormat::kDeepSeek, ReasoningFormat::kNone, ArgumentFormat::kFenced}},
      {"kimi", {CallFormat::kKimi, ReasoningFormat::kNone, ArgumentFormat::kJson}},
      {"harmony", {CallFormat::kHarmony, ReasoningFormat::kNone, ArgumentFormat::kJson}},
  };
  std::mt19937 random(11);
  for (const auto& [name, format] : formats) {
    const AnswerMarkers markers(format, nullptr);
    for (const bool parallel : {false, true}) {
      const auto compiled = compile(after_reasoning(markers, false, call_grammar(markers, tools, {}, parallel)));
      ASSERT_NE(compiled, nullptr) << name;
      int ended = 0;
      for (int n = 0; n < 40; ++n) {
        const auto matcher = GrammarMatcher::create(compiled, {kTestEnd});
        const GrammarWalk walk = walk_grammar(*matcher, text, random, 600);
        if (!walk.ended || !is_valid_utf8(walk.text)) continue;
        ++ended;
        int64_t malformed = 0;
        std::string rest;
        const std::vector<Call> calls = calls_in(markers, tools, walk.text, malformed, rest);
        EXPECT_EQ(malformed, 0) << name << "\n" << walk.text;
        EXPECT_EQ(rest, "") << name << "\n" << walk.text;
        EXPECT_TRUE(parallel ? !calls.empty() : calls.size() == 1) << name << "\n" << walk.text;
        for (const Call& call : calls) {
          ASSERT_TRUE(schemas.contains(call.name)) << name << "\n" << walk.text;
          EXPECT_TRUE(SchemaCheck::accepts(schemas[call.name], call.arguments))
              << name << "\n"
              << walk.text << "\nread as " << call.arguments;
        }
      }
      EXPECT_GE(ended, 8) << name;
    }
    const auto named = compile(call_grammar(markers, tools, {"now"}, false));
    const auto matcher = GrammarMatcher::create(named, {kTestEnd});
    const GrammarWalk walk = walk_grammar(*matcher, text, random, 600);
    EXPECT_TRUE(!walk.ended || walk.text.find("now") != std::string::npos) << name;
  }
}

}  // namespace
}  // namespace warmpath
