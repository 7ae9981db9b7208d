// SessionAdmission: which sessions may run while their KV does not all fit the fleet's.
//
// When live sessions together need more KV than there is, every router thrashes: each turn evicts another session's
// cache and finds its own gone. This keeps as many sessions running as fit, the oldest first, and lets the others wait
// between two turns, as an operating system suspends processes whose working sets do not fit (Denning 1968); a wait
// costs a turn its place, thrashing costs every turn its cache.
//
// A session is live from its first turn until it has been silent for `idle_s`. Its footprint is what its latest turn
// left behind without the base that it shares, but at least what sessions come to on average, for it will grow; it lies
// where its latest turn ran. A replica has room while the footprints there stay below its capacity times OverCommit's
// factor.
//  - A turn of a live session goes, unless its replica's footprints exceed the room by a tenth and it is not among the
//    oldest sessions that fit: then the session pauses.
//  - A turn that finds most of its session still cached goes too: it takes no room that it has not got.
//  - Any other turn (a new session's, one that paused, or one that was silent for long) needs room on some replica and
//    goes to one that has; else it waits. Where there is room, the tenant with the smallest live footprint is first,
//    and in it the oldest session; nobody overtakes a session too large for the room that is left.
//  - A new session waits `longest_wait_s` at most. Then it starts, and pauses after its first turn if it must.
//
// Thread safety: none; its owner locks. No clock of its own.
// Invariants: footprints add up, over all, by tenant and by replica; a ticket is in one queue exactly while it waits.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/hash128.h"
#include "base/status.h"
#include "policies/over_commit.h"
#include "radix_index/index_query.h"

namespace warmpath {

struct SessionAdmissionOptions {
  double idle_s = 300;
  double longest_wait_s = 120;
  int max_waiting = 1000;
  OverCommit::Options over_commit;

  bool operator==(const SessionAdmissionOptions&) const = default;
};

// A turn, as admission sees it.
struct AdmissionTurn {
  Hash128 session;  // (tenant, session, thread), or its content
  std::string_view tenant;
  int64_t prompt_tokens = 0;
  int64_t base_tokens = 0;
  int64_t cached_tokens = 0;       // of the prompt, on the replica that has most of it
  std::span<const Hash128> chain;  // of the prompt's whole blocks
  int64_t block_tokens = 16;
};

// A replica's KV, in tokens.
struct AdmissionCapacity {
  ReplicaId replica = 0;
  int64_t tokens = 0;
};

class SessionAdmission {
 public:
  using Ticket = uint64_t;  // 0: none
  using Capacities = std::span<const AdmissionCapacity>;

  enum class Verdict : uint8_t {
    kGo,
    kWait,  // until admit() names the ticket
    kFull,  // nobody more may wait
  };
  struct Entry {
    Verdict verdict = Verdict::kGo;
    Ticket ticket = 0;
  };

  explicit SessionAdmission(SessionAdmissionOptions options = {})
      : options_(options), over_commit_(options.over_commit) {}

  // Every turn comes here first. Everybody goes while no replica's capacity is known.
  Entry arrive(const AdmissionTurn& turn, Capacities capacities, MonotonicNs now);
  // The waiting turns that may go now; their sessions are live from here on.
  std::vector<Ticket> admit(Capacities capacities, MonotonicNs now);
  // It no longer wants to wait. Unknown tickets are ignored.
  void leave(Ticket ticket);
  // May the session's turn run there? False for one that needs room where there is none, unless there is none anywhere.
  bool has_room(Hash128 session, ReplicaId replica) const;
  // Its turn runs on this replica.
  void routed(Hash128 session, ReplicaId replica);
  // A turn that went has ended: `cached` tokens of its prompt were found, `tokens` are what it leaves (prompt and
  // answer); negative when it failed and nobody knows.
  void ended(const AdmissionTurn& turn, int64_t cached, int64_t tokens, MonotonicNs now);

  size_t waiting() const { return where_.size(); }
  size_t live_sessions() const { return live_.size(); }
  int64_t live_tokens() const { return live_tokens_; }
  uint64_t pauses() const { return pauses_; }  // since the start
  const OverCommit& over_commit() const { return over_commit_; }
  // When one more might go, in seconds: for Retry-After.
  double retry_after_s() const;

  Status check_integrity() const;

 private:
  static constexpr ReplicaId kNowhere = UINT32_MAX;

  struct Live {
    std::string tenant;
    int64_t tokens = 0;     // what its latest turn left behind
    int64_t footprint = 0;  // as it is counted
    ReplicaId replica = kNowhere;
    bool needs_room = false;  // `replica` is where room is kept for it until it is routed
    uint64_t age = 0;         // smaller is older
    int running = 0;          // turns
    MonotonicNs silent_since = 0;
    // The last whole block of its latest prompt: a prompt that has it in this place extends that one.
    Hash128 last_block;
    size_t blocks = 0;
  };
  struct Waiting {
    Ticket ticket = 0;
    Hash128 session;
    int64_t tokens = 0;
    MonotonicNs since = 0;
    uint64_t age = 0;
    bool is_new = false;
  };
  using Queue = std::deque<Waiting>;  // by age

  static int64_t own_tokens(int64_t tokens, const AdmissionTurn& turn);
  int64_t footprint(int64_t tokens) const;
  bool fits(int64_t footprint, ReplicaId replica, int64_t capacity) const;
  bool fits_somewhere(int64_t footprint) const;
  bool must_pause(const Live& live) const;
  Entry wait(const AdmissionTurn& turn, int64_t tokens, MonotonicNs now);
  ReplicaId roomiest(int64_t footprint) const;  // kNowhere: it fits nowhere
  void start(Hash128 session, std::string_view tenant, int64_t tokens, uint64_t age, bool needs_room);
  void count(Live& live, int64_t tokens);
  void learn(Capacities capacities);
  void drop_silent(MonotonicNs now);
  void drop(std::unordered_map<Hash128, Live>::iterator live, MonotonicNs now);

  const SessionAdmissionOptions options_;
  OverCommit over_commit_;
  std::unordered_map<Hash128, Live> live_;
  std::set<std::pair<MonotonicNs, Hash128>> silent_;  // live ones without a running turn
  int64_t live_tokens_ = 0;                           // footprints, and the same by tenant and by replica
  std::map<std::string, int64_t, std::less<>> tenant_tokens_;
  std::unordered_map<ReplicaId, int64_t> replica_tokens_;  // kNowhere: of those without room that are not routed
  std::unordered_map<ReplicaId, int64_t> capacities_;      // as last heard
  double mean_grown_ = 0;                                  // tokens of sessions that fall silent

  std::map<std::string, Queue, std::less<>> queues_;  // by tenant; none is empty
  std::unordered_map<Ticket, std::string> where_;
  // Sessions that were live, and how old they are; forgotten after a while, the earliest first.
  std::unordered_map<Hash128, uint64_t> ages_;
  std::deque<std::pair<MonotonicNs, Hash128>> forgetting_;
  uint64_t last_age_ = 0;
  Ticket last_ticket_ = 0;
  uint64_t pauses_ = 0;
  double mean_gap_s_ = 0;  // between two turns that had waited
  MonotonicNs admitted_ns_ = 0;
};

}  // namespace warmpath
