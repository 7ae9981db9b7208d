// Status and Result<T>: how errors travel on the data plane (no exceptions there).
//
// A message names the place and the remedy: it is shown to users as it is.
// Thread safety: values; as safe as std::string.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace warmpath {

enum class StatusCode {
  kOk,
  kInvalidArgument,        // the caller's input is wrong; retrying cannot help
  kContextLengthExceeded,  // prompt (+ max tokens) does not fit the model's context
  kUnauthenticated,
  kPermissionDenied,
  kNotFound,
  kFailedPrecondition,
  kResourceExhausted,  // a queue or a quota is full; retry later
  kUnavailable,        // the peer is gone or not ready; retry elsewhere
  kDeadlineExceeded,
  kCancelled,
  kUnimplemented,
  kDataLoss,
  kInternal,
};

// The canonical name, such as "invalid_argument".
std::string_view status_code_name(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  // "invalid_argument: MESSAGE", or "ok".
  std::string to_string() const;

  bool operator==(const Status&) const = default;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status invalid_argument(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }
inline Status not_found(std::string message) { return {StatusCode::kNotFound, std::move(message)}; }
inline Status unavailable(std::string message) { return {StatusCode::kUnavailable, std::move(message)}; }
inline Status resource_exhausted(std::string message) { return {StatusCode::kResourceExhausted, std::move(message)}; }
inline Status failed_precondition(std::string message) { return {StatusCode::kFailedPrecondition, std::move(message)}; }
inline Status unimplemented(std::string message) { return {StatusCode::kUnimplemented, std::move(message)}; }
inline Status internal_error(std::string message) { return {StatusCode::kInternal, std::move(message)}; }

// A T, or the Status that says why there is none. REQUIRES ok() before value().
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit by design
    if (status_.ok()) status_ = internal_error("Result built from an ok Status");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T& operator*() & { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  const T& operator*() const& { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

#define WARMPATH_RETURN_IF_ERROR(expression)             \
  do {                                                   \
    ::warmpath::Status warmpath_status_ = (expression);  \
    if (!warmpath_status_.ok()) return warmpath_status_; \
  } while (false)

}  // namespace warmpath
