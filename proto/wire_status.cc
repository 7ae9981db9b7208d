#include "proto/wire_status.h"

#include <array>
#include <utility>

namespace warmpath {

namespace {

// https://grpc.github.io/grpc/core/md_doc_statuscodes.html
constexpr std::array<std::pair<StatusCode, int>, 14> kCodes{{
    {StatusCode::kOk, 0},
    {StatusCode::kCancelled, 1},
    {StatusCode::kInvalidArgument, 3},
    {StatusCode::kDeadlineExceeded, 4},
    {StatusCode::kNotFound, 5},
    {StatusCode::kPermissionDenied, 7},
    {StatusCode::kResourceExhausted, 8},
    {StatusCode::kFailedPrecondition, 9},
    {StatusCode::kContextLengthExceeded, 11},
    {StatusCode::kUnimplemented, 12},
    {StatusCode::kInternal, 13},
    {StatusCode::kUnavailable, 14},
    {StatusCode::kDataLoss, 15},
    {StatusCode::kUnauthenticated, 16},
}};
constexpr int kWireInternal = 13;

}  // namespace

int wire_code(StatusCode code) {
  for (const auto& [ours, wire] : kCodes) {
    if (ours == code) return wire;
  }
  return kWireInternal;
}

StatusCode status_code_from_wire(int code) {
  for (const auto& [ours, wire] : kCodes) {
    if (wire == code) return ours;
  }
  return StatusCode::kInternal;
}

}  // namespace warmpath
