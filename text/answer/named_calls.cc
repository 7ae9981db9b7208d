// Formats that write the name before a JSON object, or a bare envelope: Llama 3, Mistral, DeepSeek, Kimi.
#include "text/answer/answer_reader.h"

namespace warmpath {

ParseTask read_llama3_calls(AnswerReader& reader) {
  reader.remember();
  Symbol next = co_await reader.peek();
  const bool marked = next.is(Marker::kCallBegin);
  if (marked) reader.take();
  for (;;) {
    co_await reader.skip_space();
    next = co_await reader.peek();
    bool good = next.is('{');
    if (good) good = co_await reader.envelope(!marked);
    // Without the marker it may be an answer in JSON.
    if (!good && !marked) co_return !reader.end_of_calls();
    if (!good) co_return reader.give_up();
    reader.remember();
    co_await reader.skip_space();
    next = co_await reader.peek();
    if (!next.is(';')) co_return reader.end_of_calls();
    reader.take();
  }
}

ParseTask read_mistral_calls(AnswerReader& reader) {
  reader.remember();
  reader.take();
  co_await reader.skip_space();
  Symbol next = co_await reader.peek();
  if (next.is('[')) {
    reader.take();
    for (;;) {
      co_await reader.skip_space();
      next = co_await reader.peek();
      bool good = next.is('{');
      if (good) good = co_await reader.envelope(false);
      if (!good) co_return reader.give_up();
      reader.remember();
      co_await reader.skip_space();
      next = co_await reader.peek();
      if (next.is(']')) {
        reader.take();
        reader.forget();
        co_return true;
      }
      if (!next.is(',')) co_return reader.end_of_calls();
      reader.take();
    }
  }
  std::string name;
  std::string id;
  bool good = co_await reader.word("{", name);
  next = co_await reader.peek();
  if (good && next.is(Marker::kCallId)) {
    reader.take();
    good = co_await reader.word("{", id);
    next = co_await reader.peek();
  }
  if (good && next.is(Marker::kArguments)) {
    reader.take();
    co_await reader.skip_space();
    next = co_await reader.peek();
  }
  if (!good || name.empty() || !next.is('{')) co_return reader.give_up();
  reader.begin_call(std::move(name), std::move(id));
  co_return co_await reader.object_arguments();
}

namespace {

// "functions.read_file:0" -> "read_file"
std::string kimi_name(std::string_view id) {
  constexpr std::string_view kPrefix = "functions.";
  if (id.starts_with(kPrefix)) id.remove_prefix(kPrefix.size());
  const size_t colon = id.rfind(':');
  if (colon != std::string_view::npos && id.find_first_not_of("0123456789", colon + 1) == std::string_view::npos) {
    id = id.substr(0, colon);
  }
  return std::string(id);
}

ParseTask read_sectioned_call(AnswerReader& reader) {
  reader.take();
  std::string name;
  bool good = co_await reader.word("", name);
  Symbol next = co_await reader.peek();
  if (!good || !next.is(Marker::kArguments)) co_return reader.give_up();
  reader.take();
  co_await reader.skip_space();
  next = co_await reader.peek();
  bool fenced = false;
  if (reader.markers().format().calls == CallFormat::kDeepSeek && !next.is('{')) {
    // The older spelling: function, separator, name, and the arguments in a code fence.
    good = co_await reader.word("\n`{", name);
    co_await reader.skip_space();
    next = co_await reader.peek();
    fenced = next.is('`');
    if (good && fenced) good = co_await reader.literal("```json");
    if (!good) co_return reader.give_up();
    co_await reader.skip_space();
    next = co_await reader.peek();
  }
  std::string id;
  if (reader.markers().format().calls == CallFormat::kKimi) {
    id = name;
    name = kimi_name(id);
  }
  if (name.empty() || !next.is('{')) co_return reader.give_up();
  reader.begin_call(std::move(name), std::move(id));
  co_await reader.object_arguments();
  reader.remember();
  co_await reader.skip_space();
  if (fenced) {
    co_await reader.literal("```");
    co_await reader.skip_space();
  }
  next = co_await reader.peek();
  if (!next.is(Marker::kCallEnd)) co_return reader.end_of_calls();
  reader.take();
  reader.forget();
  co_return true;
}

}  // namespace

ParseTask read_sectioned_calls(AnswerReader& reader) {
  reader.remember();
  Symbol next = co_await reader.peek();
  if (next.is(Marker::kCallsBegin)) {
    reader.take();
    co_await reader.skip_space();
    next = co_await reader.peek();
    if (!next.is(Marker::kCallBegin)) co_return reader.give_up();
  }
  while (next.is(Marker::kCallBegin)) {
    const bool good = co_await read_sectioned_call(reader);
    if (!good) co_return false;
    reader.remember();
    co_await reader.skip_space();
    next = co_await reader.peek();
  }
  if (!next.is(Marker::kCallsEnd)) co_return reader.end_of_calls();
  reader.take();
  reader.forget();
  co_return true;
}

}  // namespace warmpath
