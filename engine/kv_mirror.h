// KvMirror: believes what an event stream says, and notices when the stream contradicts itself. For tests.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "proto/kv_event.h"

namespace warmpath {

class KvMirror {
 public:
  void apply(const KvEventBatch& batch) {
    using Kind = KvEventBatch::Kind;
    switch (batch.kind) {
      case Kind::kSnapshotBegin:
        if (state_ != State::kNew) fail("a second snapshot");
        state_ = State::kSnapshot;
        epoch_ = batch.boot_epoch;
        sequence_ = batch.sequence;
        break;
      case Kind::kSnapshotPart:
      case Kind::kSnapshotEnd:
        if (state_ != State::kSnapshot) fail("a part outside a snapshot");
        if (batch.sequence != sequence_) fail("a snapshot of two sequences");
        if (batch.kind == Kind::kSnapshotEnd) state_ = State::kLive;
        break;
      case Kind::kLive:
        if (state_ != State::kLive) fail("a live batch before the snapshot's end");
        if (batch.sequence != sequence_ + 1) fail("a gap");
        sequence_ = batch.sequence;
        break;
    }
    if (batch.boot_epoch != epoch_) fail("another epoch");
    for (const KvEvent& event : batch.events) std::visit([this](const auto& value) { on(value); }, event);
  }

  const std::map<Hash128, int>& copies() const { return copies_; }
  const std::string& error() const { return error_; }
  int heartbeats() const { return heartbeats_; }
  const std::vector<Hash128>& evict_soon() const { return evict_soon_; }  // the last announcement
  bool live() const { return state_ == State::kLive; }

 private:
  enum class State { kNew, kSnapshot, kLive } state_ = State::kNew;

  void on(const BlocksStored& event) {
    for (const Hash128& identity : event.blocks) {
      ++copies_[identity];
      ++count_;
      checksum_ ^= residency_term(identity, event.tier);
    }
  }
  void on(const BlocksRemoved& event) {
    if (state_ != State::kLive) fail("a removal inside a snapshot");
    for (const Hash128& identity : event.blocks) {
      const auto entry = copies_.find(identity);
      if (entry == copies_.end()) return fail("a removal of what was never stored");
      if (--entry->second == 0) copies_.erase(entry);
      --count_;
      checksum_ ^= residency_term(identity, event.tier);
    }
  }
  void on(const BlocksCleared&) { copies_.clear(); }
  void on(const Heartbeat& event) {
    ++heartbeats_;
    if (event.resident_blocks != count_) fail("a heartbeat with another count");
    if (event.checksum != checksum_) fail("a heartbeat with another checksum");
  }
  void on(const EvictSoon& event) {
    evict_soon_ = event.blocks;
    for (const Hash128& identity : event.blocks) {
      if (!copies_.contains(identity)) fail("an announcement of what is not there");
    }
  }
  void fail(const char* why) {
    if (error_.empty()) error_ = why;
  }

  std::map<Hash128, int> copies_;
  int64_t count_ = 0;
  uint64_t checksum_ = 0;
  uint64_t epoch_ = 0;
  uint64_t sequence_ = 0;
  int heartbeats_ = 0;
  std::vector<Hash128> evict_soon_;
  std::string error_;
};

}  // namespace warmpath
