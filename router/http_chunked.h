// Takes the chunks of a chunked request body apart (RFC 9112 §7.1) and appends them to an HttpBody. Chunk extensions
// and trailers are checked and dropped.
//
// Thread safety: a value. The grammar is Boost.Beast's; no Beast type leaves the .cc.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "router/http_body.h"
#include "router/http_limits.h"
#include "router/http_refusal.h"

namespace warmpath {

class HttpChunkDecoder {
 public:
  HttpChunkDecoder(const HttpLimits& limits, HttpBody& body);
  ~HttpChunkDecoder();

  // Takes what it can of `bytes` and returns how much; the rest must come again, with more behind it.
  size_t feed(std::string_view bytes);
  bool done() const;
  HttpRefusal refusal() const;  // kNone while all is well

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace warmpath
