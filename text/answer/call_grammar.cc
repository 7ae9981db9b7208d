#include "text/answer/call_grammar.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "text/answer/json_scanner.h"
#include "text/jinja/python_text.h"

namespace warmpath {

namespace {

using Parts = std::vector<Grammar>;

Grammar optional(Grammar part) { return Grammar::repeat(std::move(part), 0, 1); }

constexpr std::string_view kTextRules[] = {"\"enum\"",   "\"const\"", "\"minLength\"", "\"maxLength\"", "\"pattern\"",
                                           "\"format\"", "\"$ref\"",  "\"anyOf\"",     "\"oneOf\""};

std::string json_string(std::string_view text) {
  std::string json = "\"";
  append_json_text(text, json);
  return json + '"';
}

class CallWriter {
 public:
  explicit CallWriter(const AnswerMarkers& markers) : markers_(markers) {}

  Grammar calls(const std::vector<const Value*>& tools, bool parallel) const {
    switch (markers_.format().calls) {
      case CallFormat::kLlama3:
        return several(one_of(tools, &CallWriter::llama3), Grammar::literal("; "), parallel);
      case CallFormat::kMistral:
        if (markers_.is_token(Marker::kArguments)) return several(one_of(tools, &CallWriter::mistral), {}, parallel);
        return Grammar::sequence({mark(Marker::kCallBegin), optional(Grammar::literal(" ")), Grammar::literal("["),
                                  several(one_of(tools, &CallWriter::mistral_object), Grammar::literal(", "), parallel),
                                  Grammar::literal("]")});
      case CallFormat::kDeepSeek:
        return section(several(one_of(tools, &CallWriter::deepseek), optional(Grammar::literal("\n")), parallel));
      case CallFormat::kKimi:
        return section(several(one_of(tools, &CallWriter::kimi), {}, parallel));
      case CallFormat::kHarmony:
        // A call ends the answer. What was thought before it stands in a channel of its own.
        return Grammar::sequence(
            {optional(Grammar::sequence({mark(Marker::kChannel), Grammar::literal("analysis"), mark(Marker::kMessage),
                                         free_until(Marker::kEnd), mark(Marker::kEnd), mark(Marker::kStart),
                                         Grammar::literal("assistant")})),
             mark(Marker::kChannel), one_of(tools, &CallWriter::harmony)});
      default:
        return several(one_of(tools, &CallWriter::tagged), optional(Grammar::literal("\n")), parallel);
    }
  }

  // A marker, as what the parser knows it by.
  Grammar mark(Marker marker) const {
    return markers_.is_token(marker) ? Grammar::token(markers_.token(marker))
                                     : Grammar::literal(markers_.spelling(marker));
  }
  Grammar free_until(Marker marker) const {
    if (markers_.is_token(marker)) return Grammar::tokens_without({markers_.token(marker)});
    return Grammar::text_without({std::string(markers_.spelling(marker))});
  }

 private:
  struct Tool {
    std::string name;
    std::string schema;
  };

  Grammar one_of(const std::vector<const Value*>& tools, Grammar (CallWriter::*write)(const Tool&) const) const {
    Parts parts;
    for (const Value* tool : tools) {
      const Value* function = tool->find("function");
      parts.push_back((this->*write)({function->find("name")->string_or_empty(), parameters_schema(*tool)}));
    }
    if (parts.size() == 1) return std::move(parts.front());
    return Grammar::any_of(std::move(parts));
  }

  static Grammar several(Grammar call, Grammar separator, bool parallel) {
    if (!parallel) return call;
    Grammar more = separator.empty() ? call : Grammar::sequence({std::move(separator), call});
    return Grammar::sequence({std::move(call), Grammar::repeat(std::move(more), 0, kMostParallelCalls - 1)});
  }

  Grammar section(Grammar calls) const {
    return Grammar::sequence({mark(Marker::kCallsBegin), std::move(calls), mark(Marker::kCallsEnd)});
  }

  static Grammar object(const Tool& tool) { return Grammar::json_schema(tool.schema, kCallSpace); }
  static Grammar envelope(const Tool& tool, std::string_view arguments) {
    return Grammar::sequence(
        {Grammar::literal("{\"name\": " + json_string(tool.name) + ", \"" + std::string(arguments) + "\": "),
         object(tool), Grammar::literal("}")});
  }

  // Parameters written as plain text, with white space around them, cannot be held to these; the parser reads either
  // spelling.
  static bool needs_json(const Tool& tool) {
    return std::any_of(std::begin(kTextRules), std::end(kTextRules),
                       [&](std::string_view word) { return tool.schema.find(word) != std::string::npos; });
  }

  Grammar tagged(const Tool& tool) const {
    const Grammar line = optional(Grammar::literal("\n"));
    switch (needs_json(tool) ? ArgumentFormat::kJson : markers_.format().arguments) {
      case ArgumentFormat::kParameters: {
        Grammar parameters = object(tool);
        parameters.kind = Grammar::Kind::kQwenObject;
        return Grammar::sequence({mark(Marker::kCallBegin), Grammar::literal("\n"), mark(Marker::kFunctionBegin),
                                  Grammar::literal(tool.name + ">\n"), std::move(parameters), line,
                                  mark(Marker::kFunctionEnd), Grammar::literal("\n"), mark(Marker::kCallEnd)});
      }
      case ArgumentFormat::kPairs: {
        Grammar pairs = object(tool);
        pairs.kind = Grammar::Kind::kGlmObject;
        return Grammar::sequence({mark(Marker::kCallBegin), Grammar::literal(tool.name + "\n"), std::move(pairs), line,
                                  mark(Marker::kCallEnd)});
      }
      default:
        return Grammar::sequence(
            {mark(Marker::kCallBegin), line, envelope(tool, "arguments"), line, mark(Marker::kCallEnd)});
    }
  }

  Grammar llama3(const Tool& tool) const { return envelope(tool, "parameters"); }
  Grammar mistral_object(const Tool& tool) const { return envelope(tool, "arguments"); }
  Grammar mistral(const Tool& tool) const {
    return Grammar::sequence(
        {mark(Marker::kCallBegin), Grammar::literal(tool.name), mark(Marker::kArguments), object(tool)});
  }
  Grammar deepseek(const Tool& tool) const {
    if (markers_.format().arguments != ArgumentFormat::kFenced) {
      return Grammar::sequence({mark(Marker::kCallBegin), Grammar::literal(tool.name), mark(Marker::kArguments),
                                object(tool), mark(Marker::kCallEnd)});
    }
    return Grammar::sequence({mark(Marker::kCallBegin), Grammar::literal("function"), mark(Marker::kArguments),
                              Grammar::literal(tool.name + "\n```json\n"), object(tool), Grammar::literal("\n```"),
                              mark(Marker::kCallEnd)});
  }
  Grammar kimi(const Tool& tool) const {
    return Grammar::sequence({mark(Marker::kCallBegin), Grammar::literal("functions." + tool.name + ":"),
                              Grammar::regex("[0-9]{1,3}"), mark(Marker::kArguments), object(tool),
                              mark(Marker::kCallEnd)});
  }
  Grammar harmony(const Tool& tool) const {
    return Grammar::sequence({Grammar::literal("commentary to=functions." + tool.name + " "), mark(Marker::kConstrain),
                              Grammar::literal("json"), mark(Marker::kMessage), object(tool)});
  }

  const AnswerMarkers& markers_;
};

}  // namespace

std::string parameters_schema(const Value& tool) {
  constexpr std::string_view kNothing = R"({"type":"object","properties":{}})";
  const Value* function = tool.find("function");
  const Value* parameters = function == nullptr ? nullptr : function->find("parameters");
  if (parameters == nullptr || parameters->is_none()) return std::string(kNothing);
  jinja::JsonStyle style;
  style.item_separator = ",";
  style.key_separator = ":";
  if (!parameters->is_dict() || parameters->find("type") != nullptr || parameters->find("$ref") != nullptr) {
    return jinja::to_json(*parameters, style).to_string();
  }
  if (parameters->as_dict().entries.empty()) return std::string(kNothing);
  Value object = Value::dict();
  object.as_dict().set("type", Value::string("object", Origin::kMessage));
  for (const auto& [key, value] : parameters->as_dict().entries) object.as_dict().set(key, value);
  return jinja::to_json(object, style).to_string();
}

Grammar call_grammar(const AnswerMarkers& markers, const Value& tools, const std::vector<std::string>& only,
                     bool parallel) {
  std::vector<const Value*> callable;
  for (const Value& tool : tools.as_list().items) {
    const Value* function = tool.find("function");
    const Value* name = function == nullptr ? nullptr : function->find("name");
    if (name == nullptr) continue;
    if (!only.empty() && std::find(only.begin(), only.end(), name->string_or_empty()) == only.end()) continue;
    callable.push_back(&tool);
  }
  return CallWriter(markers).calls(callable, parallel);
}

Grammar after_reasoning(const AnswerMarkers& markers, bool in_reasoning, Grammar answer) {
  if (markers.format().reasoning == ReasoningFormat::kNone) return answer;
  const CallWriter writer(markers);
  const Grammar lines = Grammar::repeat(Grammar::literal("\n"), 0, 2);
  Grammar rest = Grammar::sequence({writer.free_until(Marker::kThinkEnd), writer.mark(Marker::kThinkEnd), lines});
  if (in_reasoning) return Grammar::sequence({std::move(rest), std::move(answer)});
  return Grammar::sequence(
      {optional(Grammar::sequence({writer.mark(Marker::kThinkBegin), std::move(rest)})), std::move(answer)});
}

}  // namespace warmpath
