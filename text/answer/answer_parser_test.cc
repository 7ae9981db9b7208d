// Every format's calls and reasoning, whole and cut at every byte.
#include "text/answer/answer_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/answer/json_scanner.h"
#include "text/json_value.h"
#include "text/vocabulary_for_test.h"

namespace warmpath {
namespace {

using Kind = AnswerPiece::Kind;

constexpr std::string_view kTools = R"([
  {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties":
    {"path": {"type": "string"}, "line": {"type": "integer"}, "all": {"type": ["boolean", "null"]},
     "what": {"anyOf": [{"type": "object"}, {"type": "number"}]}, "or": {"anyOf": [{"type": "null"}, {"type": "string"}]}}}}},
  {"type": "function", "function": {"name": "list"}}])";

// Pieces as one line: text as it is, [reasoning], {name#id arguments}.
std::string shown(const std::vector<AnswerPiece>& pieces) {
  std::string out;
  for (const AnswerPiece& piece : pieces) {
    switch (piece.kind) {
      case Kind::kText:
        out += piece.text;
        break;
      case Kind::kReasoning:
        out += "[" + piece.text + "]";
        break;
      case Kind::kCall:
        out += "{" + piece.text + (piece.id.empty() ? "" : "#" + piece.id) + " ";
        break;
      case Kind::kArguments:
        out += piece.text;
        break;
      case Kind::kCallEnd:
        out += "}";
        break;
    }
  }
  return out;
}

void join(std::vector<AnswerPiece>& all, std::vector<AnswerPiece> more) {
  for (AnswerPiece& piece : more) {
    const bool joins = piece.kind != Kind::kCall && piece.kind != Kind::kCallEnd;
    if (joins && !all.empty() && all.back().kind == piece.kind) {
      all.back().text += piece.text;
    } else {
      all.push_back(std::move(piece));
    }
  }
}

struct Read {
  std::vector<AnswerPiece> pieces;
  int64_t malformed = 0;
};

Read read(AnswerFormat format, const std::vector<std::string_view>& parts, bool in_reasoning = false,
          bool with_tools = true) {
  AnswerParser::Options options;
  if (with_tools) options.tools = value_from_json(kTools).value();
  options.in_reasoning = in_reasoning;
  AnswerParser parser(std::make_shared<AnswerMarkers>(format, nullptr), std::move(options));
  Read read;
  for (const std::string_view part : parts) {
    parser.push_text(part);
    join(read.pieces, parser.take_pieces());
  }
  parser.finish();
  join(read.pieces, parser.take_pieces());
  read.malformed = parser.malformed_calls();
  return read;
}

struct Example {
  CallFormat calls;
  std::string_view answer;
  std::string_view wanted;
  int64_t malformed = 0;
  ReasoningFormat reasoning = ReasoningFormat::kThink;
  bool in_reasoning = false;
};

const std::vector<Example>& examples() {
  using C = CallFormat;
  static const std::vector<Example> kExamples = {
      {C::kTagged, "just text, <b> and 1 < 2 </think> \n", "just text, <b> and 1 < 2 </think> \n"},
      {C::kTagged, "Look.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a b\\n\"}}\n</tool_call>",
       "Look.{read {\"path\": \"a b\\n\"}}"},
      {C::kTagged,
       "<tool_call>\n{\"name\": \"read\", \"arguments\": {}}\n</tool_call>\n<tool_call>{\"name\": "
       "\"list\"}</tool_call>\n"
       "Both.\n",
       "{read {}}{list {}}\nBoth.\n"},
      {C::kTagged, "<tool_call>{\"arguments\": {\"a\": [1, {\"b\": null}]}, \"name\": \"x\"}</tool_call>\n",
       "{x {\"a\": [1, {\"b\": null}]}}"},
      {C::kTagged, "<tool_call>{\"name\": \"read\", \"arguments\": \"{\\\"path\\\": \\\"p\\\"}\"}</tool_call>",
       "{read {\"path\": \"p\"}}"},
      {C::kTagged, "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"</tool_call>\nx\"}}</tool_call>",
       "{read {\"path\": \"</tool_call>\\nx\"}}"},
      {C::kTagged,
       "<tool_call>{\"id\": 7, \"type\": \"function\", \"name\": \"read\", \"arguments\": null}</tool_call>",
       "{read {}}"},
      // The outer brace is missing: the call is whole all the same.
      {C::kTagged, "<tool_call>{\"name\": \"read\", \"arguments\": {\"line\": 1}</tool_call>", "{read {\"line\": 1}}",
       1},
      // No calls: handed out as text.
      {C::kTagged, "a <tool_call>nothing like it</tool_call> b", "a <tool_call>nothing like it</tool_call> b", 1},
      {C::kTagged, "<tool_call>{\"name\": 5, \"arguments\": {}}</tool_call>",
       "<tool_call>{\"name\": 5, \"arguments\": {}}</tool_call>", 1},
      {C::kTagged, "<tool_call>{\"name\": \"read\", \"arguments\": [1]}</tool_call>",
       "<tool_call>{\"name\": \"read\", \"arguments\": [1]}</tool_call>", 1},
      {C::kTagged, "<tool_call>{\"name\": \"re", "<tool_call>{\"name\": \"re", 1},
      {C::kTagged, "<tool_cal", "<tool_cal"},
      // Broken after it was begun: the arguments stay as they are.
      {C::kTagged, "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": oops}}</tool_call>",
       "{read {\"path\": oops}}}", 1},
      {C::kTagged, "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"cut", "{read {\"path\": \"cut}", 1},

      {C::kTagged,
       "ok\n\n<tool_call>\n<function=read>\n<parameter=path>\na\nb \"q\"\n\n</parameter>\n<parameter=line>\n 7\n"
       "</parameter>\n<parameter=all>\nTrue\n</parameter>\n</function>\n</tool_call>",
       "ok{read {\"path\": \"a\\nb \\\"q\\\"\\n\", \"line\": 7, \"all\": true}}"},
      {C::kTagged, "<tool_call><function=list></function></tool_call>", "{list {}}"},
      {C::kTagged, "<tool_call>\n<function=read>\n<parameter=line>\nseven\n</parameter>\n</function>\n</tool_call>",
       "{read {\"line\": \"seven\"}}"},
      {C::kTagged,
       "<tool_call><function=read><parameter=what>{\"a\": "
       "1}</parameter><parameter=or>5</parameter></function></tool_call>",
       "{read {\"what\": {\"a\": 1}, \"or\": \"5\"}}"},
      {C::kTagged, "<tool_call><function=read><parameter=path><tool_call>&</parameter></function></tool_call>",
       "{read {\"path\": \"<tool_call>&\"}}"},
      {C::kTagged, "<function=read><parameter=path>x</parameter></function></tool_call>", "{read {\"path\": \"x\"}}"},
      {C::kTagged, "<function=unknown><parameter=path>", "<function=unknown><parameter=path>", 1},
      {C::kTagged, "<tool_call><function=read><parameter=path>half a fi", "{read {\"path\": \"half a fi}", 1},
      {C::kTagged, "<tool_call><function=read>junk</function></tool_call>", "{read {junk</function>}", 1},

      {C::kTagged,
       "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a\nb</arg_value>\n<arg_key>line</arg_key>\n"
       "<arg_value>3</arg_value>\n</tool_call><tool_call>list</tool_call>",
       "{read {\"path\": \"a\\nb\", \"line\": 3}}{list {}}"},

      {C::kTagged, "<think>\nhm, <b>\n</think>\n\nHello\n", "[hm, <b>]Hello\n"},
      {C::kTagged, "hm\n</think>\n\n<tool_call>{\"name\": \"list\"}</tool_call>", "[hm]{list {}}", 0,
       ReasoningFormat::kThink, true},
      {C::kTagged, "\nnever closed", "[never closed]", 0, ReasoningFormat::kThink, true},
      {C::kTagged, "say <think> out loud", "say <think> out loud"},
      {C::kTagged, "<think></think>", ""},

      {C::kLlama3, R"({"name": "read", "parameters": {"path": "x"}})", R"({read {"path": "x"}})"},
      {C::kLlama3, R"(<|python_tag|>{"name": "read", "parameters": {}}; {"name": "list", "parameters": {}})",
       "{read {}}{list {}}"},
      {C::kLlama3, R"({"type": "function", "name": "read", "parameters": {}})", "{read {}}"},
      {C::kLlama3, R"({"answer": 42})", R"({"answer": 42})"},
      {C::kLlama3, R"({"name": "nobody", "parameters": {}})", R"({"name": "nobody", "parameters": {}})"},
      {C::kLlama3, R"(It is {"name": "read"})", R"(It is {"name": "read"})"},
      {C::kLlama3, "<|python_tag|>print(1)", "<|python_tag|>print(1)", 1},

      {C::kMistral, R"([TOOL_CALLS][{"name": "read", "arguments": {"line": 1}}, {"name": "list", "arguments": {}}])",
       R"({read {"line": 1}}{list {}})"},
      {C::kMistral, R"(Hm. [TOOL_CALLS]read[CALL_ID]abc123XYZ[ARGS]{"line": 1}[TOOL_CALLS]list[ARGS]{})",
       R"(Hm.{read#abc123XYZ {"line": 1}}{list {}})"},
      {C::kMistral, R"([TOOL_CALLS]read{"line": 1})", R"({read {"line": 1}})"},
      {C::kMistral, R"([TOOL_CALLS]read)", R"([TOOL_CALLS]read)", 1},
      {C::kMistral, "[THINK]so[/THINK]x[1]", "[so]x[1]", 0, ReasoningFormat::kBracket},

      {C::kDeepSeek,
       "Now.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{\"line\": 1}<｜tool▁call▁end｜>"
       "<｜tool▁call▁begin｜>list<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "Now.{read {\"line\": 1}}{list {}}"},
      {C::kDeepSeek,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n{\"line\": "
       "1}\n```<｜tool▁call▁end｜>\n"
       "<｜tool▁call▁begin｜>function<｜tool▁sep｜>list\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "{read {\"line\": 1}}{list {}}"},
      {C::kDeepSeek, "<｜tool▁calls▁begin｜>none", "<｜tool▁calls▁begin｜>none", 1},

      {C::kKimi,
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{\"line\": 1}"
       "<|tool_call_end|><|tool_call_begin|>functions.list:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
       "<|tool_calls_section_end|>",
       "{read#functions.read:0 {\"line\": 1}}{list#functions.list:1 {}}"},

      {C::kHarmony,
       "<|channel|>analysis<|message|>I must look.<|end|><|start|>assistant<|channel|>commentary to=functions.read "
       "<|constrain|>json<|message|>{\"line\": 1}<|call|>",
       "[I must look.]{read {\"line\": 1}}"},
      {C::kHarmony, " to=functions.list<|channel|>commentary json<|message|>{}", "{list {}}"},
      {C::kHarmony,
       "<|channel|>commentary<|message|>First this.<|end|><|start|>assistant<|channel|>final<|message|>Done <|x|>",
       "First this.Done <|x|>"},
      {C::kHarmony, "plain", "plain"},
      {C::kHarmony, "<|channel|>anal", ""},
      {C::kHarmony, "<|channel|>commentary to=functions.read<|message|>not json<|end|>",
       "<|channel|>commentary to=functions.read<|message|>not json", 1},
  };
  return kExamples;
}

TEST(AnswerParser, ReadsEveryFormat) {
  for (const Example& example : examples()) {
    const Read whole = read({example.calls, example.reasoning}, {example.answer}, example.in_reasoning);
    EXPECT_EQ(shown(whole.pieces), example.wanted) << example.answer;
    EXPECT_EQ(whole.malformed, example.malformed) << example.answer;
  }
}

TEST(AnswerParser, CutsChangeNothing) {
  for (const Example& example : examples()) {
    const AnswerFormat format{example.calls, example.reasoning};
    const Read whole = read(format, {example.answer}, example.in_reasoning);
    std::vector<std::string_view> bytes;
    for (size_t cut = 0; cut <= example.answer.size(); ++cut) {
      const Read parts =
          read(format, {example.answer.substr(0, cut), example.answer.substr(cut)}, example.in_reasoning);
      ASSERT_EQ(parts.pieces, whole.pieces) << "cut at " << cut << ": " << example.answer;
      if (cut < example.answer.size()) bytes.push_back(example.answer.substr(cut, 1));
    }
    EXPECT_EQ(read(format, bytes, example.in_reasoning).pieces, whole.pieces) << example.answer;
  }
}

// Whatever the answer's end cuts off, whole calls have JSON arguments, and broken ones are counted.
TEST(AnswerParser, EveryBeginningOfAnAnswerIsSafe) {
  for (const Example& example : examples()) {
    for (size_t size = 0; size < example.answer.size(); ++size) {
      const Read part =
          read({example.calls, example.reasoning}, {example.answer.substr(0, size)}, example.in_reasoning);
      int64_t broken = 0;
      bool open = false;
      std::string arguments;
      for (const AnswerPiece& piece : part.pieces) {
        if (piece.kind == Kind::kCall) {
          EXPECT_FALSE(open);
          open = true;
          arguments.clear();
        } else if (piece.kind == Kind::kArguments) {
          EXPECT_TRUE(open);
          arguments += piece.text;
        } else if (piece.kind == Kind::kCallEnd) {
          open = false;
          if (!is_json(arguments)) ++broken;
        }
      }
      EXPECT_FALSE(open) << example.answer.substr(0, size);
      EXPECT_LE(broken, part.malformed) << example.answer.substr(0, size);
    }
  }
}

TEST(AnswerParser, ArgumentsComeWhileTheyAreWritten) {
  AnswerParser::Options options;
  options.tools = value_from_json(kTools).value();
  AnswerParser parser(std::make_shared<AnswerMarkers>(AnswerFormat{}, nullptr), std::move(options));
  parser.push_text("<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"abc");
  EXPECT_EQ(shown(parser.take_pieces()), "{read {\"path\": \"abc");
  parser.push_text("def");
  EXPECT_EQ(shown(parser.take_pieces()), "def");
}

TEST(AnswerParser, WithoutToolsCallsAreText) {
  constexpr std::string_view kAnswer = "<think>a</think>b <tool_call>{\"name\": \"read\"}</tool_call> ";
  EXPECT_EQ(shown(read({}, {kAnswer}, false, false).pieces), "[a]b <tool_call>{\"name\": \"read\"}</tool_call> ");
}

TEST(AnswerParser, AMarkerThatIsATokenIsNotItsText) {
  Vocabulary vocabulary = synthetic_vocabulary(400);
  for (const char* marker : {"<tool_call>", "</tool_call>", "<think>", "</think>"}) {
    const auto unused = static_cast<size_t>(
        std::find(vocabulary.types.begin(), vocabulary.types.end(), TokenType::kUnused) - vocabulary.types.begin());
    ASSERT_LT(unused, vocabulary.tokens.size());
    vocabulary.tokens[unused] = marker;
    vocabulary.types[unused] = TokenType::kControl;
    AddedToken& added = vocabulary.added.emplace_back();
    added.id = static_cast<TokenId>(unused);
    added.text = marker;
    added.control = true;
  }
  const auto tokenizer = Tokenizer::create(std::move(vocabulary)).value();
  const auto markers = std::make_shared<AnswerMarkers>(AnswerFormat{}, tokenizer.get());
  EXPECT_EQ(markers->of_token(tokenizer->special_token("<tool_call>").value()), Marker::kCallBegin);
  EXPECT_EQ(markers->of_token(5), std::nullopt);
  EXPECT_TRUE(markers->is_token(Marker::kThinkEnd));
  AnswerParser::Options options;
  options.tools = value_from_json(kTools).value();
  options.in_reasoning = true;
  AnswerParser parser(markers, std::move(options));
  // As text, the markers are text; a call's token ends a forgotten reasoning.
  parser.push_text("I write </think> and <tool_call>{\n");
  parser.push_marker(Marker::kCallBegin);
  parser.push_text("{\"name\": \"read\", \"arguments\": {\"path\": \"</tool_call>");
  parser.push_marker(Marker::kCallEnd);
  parser.push_text("\"}}");
  parser.push_marker(Marker::kCallEnd);
  parser.push_text("<tool_call>");
  parser.finish();
  EXPECT_EQ(shown(parser.take_pieces()),
            "[I write </think> and <tool_call>{]{read {\"path\": \"</tool_call></tool_call>\"}}<tool_call>");
}

TEST(AnswerParser, ThePromptMayOpenTheReasoning) {
  const AnswerMarkers markers({CallFormat::kTagged, ReasoningFormat::kThink}, nullptr);
  EXPECT_TRUE(prompt_opens_reasoning(markers, "<|im_start|>assistant\n<think>\n"));
  EXPECT_TRUE(prompt_opens_reasoning(markers, "<think>"));
  EXPECT_FALSE(prompt_opens_reasoning(markers, "<think>\n\n</think>\n\n"));
  EXPECT_FALSE(prompt_opens_reasoning(markers, ""));
  EXPECT_FALSE(
      prompt_opens_reasoning(AnswerMarkers({CallFormat::kTagged, ReasoningFormat::kNone}, nullptr), "<think>"));
}

TEST(AnswerFormat, FollowsTheTemplate) {
  const auto calls = [](std::string_view source) { return detect_answer_format(source).calls; };
  EXPECT_EQ(calls("{{ messages }}"), CallFormat::kTagged);
  EXPECT_EQ(calls("<|start_header_id|>... \"parameters\": ..."), CallFormat::kLlama3);
  EXPECT_EQ(calls("[TOOL_CALLS]"), CallFormat::kMistral);
  EXPECT_EQ(calls("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"), CallFormat::kDeepSeek);
  EXPECT_EQ(calls("<|tool_call_begin|>"), CallFormat::kKimi);
  EXPECT_EQ(calls("<|start|><|channel|><|message|>"), CallFormat::kHarmony);
  EXPECT_EQ(calls("<tool_call><arg_key>"), CallFormat::kTagged);
  EXPECT_EQ(detect_answer_format("</think>").reasoning, ReasoningFormat::kThink);
  EXPECT_EQ(detect_answer_format("[TOOL_CALLS][THINK]").reasoning, ReasoningFormat::kBracket);
  EXPECT_EQ(detect_answer_format("{{ messages }}").reasoning, ReasoningFormat::kNone);
}

TEST(JsonScanner, AgreesWithTheReader) {
  for (const char* text : {"{}",      "[]",         "0",
                           "-0",      "01",         "1.",
                           "1.5e+3",  "1e",         "-",
                           "true",    "tru",        "truee",
                           "null",    "\"a\\u12\"", "\"\\u12aF\"",
                           "\"\\x\"", "{\"a\":1,}", "{\"a\" :1 , \"b\":[1, 2]}",
                           "[1,]",    "[,]",        "{,}",
                           "{\"a\"}", "{1:2}",      "[1 2]",
                           "]",       "",           "{\"a\":{\"b\":[{}]}}",
                           "[1]]",    "\"open",     "[\"\\\"\"]",
                           "- 1",     "1 "}) {
    EXPECT_EQ(is_json(text), value_from_json(text).ok()) << text;
  }
  EXPECT_FALSE(is_json(std::string(JsonScanner::kMaxDepth + 1, '[') + std::string(JsonScanner::kMaxDepth + 1, ']')));
}

}  // namespace
}  // namespace warmpath
