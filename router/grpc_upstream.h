// GrpcUpstream: an in-tree replica (proto/engine.proto) as an Upstream. One HTTP/2 connection, made when first used and
// remade when it breaks; calls made while it is down fail at once with kUnavailable. All requests share one stream on
// it (grpc_request_stream.h).
//
// Errors: what the replica says keeps its code (proto/wire_status.h). A connection that cannot be made or breaks is
// kUnavailable. A replica that sends something malformed is kInternal: the message names it, and the call is cancelled.
//
// Thread safety: as Upstream. Listeners are called on the thread of a GrpcClientLoop queue, one upstream on one queue,
// possibly before generate() or subscribe() has returned.
// Calls outlive the upstream that made them.
#pragma once

#include <memory>
#include <string>

#include "router/upstream.h"

namespace warmpath {

struct GrpcUpstreamOptions {
  std::string token;  // sent as "authorization: Bearer TOKEN" when not empty
  double connect_timeout_s = 2;
};

// `address`: "unix:/path" or "host:port".
std::unique_ptr<Upstream> make_grpc_upstream(std::string address, GrpcUpstreamOptions options = {});

}  // namespace warmpath
