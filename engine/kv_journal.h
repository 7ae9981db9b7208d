// KvJournal: turns what happens to blocks into the event stream of proto/kv_event.h: gapless, merged, auditable.
//
// It records while a step runs; flush() hands out everything recorded since the last flush as one batch with the next
// sequence number. snapshot() describes what is resident at this moment, under the sequence of the last flushed batch.
// Thread safety: none; the engine's loop thread owns it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/block_pool.h"
#include "proto/kv_event.h"

namespace warmpath {

class KvJournal final : public BlockListener {
 public:
  explicit KvJournal(uint64_t boot_epoch) : boot_epoch_(boot_epoch) {}

  void on_stored(Hash128 parent, Hash128 identity) override;
  void on_removed(Hash128 identity) override;
  void evict_soon(std::vector<Hash128> blocks);
  void heartbeat();

  // Nothing when nothing was recorded.
  std::optional<KvEventBatch> flush();

  // Begin, parts, end. A block comes after its parent when that is resident.
  // REQUIRES that nothing is recorded and unflushed, and that `pool` reports to this journal.
  std::vector<KvEventBatch> snapshot(const BlockPool& pool) const;

  int64_t resident_blocks() const { return resident_; }
  uint64_t checksum() const { return checksum_; }  // Heartbeat::checksum

 private:
  KvEventBatch batch(KvEventBatch::Kind kind) const { return {boot_epoch_, sequence_, kind, {}}; }

  const uint64_t boot_epoch_;
  uint64_t sequence_ = 0;
  int64_t resident_ = 0;
  uint64_t checksum_ = 0;
  std::vector<KvEvent> pending_;
};

}  // namespace warmpath
