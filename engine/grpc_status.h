// A Status as gRPC sends it (proto/wire_status.h). Thread safety: pure function.
#pragma once

#include <grpcpp/support/status.h>

#include "base/status.h"
#include "proto/wire_status.h"

namespace warmpath {

inline grpc::Status to_grpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(wire_code(status.code())), status.message()};
}

}  // namespace warmpath
