#include "router/http_refusal.h"

namespace warmpath {
namespace {

// In the enum's order.
constexpr HttpRefusalRow kRows[kHttpRefusals] = {
    {200, "none", ""},
    {400, "bad_request_line", "The request line is not `METHOD TARGET HTTP/1.1`. This port speaks plain HTTP/1.1."},
    {505, "bad_http_version", "Only HTTP/1.1 and HTTP/1.0 are spoken here."},
    {400, "bad_line_ending", "Lines of the request's header must end in CR LF."},
    {400, "bad_header",
     "A header field is malformed: `name: value`, no space before the colon, no line folding, no control characters."},
    {400, "bad_target", "The request target is malformed."},
    {400, "bad_host", "An HTTP/1.1 request needs exactly one valid Host header."},
    {414, "target_too_long", "The request target is too long."},
    {431, "header_too_large", "The request's header is too large."},
    {431, "too_many_headers", "The request has too many header fields."},
    {400, "bad_content_length", "Content-Length must be one decimal number."},
    {400, "duplicate_content_length", "Content-Length may be given only once."},
    {400, "length_and_encoding", "Content-Length and Transfer-Encoding exclude each other."},
    {501, "unsupported_transfer_encoding", "The only supported Transfer-Encoding is `chunked`."},
    {400, "bad_chunk", "The chunked body is malformed."},
    {413, "body_too_large", "The request's body is too large for this server."},
    {415, "unsupported_content_encoding", "Compressed request bodies are not supported; send the body as it is."},
    {417, "unsupported_expectation", "The only supported expectation is `100-continue`."},
    {426, "upgrade_refused", "WebSocket is not spoken here; use HTTP/1.1 and server-sent events."},
    {501, "method_not_implemented", "This method is not implemented."},
    {408, "header_timeout", "The request's header did not arrive in time."},
    {408, "body_timeout", "The request's body did not arrive in time."},
    {503, "bodies_in_flight", "The server holds as many request bytes as it may; try again shortly."},
    {503, "too_many_connections", "The server has as many connections as it may; try again shortly."},
    {503, "stopping", "The server is shutting down; try again shortly."},
    {500, "no_answer", "The request was dropped inside the server."},
};

}  // namespace

const HttpRefusalRow& http_refusal_row(HttpRefusal refusal) { return kRows[static_cast<size_t>(refusal)]; }

}  // namespace warmpath
