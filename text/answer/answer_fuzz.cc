// Any bytes as an answer, in any cuts, in every format: the pieces do not depend on the cuts, calls are whole, and text
// that holds no marker comes out as it went in.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/answer/answer_parser.h"
#include "text/answer/json_scanner.h"
#include "text/json_value.h"

namespace {

using warmpath::AnswerFormat;
using warmpath::AnswerParser;
using warmpath::AnswerPiece;
using warmpath::CallFormat;
using warmpath::ReasoningFormat;

struct Parsed {
  std::vector<AnswerPiece> pieces;
  int64_t malformed = 0;
};

Parsed parse(AnswerFormat format, bool in_reasoning, std::string_view answer, size_t step) {
  static const warmpath::Value kTools =
      warmpath::value_from_json(R"([{"type": "function", "function": {"name": "f", "parameters":
        {"properties": {"s": {"type": "string"}, "n": {"type": "number"}}}}}])")
          .value();
  AnswerParser parser(std::make_shared<warmpath::AnswerMarkers>(format, nullptr), {kTools, in_reasoning});
  Parsed parsed;
  const auto collect = [&] {
    for (AnswerPiece& piece : parser.take_pieces()) {
      const bool joins = piece.kind != AnswerPiece::Kind::kCall && piece.kind != AnswerPiece::Kind::kCallEnd;
      if (joins && !parsed.pieces.empty() && parsed.pieces.back().kind == piece.kind) {
        parsed.pieces.back().text += piece.text;
      } else {
        parsed.pieces.push_back(std::move(piece));
      }
    }
  };
  for (size_t at = 0; at < answer.size(); at += step) {
    parser.push_text(answer.substr(at, step));
    collect();
  }
  parser.finish();
  collect();
  parsed.malformed = parser.malformed_calls();
  return parsed;
}

void check_calls(const Parsed& parsed) {
  bool open = false;
  int64_t broken = 0;
  std::string arguments;
  for (const AnswerPiece& piece : parsed.pieces) {
    if (piece.kind == AnswerPiece::Kind::kCall) {
      WARMPATH_CHECK(!open && !piece.text.empty(), "a call begins inside another, or has no name");
      open = true;
      arguments.clear();
    } else if (piece.kind == AnswerPiece::Kind::kCallEnd) {
      WARMPATH_CHECK(open, "a call ends that was not begun");
      open = false;
      broken += warmpath::is_json(arguments) ? 0 : 1;
    } else if (piece.kind == AnswerPiece::Kind::kArguments) {
      WARMPATH_CHECK(open, "arguments outside a call");
      arguments += piece.text;
    } else {
      WARMPATH_CHECK(!open, "text inside a call");
    }
  }
  WARMPATH_CHECK(!open, "a call was left open");
  WARMPATH_CHECK(broken <= parsed.malformed, "a broken call was not counted");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const AnswerFormat format{static_cast<CallFormat>(data[0] % 7), static_cast<ReasoningFormat>(data[0] / 7 % 3)};
  const bool in_reasoning = data[1] % 2 == 1;
  const size_t step = 1 + data[1] / 2 % 13;
  const std::string_view answer(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Parsed whole = parse(format, in_reasoning, answer, answer.size());
  const Parsed cut = parse(format, in_reasoning, answer, step);
  WARMPATH_CHECK(whole.pieces == cut.pieces && whole.malformed == cut.malformed, "the cuts changed the pieces");
  check_calls(whole);
  if (answer.find_first_of("<[{ \n\r\t") == std::string_view::npos && !in_reasoning) {
    WARMPATH_CHECK(whole.pieces.size() == 1 && whole.pieces[0].text == answer, "plain text was changed");
  }
  return 0;
}
