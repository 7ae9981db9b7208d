// SimulatedGateway: what one gateway knows and decides, with the product's own index, rate model and policy. It learns
// of the replicas only what a gateway would: its own books, the replicas' reports, their KV events (late or lost, as
// the simulation says) and the timings of finished requests. Thread safety: none.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "loadtest/simulate/simulated_replica.h"
#include "loadtest/trace/trace.h"
#include "policies/policy.h"
#include "policies/prefill_book.h"
#include "policies/rate_model.h"
#include "policies/session_admission.h"
#include "radix_index/radix_index.h"

namespace warmpath {

// Names of a trace's blocks, as the index knows them.
class BlockNames {
 public:
  explicit BlockNames(const Trace& trace);
  const Hash128& of(uint32_t block) const { return names_[block]; }
  // The block before; kRoot's for a first block.
  const Hash128& parent_of(uint32_t block) const {
    return parents_[block] == UINT32_MAX ? root_ : names_[parents_[block]];
  }
  bool follows(uint32_t block, uint32_t before) const { return parents_[block] == before; }

 private:
  Hash128 root_;
  std::vector<Hash128> names_;
  std::vector<uint32_t> parents_;
};

enum class LoadView : uint8_t {
  kBooks,  // what a gateway has: prompt tokens sent and not yet started, requests running
  kExact,  // the replica's true backlog of work and decoding sequences, as published studies assume
};

struct RoutedTurn {
  size_t replica = 0;
  bool routed = false;
  int64_t predicted_tokens = 0;  // cached, as the gateway had it
  std::string_view reason;
};

class SimulatedGateway {
 public:
  struct Options {
    LoadView load = LoadView::kBooks;
    bool session_ids = true;  // clients name their sessions; else they are known by content
    bool events = true;       // replicas announce their blocks; else placements only
    double placement_s = 30;
    int block_tokens = 512;
    bool pooled = false;                                    // every replica can reach every block
    std::span<const Labels> labels = {};                    // SimulationOptions::labels; outlives the gateway
    std::optional<SessionAdmissionOptions> admission = {};  // none: nobody waits at the gateway
  };

  SimulatedGateway(Options options, std::unique_ptr<Policy> policy, const BlockNames& names, size_t replicas,
                   uint64_t seed);

  // False: the turn begins a session that must wait until admitted() names it.
  bool enter(uint32_t turn_number, const TraceTurn& turn, std::span<const uint32_t> blocks,
             const std::vector<SimulatedReplica>& fleet, double now_s);
  std::vector<uint32_t> admitted(const std::vector<SimulatedReplica>& fleet, double now_s);
  // A turn that entered is over; `cached_tokens` < 0: without an answer.
  void leave(const TraceTurn& turn, std::span<const uint32_t> blocks, int64_t cached_tokens, double now_s);
  size_t waiting() const { return waiting_.size(); }

  // Chooses, and books the turn there.
  RoutedTurn route(uint32_t turn_number, const TraceTurn& turn, std::span<const uint32_t> blocks,
                   const std::vector<SimulatedReplica>& fleet, double now_s);
  void on_first_token(size_t replica, uint32_t turn_number, double now_s);
  // `ended_s`: its last token.
  void on_finished(size_t replica, const SimulatedJob& job, double ended_s);
  // It ended without an answer.
  void on_lost(size_t replica, uint32_t turn_number, double now_s);
  // True if the replica must send a snapshot.
  bool on_events(size_t replica, const KvEventBatch& batch, double now_s);
  // The replica's report: what it has beyond this gateway's own.
  void on_report(size_t replica, const SimulatedReplica& state);
  void maintain(double now_s);

 private:
  struct Book {
    int32_t running = 0;
    int32_t queued = 0;
    int64_t queued_tokens = 0;
    int32_t others_running = 0;
    int32_t others_queued = 0;
    int64_t others_tokens = 0;
    PrefillBook prefills;
  };
  struct Sent {
    uint32_t turn;
    int64_t uncached;
    PrefillBook::Ticket ticket;
    bool started;
  };

  std::vector<AdmissionCapacity> capacities(const std::vector<SimulatedReplica>& fleet) const;
  AdmissionTurn admission_turn(const TraceTurn& turn, std::span<const uint32_t> blocks);
  RequestView view_of(const TraceTurn& turn, std::span<const uint32_t> blocks) const;
  Candidate candidate_of(size_t replica, const RequestView& request, std::span<const uint32_t> blocks,
                         const SimulatedReplica& state, MonotonicNs now) const;
  Sent* find(size_t replica, uint32_t turn_number);
  void take_off(size_t replica, const Sent& sent, MonotonicNs now);

  const Options options_;
  const std::unique_ptr<Policy> policy_;
  const BlockNames& names_;
  FleetRates rates_;
  RadixIndex index_;
  Rng rng_;
  std::vector<ReplicaId> ids_;
  std::vector<Book> books_;
  std::vector<std::vector<Sent>> sent_;  // per replica
  double mean_output_ = 200;
  std::optional<SessionAdmission> admission_;
  std::unordered_map<SessionAdmission::Ticket, uint32_t> waiting_;  // turn
  // Reused.
  IndexMatches matches_;
  std::vector<Hash128> chain_;
  std::vector<Candidate> candidates_;
};

}  // namespace warmpath
