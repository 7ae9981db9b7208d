#include "text/answer/answer_reader.h"

#include "text/answer/json_scanner.h"
#include "text/json_value.h"

namespace warmpath {

namespace {

constexpr std::string_view kSpaces = " \n\r\t";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

}  // namespace

void AnswerReader::feed(std::string_view text) {
  if (text.empty()) return;
  text_ = text;
  run();
}

void AnswerReader::feed(Marker marker) {
  has_marker_ = true;
  marker_ = marker;
  run();
}

void AnswerReader::feed_end() {
  ended_ = true;
  run();
}

void AnswerReader::run() {
  schedule_.waits_for_input = false;
  while (schedule_.current && !schedule_.waits_for_input) schedule_.current.resume();
}

Symbol AnswerReader::symbol() const {
  if (!text_.empty()) return {.kind = Symbol::Kind::kByte, .byte = text_.front()};
  if (has_marker_) return {.kind = Symbol::Kind::kMarker, .marker = marker_};
  return {};
}

void AnswerReader::take() {
  if (remembering_) remembered_ += spelling(symbol());
  if (!text_.empty()) {
    text_.remove_prefix(1);
  } else {
    has_marker_ = false;
  }
}

void AnswerReader::take_run() {
  if (remembering_) remembered_ += text_;
  text_ = {};
}

std::string_view AnswerReader::spelling(const Symbol& symbol) const {
  if (symbol.kind == Symbol::Kind::kByte) return text_.substr(0, 1);
  if (symbol.kind == Symbol::Kind::kMarker) return markers_.spelling(symbol.marker);
  return {};
}

void AnswerReader::remember() {
  remembering_ = true;
  remembered_.clear();
}

bool AnswerReader::give_up() {
  ++malformed_;
  end_of_calls();
  return false;
}

bool AnswerReader::end_of_calls() {
  remembering_ = false;
  say(std::exchange(remembered_, {}));
  return true;
}

void AnswerReader::forget() {
  remembering_ = false;
  remembered_.clear();
}

void AnswerReader::add(AnswerPiece::Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (!pieces_.empty() && pieces_.back().kind == kind) {
    pieces_.back().text += text;
  } else {
    pieces_.push_back({kind, std::string(text), {}});
  }
}

void AnswerReader::say(std::string_view text) {
  if (skipping_space_) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
    if (text.empty()) return;
    skipping_space_ = false;
  }
  const size_t last = text.find_last_not_of(kSpaces);
  if (last == std::string_view::npos) {
    space_ += text;
    return;
  }
  add(AnswerPiece::Kind::kText, std::exchange(space_, {}));
  add(AnswerPiece::Kind::kText, text.substr(0, last + 1));
  space_ = text.substr(last + 1);
  at_block_start_ = false;
  after_call_ = false;
}

void AnswerReader::finish_text() {
  if (!after_call_) add(AnswerPiece::Kind::kText, space_);
  space_.clear();
}

void AnswerReader::begin_reasoning() {
  if (!at_block_start_) add(AnswerPiece::Kind::kText, space_);
  space_.clear();
  in_reasoning_ = true;
  thinking_begun_ = false;
  thought_space_.clear();
}

void AnswerReader::think(std::string_view text) {
  if (!thinking_begun_) text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  const size_t last = text.find_last_not_of(kSpaces);
  if (last == std::string_view::npos) {
    thought_space_ += text;
    return;
  }
  thinking_begun_ = true;
  add(AnswerPiece::Kind::kReasoning, std::exchange(thought_space_, {}));
  add(AnswerPiece::Kind::kReasoning, text.substr(0, last + 1));
  thought_space_ = text.substr(last + 1);
}

void AnswerReader::end_reasoning() {
  in_reasoning_ = false;
  thought_space_.clear();
  skipping_space_ = true;
  at_block_start_ = true;
}

void AnswerReader::begin_call(std::string name, std::string id) {
  forget();
  space_.clear();
  skipping_space_ = false;
  pieces_.push_back({AnswerPiece::Kind::kCall, std::move(name), std::move(id)});
  in_call_ = true;
}

void AnswerReader::argue(std::string_view json) { add(AnswerPiece::Kind::kArguments, json); }

void AnswerReader::end_call() {
  pieces_.push_back({AnswerPiece::Kind::kCallEnd, {}, {}});
  in_call_ = false;
  after_call_ = true;
  at_block_start_ = true;
}

ParseTask AnswerReader::skip_space() {
  for (;;) {
    const Symbol next = co_await peek();
    if (!next.is_space()) co_return true;
    take();
  }
}

ParseTask AnswerReader::literal(std::string_view wanted) {
  for (const char byte : wanted) {
    const Symbol next = co_await peek();
    if (!next.is(byte)) co_return false;
    take();
  }
  co_return true;
}

ParseTask AnswerReader::word(std::string_view stops, std::string& out) {
  out.clear();
  for (;;) {
    const Symbol next = co_await peek();
    if (!next.is_byte() || stops.find(next.byte) != std::string_view::npos) break;
    if (out.size() == kMaxNameBytes) co_return false;
    out += next.byte;
    take();
  }
  out = std::string(trimmed(out));
  co_return true;
}

ParseTask AnswerReader::json_value(std::function<void(std::string_view)>& sink) {
  JsonScanner scanner;
  std::string accepted;
  while (!scanner.closed()) {
    const Symbol next = co_await peek();
    accepted.clear();
    if (next.is_byte()) {
      if (!scanner.push(next.byte, accepted)) co_return scanner.complete();
    } else if (next.kind == Symbol::Kind::kMarker && scanner.in_string()) {
      // Inside a string a marker is its own characters.
      for (const char byte : markers_.spelling(next.marker)) {
        if (!scanner.push(byte, accepted)) co_return false;
      }
    } else {
      co_return scanner.complete();
    }
    take();
    sink(accepted);
  }
  co_return true;
}

ParseTask AnswerReader::json_string(std::string& out) {
  std::string raw;
  std::function<void(std::string_view)> collect = [&raw](std::string_view json) { raw += json; };
  const bool whole = co_await json_value(collect);
  if (!whole || raw.front() != '"') co_return false;
  const Result<Value> value = value_from_json(raw);
  if (!value.ok()) co_return false;
  out = value->string_or_empty();
  co_return true;
}

ParseTask AnswerReader::object_arguments() {
  std::function<void(std::string_view)> hand_on = [this](std::string_view json) { argue(json); };
  const bool whole = co_await json_value(hand_on);
  if (whole) {
    end_call();
    co_return true;
  }
  co_return co_await rest_of_broken_call();
}

ParseTask AnswerReader::rest_of_broken_call() {
  ++malformed_;
  for (;;) {
    const Symbol next = co_await peek();
    if (next.is_end() || next.is(Marker::kCallEnd) || next.is(Marker::kCallBegin)) break;
    argue(spelling(next));
    take();
  }
  end_call();
  co_return true;
}

ParseTask AnswerReader::envelope(bool only_known) {
  take();  // the brace
  std::string name;
  std::string id;
  std::string arguments;  // that came before the name, or as a string
  std::function<void(std::string_view)> collect = [&arguments](std::string_view json) { arguments += json; };
  std::function<void(std::string_view)> hand_on = [this](std::string_view json) { argue(json); };
  std::function<void(std::string_view)> ignore = [](std::string_view) {};
  bool has_arguments = false;
  bool arguments_whole = false;
  bool good = true;
  for (bool first = true; good; first = false) {
    co_await skip_space();
    Symbol next = co_await peek();
    if (next.is('}')) {
      take();
      break;
    }
    if (!first) {
      good = next.is(',');
      if (!good) break;
      take();
      co_await skip_space();
    }
    std::string key;
    good = co_await json_string(key);
    if (!good) break;
    co_await skip_space();
    good = co_await literal(":");
    if (!good) break;
    co_await skip_space();
    next = co_await peek();
    if (key == "name" && name.empty()) {
      good = co_await json_string(name);
      good = good && !name.empty() && name.size() <= kMaxNameBytes && (!only_known || tools_.knows(name));
    } else if ((key == "arguments" || key == "parameters") && !has_arguments) {
      has_arguments = true;
      if (next.is('{') && !name.empty()) {
        begin_call(name, id);
        good = co_await json_value(hand_on);
      } else if (next.is('{')) {
        good = co_await json_value(collect);
      } else if (next.is('"')) {
        good = co_await json_string(arguments);
        good = good && trimmed(arguments).starts_with('{') && is_json(trimmed(arguments));
      } else {
        good = co_await literal("null");
      }
      arguments_whole = good;
    } else if (key == "id" && next.is('"')) {
      good = co_await json_string(id);
    } else if (only_known && key != "type" && key != "id") {
      good = false;
    } else {
      good = co_await json_value(ignore);
    }
  }
  if (!good && in_call_ && !arguments_whole) co_return co_await rest_of_broken_call();
  if (!good && in_call_) {
    ++malformed_;  // the call is whole; what is wrong comes after it, as text
    good = true;
  }
  if (!good || name.empty()) co_return false;
  if (!in_call_) {
    begin_call(name, id);
    argue(trimmed(arguments).empty() ? "{}" : trimmed(arguments));
  }
  end_call();
  co_return true;
}

}  // namespace warmpath
