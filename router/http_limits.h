// What one client, and all of them together, may cost the HTTP server. Sizes in bytes, times in seconds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warmpath {

struct HttpLimits {
  // One request. A million-token prompt is about 5 MB of JSON; inline images are larger.
  uint64_t max_body_bytes = 64ull << 20;  // over it: 413
  size_t max_target_bytes = 8 << 10;      // over it: 414
  size_t max_head_bytes = 64 << 10;       // request line and header fields together; over it: 431
  size_t max_headers = 128;               // over it: 431

  // All requests together: buffers of bodies being read or answered. A request that does not fit gets 503 with
  // Retry-After before its body is read. Buffers grow with the bytes that arrive, so a claimed length costs nothing.
  uint64_t max_total_body_bytes = 1ull << 30;

  // Connections per listener, so that a flood of clients does not lock out the admin listener. Over it, idle
  // connections are closed to make room; where there are none: 503.
  size_t max_connections = 4096;
  uint64_t max_requests_per_connection = 0;  // then `connection: close`; 0 = no limit

  // Bytes a client may send ahead of its unfinished answer before the server stops reading.
  size_t max_pipelined_bytes = 64 << 10;
  // Stream bytes queued for a client that does not read; over it the stream is aborted.
  size_t max_unsent_bytes = 4 << 20;

  double idle_s = 75;        // between requests; then closed without a word
  double head_read_s = 10;   // from a request's first byte to the end of its header; then 408
  double body_stall_s = 20;  // without a byte of the body; then 408
  // The body's mean rate after `body_grace_s`; slower: 408. 0 = no minimum.
  uint64_t min_body_bytes_per_s = 1024;
  double body_grace_s = 10;
  int dead_peer_s = 60;       // without a sign of life from the client's kernel; then its request is given up
  double write_stall_s = 60;  // without the client taking a byte of a pending answer; then aborted
  // After the last answer the server still reads (and drops) what the client is sending, because closing at once would
  // reset the connection and could destroy the answer: until nothing came for `linger_s`, or it took
  // `linger_total_s` or `linger_bytes` in all. Clients that read only once they have sent everything must fit in.
  double linger_s = 2;
  double linger_total_s = 20;
  uint64_t linger_bytes = 512ull << 20;

  // The handler is asked about bodies larger than this, and those of unknown length, before they are read.
  uint64_t large_body_bytes = 64 << 10;

  int retry_after_s = 1;  // on every 503 of the server itself
};

}  // namespace warmpath
