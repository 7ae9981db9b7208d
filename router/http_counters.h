// What the HTTP server has done since it started, for metrics.
#pragma once

#include <array>
#include <cstdint>

#include "router/http_refusal.h"

namespace warmpath {

struct HttpCounters {
  uint64_t accepted = 0;   // connections
  uint64_t active = 0;     // connections open now
  uint64_t requests = 0;   // with a well-formed header
  uint64_t in_flight = 0;  // answers not yet handed to the kernel whole
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
  uint64_t body_bytes = 0;                        // buffers of request bodies held now
  uint64_t clients_gone = 0;                      // before their answer was complete
  uint64_t slow_readers = 0;                      // aborted because they did not read
  uint64_t truncated = 0;                         // requests whose client left before sending them whole
  uint64_t idle_closed = 0;                       // connections closed for being idle
  uint64_t accept_errors = 0;                     // out of file descriptors, mostly
  std::array<uint64_t, kHttpRefusals> refused{};  // by HttpRefusal
};

}  // namespace warmpath
