// Trace: what clients asked for and when, as the simulator and the replay read it.
//
// A prompt is named by its blocks: ids of `block_tokens` tokens each, where an id names everything before it too, so
// equal ids are equal prefixes. Timed traces (Mooncake, Azure) send each turn at `at_s`. The others (coding-agent
// sessions, shapes) are threads of turns: a turn is sent `think_s` after the turn before it has ended, and a sub-agent
// is a thread of its own that starts when a turn of its parent has ended. Thread safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace warmpath {

struct BlockRun {
  uint32_t first = 0;
  uint32_t count = 0;
  bool operator==(const BlockRun&) const = default;
};

struct TraceTurn {
  double at_s = 0;  // timed traces: from the trace's start
  double think_s =
      0;  // threads: after the end of the turn before; of a thread's first turn, after what starts the thread
  uint32_t session = 0;
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  int64_t base_tokens = 0;       // system prompt and tools, at the front of the input
  std::vector<BlockRun> blocks;  // may cover less than the input: the rest is nobody else's
  int32_t next = -1;             // the session's (thread's) turn after this one
  std::string messages;          // of message logs: the JSON list, as it stands there; such turns have no blocks
};

struct TraceThread {
  int32_t after = -1;  // the turn whose end starts it; -1: it starts its session
  int32_t first = 0;   // turn
};

struct Trace {
  std::string format;
  int block_tokens = 0;
  bool timed = false;
  std::vector<TraceTurn> turns;      // timed: by time
  std::vector<TraceThread> threads;  // empty for timed traces; a session's first thread comes before its others
  uint32_t sessions = 0;
  uint32_t distinct_blocks = 0;  // every id is below this

  double seconds() const { return timed && !turns.empty() ? turns.back().at_s : 0; }
};

// The ids of a turn's blocks, one by one.
void append_blocks(const TraceTurn& turn, std::vector<uint32_t>& ids);
int64_t block_count(const TraceTurn& turn);

struct TraceFacts {
  int64_t turns = 0;
  int64_t sessions = 0;
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  int64_t blocks = 0;                 // references
  int64_t ideal_blocks = 0;           // of those, known from an earlier turn (in the trace's order)
  int64_t ideal_tokens = 0;           // prompt tokens that one boundless cache would have had
  std::vector<int64_t> ideal_cached;  // per turn
};
TraceFacts trace_facts(const Trace& trace);

// Blocks of `factor` times as many tokens. Exact, because an id names its whole prefix.
Trace coarsened(const Trace& trace, int factor);
// The turns of every session but each n-th dropped (n = sessions / wanted), in order.
Trace sampled(const Trace& trace, uint32_t sessions);
// Pauses between turns longer than this are cut to it.
void cap_pauses(Trace& trace, double seconds);
// Fills `session` and `next` of a timed trace: a turn continues the session of the one that first sent its deepest
// known block, if it shares at least two blocks and half of that turn's whole ones with it.
void derive_sessions(Trace& trace);
// Fills `base_tokens` with the leading blocks that more than half of all turns share.
void derive_base(Trace& trace);

}  // namespace warmpath
