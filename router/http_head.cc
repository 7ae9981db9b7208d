#include "router/http_head.h"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace warmpath {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

std::string_view std_view(beast::string_view text) { return {text.data(), text.size()}; }

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Printable ASCII, no fragment, whole percent-escapes, none of them a NUL.
bool is_valid_target(std::string_view target) {
  for (size_t i = 0; i < target.size(); ++i) {
    unsigned char c = static_cast<unsigned char>(target[i]);
    if (c <= 0x20 || c >= 0x7f || c == '#') return false;
    if (c != '%') continue;
    if (i + 2 >= target.size() || !is_hex(target[i + 1]) || !is_hex(target[i + 2])) return false;
    if (target[i + 1] == '0' && target[i + 2] == '0') return false;
    i += 2;
  }
  return true;
}

// uri-host [":" port] (RFC 9110 §7.2); an empty value is allowed there.
bool is_valid_host(std::string_view host) {
  for (char c : host) {
    bool ok = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (c != 0 && std::strchr("-._~!$&'()*+;=:%[]", c) != nullptr);
    if (!ok) return false;
  }
  return true;
}

bool starts_with_scheme(std::string_view target, std::string_view scheme) {
  return target.size() >= scheme.size() && http_iequals(target.substr(0, scheme.size()), scheme);
}

// Splits the target of any form (RFC 9112 §3.2) into path and query.
bool split_target(HttpRequest& request) {
  std::string_view target = request.target;
  if (!is_valid_target(target)) return false;
  if (target == "*") {
    if (request.method != "OPTIONS") return false;
  } else if (target[0] != '/') {
    size_t scheme = starts_with_scheme(target, "http://") ? 7 : starts_with_scheme(target, "https://") ? 8 : 0;
    if (scheme == 0) return false;
    size_t end = target.find_first_of("/?", scheme);
    std::string_view authority = target.substr(scheme, end == target.npos ? target.npos : end - scheme);
    if (authority.empty() || !is_valid_host(authority)) return false;
    target = end == target.npos ? std::string_view("/") : target.substr(end);
  }
  size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (request.path.empty()) request.path = "/";
  request.query = question == target.npos ? std::string_view() : target.substr(question + 1);
  return true;
}

bool has_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    size_t comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
    while (!item.empty() && (item.back() == ' ' || item.back() == '\t')) item.remove_suffix(1);
    if (http_iequals(item, token)) return true;
    if (comma == list.npos) return false;
    list.remove_prefix(comma + 1);
  }
  return false;
}

// Collects the fields and the first thing to refuse. Beast checks the grammar, this class the meaning.
class HeadParser final : public http::basic_parser<true> {
 public:
  explicit HeadParser(HttpHead& head) : head_(head) {
    header_limit(UINT32_MAX);  // the scanner has bounded it
    body_limit(boost::none);   // the connection bounds it
  }

  HttpRefusal finish() {
    HttpRequest& request = head_.request;
    if (request.method == "CONNECT" || request.method == "TRACE") return HttpRefusal::kMethodNotImplemented;
    if (!split_target(request)) return HttpRefusal::kBadTarget;
    if (hosts_ > 1 || (head_.http11 && hosts_ == 0)) return HttpRefusal::kBadHost;
    if (lengths_ > 0 && encodings_ > 0) return HttpRefusal::kLengthAndEncoding;
    if (lengths_ > 1) return HttpRefusal::kDuplicateContentLength;
    // Framing that HTTP/1.0 does not know: such a message was damaged on its way (RFC 9112 §6.1).
    if (encodings_ > 0 && !head_.http11) return HttpRefusal::kLengthAndEncoding;
    if (refusal_ != HttpRefusal::kNone) return refusal_;
    if (encodings_ > 1) return HttpRefusal::kUnsupportedTransferEncoding;
    head_.keep_alive = head_.http11 && keep_alive();
    head_.chunked = encodings_ == 1;
    head_.expects_continue = head_.expects_continue && head_.http11;
    if (auto length = content_length()) head_.content_length = *length;
    return HttpRefusal::kNone;
  }

  // For errors that Beast reports on fields whose count says more than Beast's code.
  HttpRefusal refusal_for(const beast::error_code& ec) const {
    if (ec == http::error::bad_version) return HttpRefusal::kBadVersion;
    if (ec == http::error::bad_method) return HttpRefusal::kBadRequestLine;
    if (ec == http::error::bad_target) return HttpRefusal::kBadTarget;
    if (ec == http::error::bad_line_ending) return HttpRefusal::kBadLineEnding;
    if (ec == http::error::multiple_content_length) return HttpRefusal::kDuplicateContentLength;
    if (ec == http::error::bad_content_length) {
      return encodings_ > 0 ? HttpRefusal::kLengthAndEncoding : HttpRefusal::kBadContentLength;
    }
    if (ec == http::error::bad_transfer_encoding) {
      return lengths_ > 0 ? HttpRefusal::kLengthAndEncoding : HttpRefusal::kUnsupportedTransferEncoding;
    }
    return HttpRefusal::kBadHeader;
  }

 private:
  void on_request_impl(http::verb, beast::string_view method, beast::string_view target, int version,
                       beast::error_code&) override {
    head_.request.method = std_view(method);
    head_.request.target = std_view(target);
    head_.http11 = version == 11;
  }

  void on_field_impl(http::field field, beast::string_view name, beast::string_view beast_value,
                     beast::error_code&) override {
    std::string_view value = std_view(beast_value);
    head_.request.headers.emplace_back(std_view(name), value);
    switch (field) {
      case http::field::host:
        ++hosts_;
        if (!is_valid_host(value)) note(HttpRefusal::kBadHost);
        break;
      case http::field::content_length:
        ++lengths_;
        // Beast also takes `5, 5`; one number is all we take.
        if (value.find_first_not_of("0123456789") != value.npos) note(HttpRefusal::kBadContentLength);
        break;
      case http::field::transfer_encoding:
        ++encodings_;
        if (!http_iequals(value, "chunked")) note(HttpRefusal::kUnsupportedTransferEncoding);
        break;
      case http::field::content_encoding:
        if (!value.empty() && !http_iequals(value, "identity")) note(HttpRefusal::kUnsupportedContentEncoding);
        break;
      case http::field::expect:
        if (http_iequals(value, "100-continue")) {
          head_.expects_continue = true;
        } else {
          note(HttpRefusal::kUnsupportedExpectation);
        }
        break;
      case http::field::upgrade:
        if (has_token(value, "websocket")) note(HttpRefusal::kUpgradeRefused);
        break;
      default:
        break;
    }
  }

  void note(HttpRefusal refusal) {
    if (refusal_ == HttpRefusal::kNone) refusal_ = refusal;
  }

  void on_response_impl(int, beast::string_view, int, beast::error_code&) override {}
  void on_header_impl(beast::error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, beast::error_code&) override {}
  std::size_t on_body_impl(beast::string_view body, beast::error_code&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, beast::error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view body, beast::error_code&) override {
    return body.size();
  }
  void on_finish_impl(beast::error_code&) override {}

  HttpHead& head_;
  int hosts_ = 0, lengths_ = 0, encodings_ = 0;
  HttpRefusal refusal_ = HttpRefusal::kNone;
};

}  // namespace

bool is_http_token_char(unsigned char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c != 0 && std::strchr("!#$%&'*+-.^_`|~", c) != nullptr);
}

HttpHeadScanner::Outcome HttpHeadScanner::refuse(HttpRefusal refusal) {
  refusal_ = refusal;
  return Outcome::kRefused;
}

HttpHeadScanner::Outcome HttpHeadScanner::take_line(std::string_view line) {
  if (lines_++ > 0) {
    if (lines_ - 1 > limits_->max_headers) return refuse(HttpRefusal::kTooManyHeaders);
    if (line.front() == ' ' || line.front() == '\t') return refuse(HttpRefusal::kBadHeader);  // line folding
    return Outcome::kNeedMore;
  }
  size_t space = line.rfind(' ');
  if (space == line.npos) return refuse(HttpRefusal::kBadRequestLine);
  std::string_view version = line.substr(space + 1);
  if (version == "HTTP/1.1" || version == "HTTP/1.0") return Outcome::kNeedMore;
  return refuse(version.substr(0, 5) == "HTTP/" ? HttpRefusal::kBadVersion : HttpRefusal::kBadRequestLine);
}

HttpHeadScanner::Outcome HttpHeadScanner::scan(std::string_view bytes) {
  if (lines_ == 0 && !bytes.empty() && !is_http_token_char(static_cast<unsigned char>(bytes[0]))) {
    return refuse(HttpRefusal::kBadRequestLine);
  }
  // Enough for a long method and the version around the longest target.
  const size_t max_line = limits_->max_target_bytes + 64;
  for (;;) {
    const void* found = std::memchr(bytes.data() + searched_, '\n', bytes.size() - searched_);
    if (found == nullptr) {
      searched_ = bytes.size();
      if (lines_ == 0 && bytes.size() > max_line + 1) return refuse(HttpRefusal::kTargetTooLong);  // 1: the CR
      if (bytes.size() > limits_->max_head_bytes) return refuse(HttpRefusal::kHeadTooLarge);
      return Outcome::kNeedMore;
    }
    size_t end = static_cast<size_t>(static_cast<const char*>(found) - bytes.data());
    if (end == scanned_ || bytes[end - 1] != '\r') return refuse(HttpRefusal::kBadLineEnding);
    std::string_view line = bytes.substr(scanned_, end - 1 - scanned_);
    scanned_ = searched_ = end + 1;
    if (lines_ == 0 && line.size() > max_line) return refuse(HttpRefusal::kTargetTooLong);
    if (scanned_ > limits_->max_head_bytes) return refuse(HttpRefusal::kHeadTooLarge);
    if (line.empty()) {
      return lines_ == 0 ? refuse(HttpRefusal::kBadRequestLine) : Outcome::kComplete;
    }
    if (take_line(line) == Outcome::kRefused) return Outcome::kRefused;
  }
}

HttpRefusal parse_http_head(std::string_view bytes, const HttpLimits& limits, HttpHead& head) {
  head = {};
  head.request.headers.reserve(16);
  HeadParser parser(head);
  parser.eager(false);
  beast::error_code ec;
  parser.put(boost::asio::buffer(bytes.data(), bytes.size()), ec);
  if (ec) return parser.refusal_for(ec);
  if (!parser.is_header_done()) return HttpRefusal::kBadHeader;
  if (head.request.target.size() > limits.max_target_bytes) return HttpRefusal::kTargetTooLong;
  return parser.finish();
}

}  // namespace warmpath
