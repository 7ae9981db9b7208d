// The header of one HTTP/1.x request: where it ends, what it says, and what about it is refused.
//
// Strict where leniency lets two programs read one message differently: bare LF, line folding, space before a colon,
// two lengths, a length beside an encoding are all refused (RFC 9112 §§2.2, 3.2, 5.1, 5.2, 6.1, 6.3).
// Thread safety: values. Lines and fields are parsed by Boost.Beast; no Beast type leaves the .cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "router/http.h"
#include "router/http_limits.h"
#include "router/http_refusal.h"

namespace warmpath {

// Of method and field names (RFC 9110 §5.6.2, `tchar`).
bool is_http_token_char(unsigned char c);

// Finds the end of a header that arrives in pieces, and refuses as soon as no continuation could be right, so that
// garbage is answered at once rather than at a timeout.
class HttpHeadScanner {
 public:
  enum class Outcome { kNeedMore, kComplete, kRefused };

  explicit HttpHeadScanner(const HttpLimits& limits) : limits_(&limits) {}

  // `bytes` starts at the request line and is what the last call saw plus what came since.
  Outcome scan(std::string_view bytes);
  size_t head_bytes() const { return scanned_; }    // REQUIRES: the last scan() was kComplete
  HttpRefusal refusal() const { return refusal_; }  // REQUIRES: the last scan() was kRefused
  void reset() { *this = HttpHeadScanner(*limits_); }

 private:
  Outcome refuse(HttpRefusal refusal);
  Outcome take_line(std::string_view line);

  const HttpLimits* limits_;
  size_t scanned_ = 0;   // bytes up to the last whole line
  size_t searched_ = 0;  // no LF in [scanned_, searched_)
  size_t lines_ = 0;
  HttpRefusal refusal_ = HttpRefusal::kNone;
};

struct HttpHead {
  HttpRequest request;  // views into the parsed bytes; body and peer are not set
  bool http11 = true;
  bool keep_alive = true;
  bool chunked = false;
  bool expects_continue = false;
  uint64_t content_length = 0;
};

// `bytes` is a whole header with its empty line, and must outlive `head`.
HttpRefusal parse_http_head(std::string_view bytes, const HttpLimits& limits, HttpHead& head);

}  // namespace warmpath
