// gpt-oss: an answer is a row of messages, each with a header (role, channel, recipient), <|message|>, a body and an
// end. `analysis` is reasoning; a recipient makes it a call; everything else is text.
#include "text/answer/answer_reader.h"

namespace warmpath {

namespace {

struct Header {
  std::string channel;
  std::string recipient;
};

// The word after `key` in a header, up to white space or a marker's '<'.
std::string word_after(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  header.remove_prefix(at + key.size());
  return std::string(header.substr(0, header.find_first_of(" \n\t<")));
}

// A header longer than this is none.
constexpr size_t kMaxHeaderBytes = 1024;

// Up to and with <|message|>. `text` is the header's beginning, already taken.
ParseTask read_header(AnswerReader& reader, std::string text, Header& header) {
  for (;;) {
    const Symbol next = co_await reader.peek();
    if (next.is(Marker::kMessage)) {
      reader.take();
      break;
    }
    if (next.is_end()) reader.forget();  // cut off before it said anything
    if (next.is_end() || next.is(Marker::kEnd) || text.size() > kMaxHeaderBytes) co_return false;
    text += reader.spelling(next);
    reader.take();
  }
  header.channel = word_after(text, reader.markers().spelling(Marker::kChannel));
  header.recipient = word_after(text, "to=");
  co_return true;
}

bool ends_message(const Symbol& symbol) {
  return symbol.is_end() || symbol.is(Marker::kEnd) || symbol.is(Marker::kCallEnd) || symbol.is(Marker::kStart) ||
         symbol.is(Marker::kChannel);
}

ParseTask read_body(AnswerReader& reader, bool is_reasoning) {
  if (is_reasoning) reader.begin_reasoning();
  for (;;) {
    const Symbol next = co_await reader.peek();
    if (ends_message(next)) break;
    const std::string_view text = next.is_byte() ? reader.run_of_text() : reader.spelling(next);
    if (is_reasoning) {
      reader.think(text);
    } else {
      reader.say(text);
    }
    if (next.is_byte()) {
      reader.take_run();
    } else {
      reader.take();
    }
  }
  if (is_reasoning) reader.end_reasoning();
  co_return true;
}

// The remembered header comes back as text if the body is no JSON object.
ParseTask read_call(AnswerReader& reader, std::string_view recipient) {
  constexpr std::string_view kFunctions = "functions.";
  if (recipient.starts_with(kFunctions)) recipient.remove_prefix(kFunctions.size());
  co_await reader.skip_space();
  const Symbol next = co_await reader.peek();
  if (recipient.empty() || recipient.size() > AnswerReader::kMaxNameBytes || !next.is('{')) co_return reader.give_up();
  reader.begin_call(std::string(recipient));
  co_await reader.object_arguments();
  co_return true;
}

ParseTask read_message(AnswerReader& reader, std::string begun, bool calls) {
  Header header;
  const bool good = co_await read_header(reader, std::move(begun), header);
  if (!good) co_return reader.end_of_calls();
  if (!header.recipient.empty() && calls) {
    const bool called = co_await read_call(reader, header.recipient);
    if (!called) co_await read_body(reader, false);
  } else {
    reader.forget();
    co_await read_body(reader, header.channel == "analysis");
  }
  co_return true;
}

}  // namespace

ParseTask read_harmony(AnswerReader& reader, bool calls) {
  // The prompt wrote <|start|>assistant, and the recipient may follow at once.
  reader.remember();
  const bool to_somebody = co_await reader.literal(" to=");
  if (to_somebody) {
    co_await read_message(reader, " to=", calls);
  } else {
    reader.end_of_calls();
  }
  for (;;) {
    const Symbol next = co_await reader.peek();
    if (next.is_end()) break;
    if (next.is(Marker::kEnd) || next.is(Marker::kCallEnd) || next.is(Marker::kMessage)) {
      reader.take();
    } else if (next.is(Marker::kStart) || next.is(Marker::kChannel)) {
      reader.remember();
      co_await read_message(reader, {}, calls);
    } else {
      co_await read_body(reader, false);
    }
  }
  reader.finish_text();
  co_return true;
}

}  // namespace warmpath
