// GrpcPeer: what every call to one replica shares: the connection, the token, and how its errors read.
// Thread safety: immutable once made.
#pragma once

#include <fmt/format.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <memory>
#include <string>

#include "proto/engine.grpc.pb.h"
#include "proto/wire_status.h"
#include "router/grpc_client_loop.h"

namespace warmpath {

// The calls keep it alive.
struct GrpcPeer {
  std::string address;
  std::string authorization;  // empty: none is sent
  std::unique_ptr<v1::Engine::Stub> stub;
  std::unique_ptr<grpc::GenericStub> generic_stub;  // for calls whose messages are not gRPC's to read
  grpc::CompletionQueue* queue = nullptr;

  void prepare(grpc::ClientContext& context) const {
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
  }
  void prepare(grpc::ClientContext& context, double timeout_s) const {
    prepare(context);
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::microseconds(static_cast<int64_t>(timeout_s * 1e6)));
  }
  // What the replica said, or that it is not there.
  Status status_of(const grpc::Status& status) const {
    if (status.ok()) return {};
    std::string message = status.error_message();
    // gRPC reports a connection that went under a call as UNAVAILABLE or, at times, as UNKNOWN; replicas send no
    // UNKNOWN.
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE || status.error_code() == grpc::StatusCode::UNKNOWN) {
      return unavailable(fmt::format("{}: {}", address, message));
    }
    return status_from_wire(status.error_code(), std::move(message));
  }
  // decode() refused what the replica sent.
  Status malformed(const Status& why) const {
    // A version that does not fit is not malformed: the message says what to do.
    if (why.code() == StatusCode::kFailedPrecondition) {
      return {why.code(), fmt::format("{}: {}", address, why.message())};
    }
    return internal_error(fmt::format("the replica at {} sent a malformed message: {}", address, why.message()));
  }
};

}  // namespace warmpath
