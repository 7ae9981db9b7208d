#include "router/http_chunked.h"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

namespace warmpath {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

// Chunk header with extensions, or the whole trailer section.
constexpr size_t kMaxUnparsed = 16 << 10;

}  // namespace

class HttpChunkDecoder::Parser final : public http::basic_parser<true> {
 public:
  Parser(const HttpLimits& limits, HttpBody& body) : limits_(limits), body_(body) {
    body_limit(boost::none);
    eager(true);
    // Beast decodes chunks only behind a header. The request's own has been judged already (router/http_head.h).
    static constexpr char kHead[] = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
    beast::error_code ec;
    put(boost::asio::buffer(kHead, sizeof kHead - 1), ec);
  }

  size_t feed(std::string_view bytes) {
    beast::error_code ec;
    size_t taken = 0;
    while (!is_done() && refusal_ == HttpRefusal::kNone && taken < bytes.size()) {
      size_t n = put(boost::asio::buffer(bytes.data() + taken, bytes.size() - taken), ec);
      taken += n;
      if (ec == http::error::need_more) {
        if (bytes.size() - taken > kMaxUnparsed || is_whole_size_line(bytes.substr(taken))) {
          refusal_ = HttpRefusal::kBadChunk;
        }
        break;
      }
      if (ec && refusal_ == HttpRefusal::kNone) refusal_ = HttpRefusal::kBadChunk;
    }
    return taken;
  }

  HttpRefusal refusal() const { return refusal_; }

 private:
  // Beast looks for the end of a quoted extension value beyond its line, and would wait for it in the chunk's data.
  static bool is_whole_size_line(std::string_view rest) {
    if (rest.substr(0, 2) == "\r\n") rest.remove_prefix(2);  // behind the last chunk's data
    return !rest.empty() && rest[0] != '0' && rest.find("\r\n") != rest.npos;
  }

  // A size over the limit is refused before its bytes come.
  void on_chunk_header_impl(std::uint64_t size, beast::string_view, beast::error_code& ec) override {
    if (size <= limits_.max_body_bytes && body_.size() + size <= limits_.max_body_bytes) return;
    refusal_ = HttpRefusal::kBodyTooLarge;
    ec = http::error::body_limit;
  }

  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view bytes, beast::error_code& ec) override {
    if (!body_.append({bytes.data(), bytes.size()}, bytes.size())) {
      refusal_ = HttpRefusal::kBodiesInFlight;
      ec = http::error::body_limit;
    }
    return bytes.size();
  }

  void on_request_impl(http::verb, beast::string_view, beast::string_view, int, beast::error_code&) override {}
  void on_response_impl(int, beast::string_view, int, beast::error_code&) override {}
  void on_field_impl(http::field, beast::string_view, beast::string_view, beast::error_code&) override {}
  void on_header_impl(beast::error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, beast::error_code&) override {}
  std::size_t on_body_impl(beast::string_view body, beast::error_code&) override { return body.size(); }
  void on_finish_impl(beast::error_code&) override {}

  const HttpLimits& limits_;
  HttpBody& body_;
  HttpRefusal refusal_ = HttpRefusal::kNone;
};

HttpChunkDecoder::HttpChunkDecoder(const HttpLimits& limits, HttpBody& body)
    : parser_(std::make_unique<Parser>(limits, body)) {}
HttpChunkDecoder::~HttpChunkDecoder() = default;

size_t HttpChunkDecoder::feed(std::string_view bytes) { return parser_->feed(bytes); }
bool HttpChunkDecoder::done() const { return parser_->is_done(); }
HttpRefusal HttpChunkDecoder::refusal() const { return parser_->refusal(); }

}  // namespace warmpath
