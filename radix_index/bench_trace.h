// Mooncake's conversation trace (one request a line: a chain of 512-token hash blocks), replayed into an index: each
// request is looked up, goes to the holder that has most of it, is placed there, and what is missing is stored; each
// holder keeps its blocks in an LRU cache and reports what it gives up. Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace warmpath {

using TraceRequest = std::vector<uint32_t>;  // hash ids, first block first

Result<std::vector<TraceRequest>> read_mooncake_trace(const std::string& path);

struct TraceReplay {
  double blocks_per_s = 0;            // blocks asked for, stored and removed per second of the index's CPU time
  double hit_share = 0;               // of the blocks asked for, at the holder chosen
  double bytes_per_holder_block = 0;  // accounted, at the end
  double lookup_p50_ns = 0;
  double lookup_p99_ns = 0;
};

// `copies` times, interleaved, with nothing in common between the copies.
TraceReplay replay_trace(const std::vector<TraceRequest>& trace, int copies);

}  // namespace warmpath
