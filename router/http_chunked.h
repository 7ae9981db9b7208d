// Takes the chunks of a chunked request body apart (RFC 9112 §7.1) and appends them to an HttpBody. Chunk extensions
// and trailers are checked and dropped.
//
// (Not Boost.Beast's parser: in 1.81 it asserts when the last chunk arrives byte by byte, and it looks for the end of a
// quoted extension value in the chunk's data.)
// Thread safety: a value. Invariant: how the input is cut into pieces makes no difference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "router/http_body.h"
#include "router/http_limits.h"
#include "router/http_refusal.h"

namespace warmpath {

class HttpChunkDecoder {
 public:
  HttpChunkDecoder(const HttpLimits& limits, HttpBody& body) : limits_(limits), body_(body) {}

  // Takes all of `bytes`, unless the body ends before or is refused; returns how much.
  size_t feed(std::string_view bytes);
  bool done() const { return state_ == State::kDone; }
  HttpRefusal refusal() const { return refusal_; }  // kNone while all is well

 private:
  enum class State { kSizeLine, kData, kDataEnd, kTrailer, kDone };

  size_t take_data(std::string_view bytes);
  size_t take_line(std::string_view bytes);
  void end_line(std::string_view line);
  void begin_chunk(std::string_view size_line);

  const HttpLimits& limits_;
  HttpBody& body_;
  State state_ = State::kSizeLine;
  HttpRefusal refusal_ = HttpRefusal::kNone;
  std::string line_;  // what came of the current line
  size_t trailer_bytes_ = 0;
  uint64_t chunk_left_ = 0;  // bytes of data to come
};

}  // namespace warmpath
