// Status codes as they travel in gRPC, without gRPC's headers. Both directions agree: every StatusCode survives the
// wire.
//
// gRPC has no code for "the prompt does not fit the context"; OUT_OF_RANGE stands for it. Codes that this project never
// sends (ABORTED, ALREADY_EXISTS, UNKNOWN) arrive as kInternal. Thread safety: pure functions.
#pragma once

#include <string>

#include "base/status.h"

namespace warmpath {

// Numbers of grpc::StatusCode.
int wire_code(StatusCode code);
StatusCode status_code_from_wire(int code);
inline Status status_from_wire(int code, std::string message) {
  const StatusCode ours = status_code_from_wire(code);
  return ours == StatusCode::kOk ? Status() : Status(ours, std::move(message));
}

}  // namespace warmpath
