// What the server still has to send on one connection, in order. Small pieces that wait together leave together.
//
// Thread safety: used on the connection's I/O thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "router/http.h"

namespace warmpath {

class HttpOutput {
 public:
  void push(std::string bytes);
  // Views of the next bytes to send, at most views.size() of them; returns how many.
  size_t gather(std::span<std::string_view> views) const;
  void consume(size_t bytes);  // REQUIRES: bytes <= bytes()
  size_t bytes() const { return bytes_; }
  bool empty() const { return bytes_ == 0; }
  void clear();

 private:
  std::deque<std::string> pieces_;
  size_t offset_ = 0;  // sent bytes of pieces_.front()
  size_t bytes_ = 0;
};

struct HttpResponseHead {
  int status = 200;
  std::string_view date;        // a whole field line, CR LF included
  std::string_view connection;  // the field's value; empty = the field is left out
  enum class Framing { kLength, kChunked, kUntilClose, kNone } framing = Framing::kLength;
  size_t content_length = 0;
};

// The head's bytes up to the empty line: status line, the server's fields, then `headers`. Control characters in
// values become spaces, so that no echoed text can start a second header.
std::string format_http_head(const HttpResponseHead& head, const HttpHeaders& headers, size_t room_behind);

// One chunk of a chunked body. REQUIRES: !bytes.empty(), for an empty chunk is the end.
std::string format_http_chunk(std::string_view bytes);
inline constexpr std::string_view kLastHttpChunk = "0\r\n\r\n";

}  // namespace warmpath
