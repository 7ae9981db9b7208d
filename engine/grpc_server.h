// GrpcServer: an Engine behind the contract of proto/engine.proto (prose: docs/protocol.md).
//
// Costs: gRPC's callback API, no thread per stream; all requests of a gateway share one stream, and what becomes ready
// together leaves in one message (grpc_generate_stream.h).
//
// Bounds: a message has at most kMaxMessageBytes; a reader that falls kMaxPendingTokens behind has its request
// cancelled; an event subscriber that falls kMaxPendingIdentities behind is closed with kDataLoss and may subscribe
// again.
//
// Thread safety: start() and shutdown() from one thread; the server has threads of its own (gRPC's, shared by all
// servers and clients of the process). The engine must outlive the server.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/status.h"
#include "engine/engine.h"
#include "proto/describe.h"

namespace warmpath {

struct GrpcServerOptions {
  std::string listen;         // see engine/grpc_server_address.h
  std::string token;          // when not empty, every call must carry "authorization: Bearer TOKEN"
  bool allow_remote = false;  // listen beyond loopback, in clear text
};

inline constexpr size_t kMaxPendingTokens = 65'536;
inline constexpr size_t kMaxPendingIdentities = 1'048'576;  // 16 MiB

class GrpcServer {
 public:
  // `description` is what Describe answers (its boot_epoch becomes the engine's); `tokenizer` is what FetchTokenizer
  // sends: a GGUF file without tensors.
  static Result<std::unique_ptr<GrpcServer>> start(Engine& engine, ReplicaDescription description,
                                                   std::string tokenizer, const GrpcServerOptions& options);
  virtual ~GrpcServer() = default;  // shutdown(0)

  // As given, with the real port.
  virtual const std::string& address() const = 0;
  // A client called Drain, or drain() was called.
  virtual bool draining() const = 0;
  virtual void drain() = 0;
  // No new calls from now on; running ones get `grace_s` and are then cancelled. Returns when none is left.
  virtual void shutdown(double grace_s) = 0;
};

}  // namespace warmpath
