// <tool_call> around JSON (Hermes, Qwen), around <function=...> (Qwen3-Coder), or around <arg_key> pairs (GLM): what
// follows the marker says which.
#include "text/answer/answer_reader.h"
#include "text/answer/json_scanner.h"

namespace warmpath {

namespace {

bool is_name(std::string_view text) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/-";
  return !text.empty() && text.find_first_not_of(kAllowed) == std::string_view::npos;
}

// What a parameter that is not text stands for: JSON as the model wrote it, Python's words for JSON's, or else text.
void argue_typed(AnswerReader& reader, std::string_view value) {
  constexpr std::string_view kSpaces = " \n\r\t";
  const size_t first = std::min(value.find_first_not_of(kSpaces), value.size());
  const std::string_view trimmed = value.substr(first, value.find_last_not_of(kSpaces) + 1 - first);
  if (trimmed == "True") return reader.argue("true");
  if (trimmed == "False") return reader.argue("false");
  if (trimmed == "None") return reader.argue("null");
  if (is_json(trimmed)) return reader.argue(trimmed);
  std::string text = "\"";
  append_json_text(value, text);
  reader.argue(text + "\"");
}

void argue_text(AnswerReader& reader, std::string_view text) {
  std::string escaped;
  append_json_text(text, escaped);
  reader.argue(escaped);
}

// A parameter's value up to `end`, which is taken; false when the answer ends first. With `lines`, one line break
// after the opening and one before the closing marker are layout.
ParseTask read_value(AnswerReader& reader, Marker end, bool lines, bool is_text) {
  std::string value;  // of one that is not text
  bool line_break = false;
  bool first = true;
  if (is_text) reader.argue("\"");
  for (;;) {
    const Symbol next = co_await reader.peek();
    if (next.is_end()) {
      // Left open, so that nobody takes half a value for a whole one.
      if (!is_text) argue_text(reader, value);
      co_return false;
    }
    if (next.is(end)) {
      reader.take();
      break;
    }
    if (lines && next.is('\n')) {
      if (!first) {
        if (line_break && is_text) reader.argue("\\n");
        if (line_break && !is_text) value += '\n';
        line_break = true;
      }
    } else {
      if (line_break && is_text) reader.argue("\\n");
      if (line_break && !is_text) value += '\n';
      line_break = false;
      if (is_text) {
        argue_text(reader, reader.spelling(next));
      } else {
        value += reader.spelling(next);
      }
    }
    first = false;
    reader.take();
  }
  if (is_text) {
    reader.argue("\"");
  } else {
    argue_typed(reader, value);
  }
  co_return true;
}

void argue_key(AnswerReader& reader, std::string_view key, bool first) {
  std::string text = first ? "\"" : ", \"";
  append_json_text(key, text);
  reader.argue(text + "\": ");
}

// f><parameter=p>...</parameter>...</function>
ParseTask read_function(AnswerReader& reader, bool only_known) {
  std::string name;
  bool good = co_await reader.word(">\n", name);
  good = good && is_name(name) && (!only_known || reader.tools().knows(name));
  if (!good) co_return false;
  good = co_await reader.literal(">");
  if (!good) co_return false;
  reader.begin_call(name);
  reader.argue("{");
  for (bool first = true;; first = false) {
    co_await reader.skip_space();
    const Symbol next = co_await reader.peek();
    if (next.is(Marker::kFunctionEnd)) {
      reader.take();
      break;
    }
    if (next.is(Marker::kCallEnd)) break;
    std::string key;
    if (next.is(Marker::kParameterBegin)) {
      reader.take();
      good = co_await reader.word(">\n", key);
      argue_key(reader, key, first);
      if (good) good = co_await reader.literal(">");
      if (good) good = co_await read_value(reader, Marker::kParameterEnd, true, reader.tools().is_text(name, key));
    } else {
      good = false;
    }
    if (!good) co_return co_await reader.rest_of_broken_call();
  }
  reader.argue("}");
  reader.end_call();
  co_return true;
}

// f<arg_key>p</arg_key><arg_value>...</arg_value>...
ParseTask read_pairs(AnswerReader& reader) {
  std::string name;
  bool good = co_await reader.word("\n", name);
  good = good && is_name(name);
  if (!good) co_return false;
  co_await reader.skip_space();
  Symbol next = co_await reader.peek();
  if (!next.is(Marker::kKeyBegin) && !next.is(Marker::kCallEnd)) co_return false;
  reader.begin_call(name);
  reader.argue("{");
  for (bool first = true;; first = false) {
    co_await reader.skip_space();
    next = co_await reader.peek();
    if (next.is(Marker::kCallEnd)) break;
    good = next.is(Marker::kKeyBegin);
    std::string key;
    if (good) {
      reader.take();
      good = co_await reader.word("", key);
      argue_key(reader, key, first);
      next = co_await reader.peek();
      good = good && next.is(Marker::kKeyEnd);
    }
    if (good) {
      reader.take();
      co_await reader.skip_space();
      next = co_await reader.peek();
      good = next.is(Marker::kValueBegin);
    }
    if (good) {
      reader.take();
      good = co_await read_value(reader, Marker::kValueEnd, false, reader.tools().is_text(name, key));
    }
    if (!good) co_return co_await reader.rest_of_broken_call();
  }
  reader.argue("}");
  reader.end_call();
  co_return true;
}

}  // namespace

ParseTask read_tagged_calls(AnswerReader& reader) {
  reader.remember();
  Symbol next = co_await reader.peek();
  const bool bare = next.is(Marker::kFunctionBegin);
  reader.take();
  bool good = false;
  if (bare) {
    good = co_await read_function(reader, true);
  } else {
    co_await reader.skip_space();
    next = co_await reader.peek();
    if (next.is('{')) {
      good = co_await reader.envelope(false);
    } else if (next.is(Marker::kFunctionBegin)) {
      reader.take();
      good = co_await read_function(reader, false);
    } else if (next.is_byte()) {
      good = co_await read_pairs(reader);
    }
  }
  if (!good) co_return reader.give_up();
  co_await reader.skip_space();
  next = co_await reader.peek();
  if (next.is(Marker::kCallEnd)) reader.take();
  co_return true;
}

}  // namespace warmpath
