#include "text/answer/answer_parser.h"

#include <utility>

#include "text/answer/answer_reader.h"

namespace warmpath {

namespace {

bool begins_call(const AnswerReader& reader, Marker marker) {
  if (marker == Marker::kCallBegin || marker == Marker::kCallsBegin) return true;
  // Qwen3-Coder now and then forgets the outer marker.
  return marker == Marker::kFunctionBegin && reader.at_block_start();
}

ParseTask read_calls(AnswerReader& reader) {
  switch (reader.markers().format().calls) {
    case CallFormat::kLlama3:
      co_return co_await read_llama3_calls(reader);
    case CallFormat::kMistral:
      co_return co_await read_mistral_calls(reader);
    case CallFormat::kDeepSeek:
    case CallFormat::kKimi:
      co_return co_await read_sectioned_calls(reader);
    default:
      co_return co_await read_tagged_calls(reader);
  }
}

// Up to the marker that ends it. A token that begins a call ends it too: models forget to.
ParseTask read_reasoning(AnswerReader& reader, bool calls) {
  reader.begin_reasoning();
  for (;;) {
    const Symbol next = co_await reader.peek();
    if (next.is_end()) break;
    if (next.is_byte()) {
      reader.think(reader.run_of_text());
      reader.take_run();
      continue;
    }
    if (next.is(Marker::kThinkEnd)) {
      reader.take();
      break;
    }
    if (calls && (next.is(Marker::kCallBegin) || next.is(Marker::kCallsBegin)) &&
        reader.markers().is_token(next.marker)) {
      break;
    }
    reader.think(reader.spelling(next));
    reader.take();
  }
  reader.end_reasoning();
  co_return true;
}

ParseTask read_answer(AnswerReader& reader, bool in_reasoning, bool calls) {
  if (in_reasoning) co_await read_reasoning(reader, calls);
  const bool bare_calls = calls && reader.markers().format().calls == CallFormat::kLlama3;
  for (;;) {
    const Symbol next = co_await reader.peek();
    if (next.is_end()) break;
    if (bare_calls && reader.at_block_start() && next.is('{')) {
      co_await read_llama3_calls(reader);
    } else if (bare_calls && reader.at_block_start() && next.is_space()) {
      reader.say(reader.spelling(next));
      reader.take();
    } else if (next.is_byte()) {
      reader.say(reader.run_of_text());
      reader.take_run();
    } else if (next.is(Marker::kThinkBegin) &&
               (reader.at_block_start() || reader.markers().is_token(Marker::kThinkBegin))) {
      reader.take();
      co_await read_reasoning(reader, calls);
    } else if (calls && begins_call(reader, next.marker)) {
      co_await read_calls(reader);
    } else {
      // A marker out of place is text.
      reader.say(reader.spelling(next));
      reader.take();
    }
  }
  reader.finish_text();
  co_return true;
}

}  // namespace

class AnswerParser::Impl {
 public:
  Impl(std::shared_ptr<const AnswerMarkers> markers, Options options)
      : markers_(std::move(markers)),
        scanner_(*markers_),
        reader_(*markers_, options.tools),
        answer_(read_whole(options)) {
    answer_.start();
    reader_.run();
  }

  void push_text(std::string_view text) {
    scanner_.push(
        text, [this](std::string_view plain) { reader_.feed(plain); }, [this](Marker marker) { reader_.feed(marker); });
  }
  void push_marker(Marker marker) {
    flush();
    reader_.feed(marker);
  }
  void finish() {
    flush();
    reader_.feed_end();
  }
  AnswerReader& reader() { return reader_; }

 private:
  ParseTask read_whole(const Options& options) {
    const bool calls = options.tools.is_list() && !options.tools.as_list().items.empty() &&
                       markers_->format().calls != CallFormat::kNone;
    if (markers_->format().calls == CallFormat::kHarmony) return read_harmony(reader_, calls);
    return read_answer(reader_, options.in_reasoning, calls);
  }
  void flush() {
    scanner_.finish([this](std::string_view plain) { reader_.feed(plain); },
                    [this](Marker marker) { reader_.feed(marker); });
  }

  const std::shared_ptr<const AnswerMarkers> markers_;
  MarkerScanner scanner_;
  AnswerReader reader_;
  ParseTask answer_;  // destroyed first: it refers to the reader
};

AnswerParser::AnswerParser(std::shared_ptr<const AnswerMarkers> markers, Options options)
    : impl_(std::make_unique<Impl>(std::move(markers), std::move(options))) {}
AnswerParser::~AnswerParser() = default;

void AnswerParser::push_text(std::string_view text) { impl_->push_text(text); }
void AnswerParser::push_marker(Marker marker) { impl_->push_marker(marker); }
void AnswerParser::finish() { impl_->finish(); }
bool AnswerParser::has_pieces() const { return !impl_->reader().pieces().empty(); }
std::vector<AnswerPiece> AnswerParser::take_pieces() { return std::exchange(impl_->reader().pieces(), {}); }
bool AnswerParser::in_reasoning() const { return impl_->reader().in_reasoning(); }
int64_t AnswerParser::malformed_calls() const { return impl_->reader().malformed(); }

bool prompt_opens_reasoning(const AnswerMarkers& markers, std::string_view tail) {
  const std::string_view marker = markers.spelling(Marker::kThinkBegin);
  while (!tail.empty() && (tail.back() == '\n' || tail.back() == ' ' || tail.back() == '\r')) tail.remove_suffix(1);
  return !marker.empty() && tail.ends_with(marker);
}

}  // namespace warmpath
