#include "loadtest/trace/trace.h"

#include <algorithm>
#include <unordered_map>

namespace warmpath {

void append_blocks(const TraceTurn& turn, std::vector<uint32_t>& ids) {
  for (const BlockRun& run : turn.blocks) {
    for (uint32_t n = 0; n < run.count; ++n) ids.push_back(run.first + n);
  }
}

int64_t block_count(const TraceTurn& turn) {
  int64_t count = 0;
  for (const BlockRun& run : turn.blocks) count += run.count;
  return count;
}

TraceFacts trace_facts(const Trace& trace) {
  TraceFacts facts;
  facts.turns = static_cast<int64_t>(trace.turns.size());
  facts.sessions = trace.sessions;
  facts.ideal_cached.reserve(trace.turns.size());
  std::vector<bool> known(trace.distinct_blocks);
  std::vector<uint32_t> ids;
  for (const TraceTurn& turn : trace.turns) {
    ids.clear();
    append_blocks(turn, ids);
    int64_t leading = 0;
    while (leading < static_cast<int64_t>(ids.size()) && known[ids[static_cast<size_t>(leading)]]) ++leading;
    for (const uint32_t id : ids) known[id] = true;
    const int64_t cached = std::min(leading * trace.block_tokens, std::max<int64_t>(turn.input_tokens - 1, 0));
    facts.ideal_cached.push_back(cached);
    facts.ideal_tokens += cached;
    facts.ideal_blocks += leading;
    facts.blocks += static_cast<int64_t>(ids.size());
    facts.input_tokens += turn.input_tokens;
    facts.output_tokens += turn.output_tokens;
  }
  return facts;
}

namespace {

// Gives dense new ids to old ones, and packs them into runs.
class Renumber {
 public:
  void append(uint64_t old_id, std::vector<BlockRun>& runs) {
    const auto [found, fresh] = ids_.emplace(old_id, static_cast<uint32_t>(ids_.size()));
    const uint32_t id = found->second;
    if (!runs.empty() && runs.back().first + runs.back().count == id) {
      ++runs.back().count;
    } else {
      runs.push_back({id, 1});
    }
  }
  uint32_t size() const { return static_cast<uint32_t>(ids_.size()); }

 private:
  std::unordered_map<uint64_t, uint32_t> ids_;
};

}  // namespace

Trace coarsened(const Trace& trace, int factor) {
  if (factor <= 1) return trace;
  Trace result = trace;
  result.block_tokens = trace.block_tokens * factor;
  Renumber renumber;
  std::vector<uint32_t> ids;
  for (TraceTurn& turn : result.turns) {
    ids.clear();
    append_blocks(turn, ids);
    turn.blocks.clear();
    // A block's last id names all of it; an unfinished one is nobody else's.
    for (size_t n = static_cast<size_t>(factor); n <= ids.size(); n += static_cast<size_t>(factor)) {
      renumber.append(ids[n - 1], turn.blocks);
    }
  }
  result.distinct_blocks = renumber.size();
  return result;
}

Trace sampled(const Trace& trace, uint32_t wanted) {
  if (wanted == 0 || wanted >= trace.sessions) return trace;
  const auto kept = [&](uint32_t session) {  // evenly spread
    return static_cast<uint64_t>(session) * wanted / trace.sessions !=
           static_cast<uint64_t>(session + 1) * wanted / trace.sessions;
  };
  Trace result;
  result.format = trace.format;
  result.block_tokens = trace.block_tokens;
  result.timed = trace.timed;
  std::vector<int32_t> new_turn(trace.turns.size(), -1);
  std::unordered_map<uint32_t, uint32_t> new_session;
  Renumber renumber;
  std::vector<uint32_t> ids;
  for (size_t n = 0; n < trace.turns.size(); ++n) {
    const TraceTurn& turn = trace.turns[n];
    if (!kept(turn.session)) continue;
    new_turn[n] = static_cast<int32_t>(result.turns.size());
    TraceTurn& copy = result.turns.emplace_back(turn);
    copy.session = new_session.emplace(turn.session, new_session.size()).first->second;
    copy.blocks.clear();
    ids.clear();
    append_blocks(turn, ids);
    for (const uint32_t id : ids) renumber.append(id, copy.blocks);
  }
  for (TraceTurn& turn : result.turns) {
    if (turn.next >= 0) turn.next = new_turn[static_cast<size_t>(turn.next)];
  }
  for (const TraceThread& thread : trace.threads) {
    if (new_turn[static_cast<size_t>(thread.first)] < 0) continue;
    result.threads.push_back({thread.after < 0 ? -1 : new_turn[static_cast<size_t>(thread.after)],
                              new_turn[static_cast<size_t>(thread.first)]});
  }
  result.sessions = static_cast<uint32_t>(new_session.size());
  result.distinct_blocks = renumber.size();
  return result;
}

void cap_pauses(Trace& trace, double seconds) {
  for (TraceTurn& turn : trace.turns) turn.think_s = std::min(turn.think_s, seconds);
}

void derive_sessions(Trace& trace) {
  constexpr uint32_t kNobody = UINT32_MAX;
  std::vector<uint32_t> creator(trace.distinct_blocks, kNobody);
  std::vector<int32_t> latest;  // turn of each session
  std::vector<uint32_t> ids;
  for (size_t n = 0; n < trace.turns.size(); ++n) {
    TraceTurn& turn = trace.turns[n];
    ids.clear();
    append_blocks(turn, ids);
    size_t matched = 0;
    while (matched < ids.size() && creator[ids[matched]] != kNobody) ++matched;
    turn.session = static_cast<uint32_t>(latest.size());
    if (matched >= 2) {
      const TraceTurn& before = trace.turns[creator[ids[matched - 1]]];
      if (static_cast<double>(matched) >= 0.5 * static_cast<double>(block_count(before) - 1)) {
        turn.session = before.session;
      }
    }
    if (turn.session == latest.size()) {
      latest.push_back(-1);
    } else {
      trace.turns[static_cast<size_t>(latest[turn.session])].next = static_cast<int32_t>(n);
    }
    latest[turn.session] = static_cast<int32_t>(n);
    for (const uint32_t id : ids) {
      if (creator[id] == kNobody) creator[id] = static_cast<uint32_t>(n);
    }
  }
  trace.sessions = static_cast<uint32_t>(latest.size());
}

void derive_base(Trace& trace) {
  std::unordered_map<uint32_t, int64_t> uses;
  std::vector<uint32_t> ids;
  for (const TraceTurn& turn : trace.turns) {
    ids.clear();
    append_blocks(turn, ids);
    for (const uint32_t id : ids) ++uses[id];
  }
  const auto half = static_cast<int64_t>(trace.turns.size() / 2);
  for (TraceTurn& turn : trace.turns) {
    ids.clear();
    append_blocks(turn, ids);
    int64_t shared = 0;
    while (shared < static_cast<int64_t>(ids.size()) && uses[ids[static_cast<size_t>(shared)]] > half) ++shared;
    turn.base_tokens = std::min(shared * trace.block_tokens, turn.input_tokens);
  }
}

}  // namespace warmpath
