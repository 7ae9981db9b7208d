#include "router/http_chunked.h"

#include <algorithm>

#include "router/http_head.h"

namespace warmpath {
namespace {

// A chunk's size line with its extensions; and all trailers together.
constexpr size_t kMaxLineBytes = 8 << 10;
constexpr size_t kMaxTrailerBytes = 16 << 10;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_text(char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); }

void skip_blanks(std::string_view& text) {
  while (!text.empty() && (text[0] == ' ' || text[0] == '\t')) text.remove_prefix(1);
}

bool skip_token(std::string_view& text) {
  size_t n = 0;
  while (n < text.size() && is_http_token_char(static_cast<unsigned char>(text[n]))) ++n;
  text.remove_prefix(n);
  return n > 0;
}

bool skip_quoted(std::string_view& text) {
  for (size_t n = 1; n < text.size(); ++n) {
    if (text[n] == '\\') {
      ++n;
    } else if (text[n] == '"') {
      text.remove_prefix(n + 1);
      return true;
    }
  }
  return false;
}

// *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )
bool are_extensions(std::string_view text) {
  if (!std::all_of(text.begin(), text.end(), is_text)) return false;
  while (!text.empty()) {
    skip_blanks(text);
    if (text.empty() || text[0] != ';') return false;
    text.remove_prefix(1);
    skip_blanks(text);
    if (!skip_token(text)) return false;
    std::string_view behind = text;
    skip_blanks(behind);
    if (behind.empty() || behind[0] != '=') continue;
    behind.remove_prefix(1);
    skip_blanks(behind);
    text = behind;
    if (!(text.empty() || text[0] != '"' ? skip_token(text) : skip_quoted(text))) return false;
  }
  return true;
}

bool is_trailer(std::string_view text) {
  return skip_token(text) && !text.empty() && text[0] == ':' && std::all_of(text.begin(), text.end(), is_text);
}

}  // namespace

size_t HttpChunkDecoder::feed(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && refusal_ == HttpRefusal::kNone && state_ != State::kDone) {
    std::string_view rest = bytes.substr(taken);
    taken += state_ == State::kData ? take_data(rest) : take_line(rest);
  }
  return taken;
}

size_t HttpChunkDecoder::take_data(std::string_view bytes) {
  size_t n = static_cast<size_t>(std::min<uint64_t>(bytes.size(), chunk_left_));
  if (!body_.append(bytes.substr(0, n), chunk_left_)) refusal_ = HttpRefusal::kBodiesInFlight;
  chunk_left_ -= n;
  if (chunk_left_ == 0) state_ = State::kDataEnd;
  return n;
}

size_t HttpChunkDecoder::take_line(std::string_view bytes) {
  const size_t lf = bytes.find('\n');
  const size_t n = lf == bytes.npos ? bytes.size() : lf + 1;
  const size_t limit = state_ == State::kDataEnd ? 2 : kMaxLineBytes;
  if (state_ == State::kTrailer) trailer_bytes_ += n;
  if (line_.size() + n > limit || trailer_bytes_ > kMaxTrailerBytes) {
    refusal_ = HttpRefusal::kBadChunk;
    return n;
  }
  line_ += bytes.substr(0, n);
  if (lf == bytes.npos) return n;
  if (line_.size() < 2 || line_[line_.size() - 2] != '\r') {
    refusal_ = HttpRefusal::kBadChunk;
    return n;
  }
  end_line(std::string_view(line_).substr(0, line_.size() - 2));
  line_.clear();
  return n;
}

void HttpChunkDecoder::end_line(std::string_view line) {
  switch (state_) {
    case State::kSizeLine:
      begin_chunk(line);
      break;
    case State::kDataEnd:
      line.empty() ? void(state_ = State::kSizeLine) : void(refusal_ = HttpRefusal::kBadChunk);
      break;
    case State::kTrailer:
      if (line.empty()) {
        state_ = State::kDone;
      } else if (!is_trailer(line)) {
        refusal_ = HttpRefusal::kBadChunk;
      }
      break;
    case State::kData:
    case State::kDone:
      break;
  }
}

void HttpChunkDecoder::begin_chunk(std::string_view line) {
  uint64_t size = 0;
  size_t digits = 0;
  for (; digits < line.size() && hex_value(line[digits]) >= 0; ++digits) {
    if (size >> 60 != 0) {
      refusal_ = HttpRefusal::kBadChunk;
      return;
    }
    size = size * 16 + static_cast<uint64_t>(hex_value(line[digits]));
  }
  if (digits == 0 || !are_extensions(line.substr(digits))) {
    refusal_ = HttpRefusal::kBadChunk;
  } else if (size > limits_.max_body_bytes || body_.size() + size > limits_.max_body_bytes) {
    refusal_ = HttpRefusal::kBodyTooLarge;  // before its bytes come
  } else {
    chunk_left_ = size;
    state_ = size > 0 ? State::kData : State::kTrailer;
  }
}

}  // namespace warmpath
