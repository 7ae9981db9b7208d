#include "router/http_output.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

namespace warmpath {
namespace {

// Pieces up to this size are copied together: one buffer for the kernel instead of many.
constexpr size_t kMergeBytes = 16 << 10;

void append_number(std::string& out, uint64_t number, int base) {
  char digits[24];
  auto end = std::to_chars(digits, digits + sizeof digits, number, base).ptr;
  out.append(digits, end);
}

void append_value(std::string& out, std::string_view value) {
  size_t start = out.size();
  out += value;
  for (size_t i = start; i < out.size(); ++i) {
    if (static_cast<unsigned char>(out[i]) < 0x20 || out[i] == 0x7f) out[i] = ' ';
  }
}

}  // namespace

void HttpOutput::push(std::string bytes) {
  if (bytes.empty()) return;
  bytes_ += bytes.size();
  if (!pieces_.empty() && pieces_.back().size() + bytes.size() <= kMergeBytes) {
    pieces_.back() += bytes;
  } else {
    pieces_.push_back(std::move(bytes));
  }
}

size_t HttpOutput::gather(std::span<std::string_view> views) const {
  size_t n = std::min(views.size(), pieces_.size());
  for (size_t i = 0; i < n; ++i) views[i] = pieces_[i];
  if (n > 0) views[0].remove_prefix(offset_);
  return n;
}

void HttpOutput::consume(size_t bytes) {
  bytes_ -= bytes;
  while (bytes > 0) {
    size_t left = pieces_.front().size() - offset_;
    if (bytes < left) {
      offset_ += bytes;
      return;
    }
    bytes -= left;
    offset_ = 0;
    pieces_.pop_front();
  }
}

void HttpOutput::clear() {
  pieces_.clear();
  offset_ = bytes_ = 0;
}

std::string format_http_head(const HttpResponseHead& head, const HttpHeaders& headers, size_t room_behind) {
  size_t size = 160 + room_behind;
  for (const auto& [name, value] : headers) size += name.size() + value.size() + 4;
  std::string out;
  out.reserve(size);
  out += "HTTP/1.1 ";
  append_number(out, static_cast<uint64_t>(head.status), 10);
  out += ' ';
  out += http_reason(head.status);
  out += "\r\n";
  out += head.date;
  switch (head.framing) {
    case HttpResponseHead::Framing::kLength:
      out += "content-length: ";
      append_number(out, head.content_length, 10);
      out += "\r\n";
      break;
    case HttpResponseHead::Framing::kChunked:
      out += "transfer-encoding: chunked\r\n";
      break;
    case HttpResponseHead::Framing::kUntilClose:
    case HttpResponseHead::Framing::kNone:
      break;
  }
  if (!head.connection.empty()) {
    out += "connection: ";
    out += head.connection;
    out += "\r\n";
  }
  for (const auto& [name, value] : headers) {
    append_value(out, name);
    out += ": ";
    append_value(out, value);
    out += "\r\n";
  }
  out += "\r\n";
  return out;
}

std::string format_http_chunk(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + 24);
  append_number(out, bytes.size(), 16);
  out += "\r\n";
  out += bytes;
  out += "\r\n";
  return out;
}

}  // namespace warmpath
