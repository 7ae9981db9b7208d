// RadixIndex: which replica holds which prefix blocks, in which tier.
//
// Blocks are known by their opaque 128-bit chain identity, which covers everything before them; so one identity has one
// place in one chain, and equal identities are equal prefixes. Chains are stored once, as runs of consecutive blocks
// (block_run.h) found by identity (block_table.h); membership is kept as maximal spans of a run. Nothing is sampled or
// assumed: a hole in the middle of a chain is seen.
//
// Feeds: engine events, which are authoritative for their replica, through apply(); and placements, what the gateway
// expects because it has just routed there, which expire or are confirmed by an event. A child that arrives before its
// parent is kept, and counts from the moment the parent is there too: never earlier, because a lookup stops at the
// first hole.
//
// Thread safety: query() from any thread at any time, beside one writer; it neither waits nor retries without bound.
// Everything else, const or not, belongs to the writer: one call at a time (router/shared_index.h sees to that). No
// clock and no threads of its own: times are handed in.
//
// What a lookup sees: each run as it was at one moment during the lookup. A batch of events is not one moment: a lookup
// beside it may see some of its runs changed and others not yet.
//
// Invariants (check_integrity): every stored block is found by its identity; every block has a holder or a placement
// (up to a sweep of maintain()); spans are maximal, sorted, non-overlapping per holder; per replica, resident copies
// and their checksum equal what the spans and copy counts say; bytes equal the sum over all parts.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/hash128.h"
#include "base/status.h"
#include "proto/kv_event.h"
#include "radix_index/index_query.h"
#include "radix_index/index_snapshot.h"
#include "radix_index/trust.h"

namespace warmpath {

struct IndexOptions {
  // Hard cap on the memory of the index; past it the least recently matched runs go, leaves first.
  size_t max_bytes = size_t{2} << 30;
  uint32_t max_replicas = 4096;
};

// What apply() asks its caller to do.
enum class FeedAction : uint8_t {
  kNone,
  kResubscribe,  // close the stream and open a new one, which starts with a snapshot
};

struct FeedOutcome {
  FeedAction action = FeedAction::kNone;
  // Why the replica is degraded, for the log; empty when nothing is wrong.
  std::string reason;
  // Trust changed with this batch (either way): worth a log line.
  bool trust_changed = false;
};

struct IndexReplicaView {
  Trust trust = Trust::kPredicted;
  uint64_t boot_epoch = 0;
  uint64_t last_sequence = 0;
  std::array<uint64_t, kTiers> resident_blocks{};  // copies
  uint64_t checksum = 0;                           // as in Heartbeat
  uint64_t gaps = 0;                               // counters since add_replica
  uint64_t audits_failed = 0;
  uint64_t blocks_dropped = 0;  // evicted by the cap though the replica still holds them; audits are off while non-zero
  MonotonicNs last_event_ns = 0;  // 0: none yet
};

struct IndexStats {
  size_t bytes = 0;
  size_t max_bytes = 0;
  uint64_t distinct_blocks = 0;
  uint64_t runs = 0;
  uint64_t spans = 0;         // (run, holder, range)
  uint64_t placed_spans = 0;  // the same for placements, expired ones included until swept
  uint32_t replicas = 0;
  uint64_t evicted_blocks = 0;  // by the cap, since start
};

class RadixIndex {
 public:
  explicit RadixIndex(IndexOptions options = {});
  ~RadixIndex();
  RadixIndex(RadixIndex&&) noexcept;
  RadixIndex& operator=(RadixIndex&&) noexcept;

  // kResourceExhausted past max_replicas. A new replica is `predicted` until its first snapshot ends.
  Result<ReplicaId> add_replica();
  void remove_replica(ReplicaId replica);
  bool has_replica(ReplicaId replica) const;

  // One message of a replica's event stream, in the order received.
  FeedOutcome apply(ReplicaId replica, const KvEventBatch& batch, MonotonicNs now);
  // The stream broke off. What is known stays, as `degraded`, until the next snapshot replaces it.
  void feed_lost(ReplicaId replica);

  // The replica will soon hold `chain` (first block first): it was just sent there. Lasts `ttl_s` unless confirmed. The
  // first `held` blocks are not placed: the caller knows that the replica holds them.
  void place(ReplicaId replica, std::span<const Hash128> chain, MonotonicNs now, double ttl_s, size_t held = 0);

  // `chain` is a prompt's, from its first block on. `matches` is overwritten.
  void query(std::span<const Hash128> chain, MonotonicNs now, IndexMatches& matches) const;

  // Sweeps up to `max_runs` runs: drops expired placements and what removed, cleared or restarted replicas left behind.
  // Call it about once a second with a few thousand; lookups never see what it has yet to sweep.
  void maintain(MonotonicNs now, size_t max_runs);

  // The replica answers as this life. What is known of another one is void; false if there was such a life.
  bool confirm_epoch(ReplicaId replica, uint64_t boot_epoch);

  // Appends the next piece of a snapshot to `out`, about a megabyte; false once that was the last. The index may change
  // between two calls.
  bool save_piece(SnapshotProgress& progress, MonotonicNs now, std::string& out) const;
  // Adds what the snapshot says about those of `replicas` (by name) that have not spoken for themselves yet; they are
  // `degraded` then if they hold anything. Placements have aged by `age_s`. Returns the holder-blocks added.
  uint64_t restore(const IndexSnapshot& from, std::span<const SnapshotReplica> replicas, double age_s, MonotonicNs now);

  IndexReplicaView replica_view(ReplicaId replica) const;
  IndexStats stats() const;

  // Walks everything; ok, or the first violated invariant. O(index).
  Status check_integrity() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmpath
