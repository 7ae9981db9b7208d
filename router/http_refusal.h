// The reasons for which the HTTP server answers a request itself, without asking the handler. Each has one status, one
// `code` (also the metric's label) and one message; none repeats bytes of the client.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "router/http_limits.h"

namespace warmpath {

enum class HttpRefusal {
  kNone,
  kBadRequestLine,
  kBadVersion,
  kBadLineEnding,
  kBadHeader,
  kBadTarget,
  kBadHost,
  kTargetTooLong,
  kHeadTooLarge,
  kTooManyHeaders,
  kBadContentLength,
  kDuplicateContentLength,
  kLengthAndEncoding,
  kUnsupportedTransferEncoding,
  kBadChunk,
  kBodyTooLarge,
  kUnsupportedContentEncoding,
  kUnsupportedExpectation,
  kUpgradeRefused,
  kMethodNotImplemented,
  kHeadTimeout,
  kBodyTimeout,
  kBodiesInFlight,
  kTooManyConnections,
  kStopping,
  kNoAnswer,
  kCount,
};
inline constexpr size_t kHttpRefusals = static_cast<size_t>(HttpRefusal::kCount);

struct HttpRefusalRow {
  int status;
  std::string_view code;
  std::string_view message;
};
const HttpRefusalRow& http_refusal_row(HttpRefusal refusal);

}  // namespace warmpath
