// Fuzz target: any bytes as a request's header and as a chunked body. Whole input and input in pieces must agree, and
// an accepted header must have the properties that the rest of the gateway relies on.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "router/http_body.h"
#include "router/http_chunked.h"
#include "router/http_head.h"

namespace warmpath {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

using Outcome = HttpHeadScanner::Outcome;

const HttpLimits kLimits = {
    .max_body_bytes = 1 << 20, .max_target_bytes = 200, .max_head_bytes = 2000, .max_headers = 8};

void check_head(std::string_view bytes) {
  HttpHeadScanner whole(kLimits);
  const Outcome outcome = bytes.empty() ? Outcome::kNeedMore : whole.scan(bytes);
  HttpHeadScanner pieces(kLimits);
  Outcome last = Outcome::kNeedMore;
  for (size_t n = 1; n <= bytes.size() && last == Outcome::kNeedMore; ++n) last = pieces.scan(bytes.substr(0, n));
  // Which limit is hit first may depend on the pieces; whether one is hit may not.
  require(last == outcome);
  if (outcome != Outcome::kComplete) return;
  require(pieces.head_bytes() == whole.head_bytes() && whole.head_bytes() <= bytes.size());
  HttpHead head;
  if (parse_http_head(bytes.substr(0, whole.head_bytes()), kLimits, head) != HttpRefusal::kNone) return;
  const HttpRequest& request = head.request;
  require(!request.method.empty() && !request.path.empty() && (request.path[0] == '/' || request.path == "*"));
  require(request.headers.size() <= kLimits.max_headers);
  int framings = 0;
  for (const auto& [name, value] : request.headers) {
    require(!name.empty() && name.find_first_of(" \t:\r\n") == name.npos);
    require(value.find_first_of(std::string_view("\r\n\0", 3)) == value.npos);
    framings += http_iequals(name, "content-length") || http_iequals(name, "transfer-encoding");
  }
  require(framings <= 1 && !(head.chunked && head.content_length > 0));
}

std::string decode(std::string_view bytes, size_t piece, HttpRefusal& refusal, bool& done) {
  HttpBody body(std::make_shared<HttpBodyBudget>(2 << 20));
  HttpChunkDecoder decoder(kLimits, body);
  std::string waiting;
  for (size_t at = 0; at < bytes.size() && !decoder.done() && decoder.refusal() == HttpRefusal::kNone; at += piece) {
    waiting += bytes.substr(at, piece);
    waiting.erase(0, decoder.feed(waiting));
  }
  refusal = decoder.refusal();
  done = decoder.done();
  return std::string(body.seal());
}

void check_chunks(std::string_view bytes) {
  HttpRefusal refusal, refusal_in_pieces;
  bool done, done_in_pieces;
  const std::string whole = decode(bytes, bytes.size() + 1, refusal, done);
  const std::string pieces = decode(bytes, 1, refusal_in_pieces, done_in_pieces);
  require(refusal == refusal_in_pieces && done == done_in_pieces);
  if (refusal == HttpRefusal::kNone) require(whole == pieces);
  require(whole.size() <= kLimits.max_body_bytes);
}

}  // namespace
}  // namespace warmpath

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  warmpath::check_head(bytes);
  warmpath::check_chunks(bytes);
  return 0;
}
