// An index as bytes: written piece by piece beside its use, read back only if it is whole. docs/index_snapshot.md
// describes the bytes.
//
// A snapshot is for a warm start, not for exactness: pieces are of different moments, so what it says about a replica
// is its last known content (trust `degraded`) until the replica's own stream has told more. Replicas are known by
// names which their owner chooses and knows again after a restart, and by their boot epoch: what an earlier life held
// is void. The bytes are untrusted: parse() accepts only what is valid throughout, and says where and why it is not.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "radix_index/index_query.h"

namespace warmpath {

struct SnapshotReplica {
  std::string name;
  ReplicaId id = 0;  // in the index that is written, or restored to
};

// Where a snapshot in the making has got to. Fill the first two, then call RadixIndex::save_piece until it returns
// false.
struct SnapshotProgress {
  std::vector<SnapshotReplica> replicas;
  int64_t saved_at_ns = 0;  // since 1970: now
  uint32_t pieces = 0;
  uint32_t next_run = 0;
  uint64_t runs = 0;
  uint64_t blocks = 0;
  std::vector<uint64_t> epochs;  // of the replicas at the beginning; 0: not known
};

// A whole, valid snapshot. A view of the bytes it was parsed from.
class IndexSnapshot {
 public:
  struct Replica {
    std::string_view name;
    uint64_t boot_epoch = 0;  // 0: it restarted meanwhile, or was never known; what is said of it is void
  };

  static Result<IndexSnapshot> parse(std::string_view bytes);

  const std::vector<Replica>& replicas() const { return replicas_; }
  const std::vector<std::string_view>& run_pieces() const { return run_pieces_; }
  uint64_t runs() const { return runs_; }
  uint64_t blocks() const { return blocks_; }
  int64_t saved_at_ns() const { return saved_at_ns_; }  // since 1970

 private:
  std::vector<Replica> replicas_;
  std::vector<std::string_view> run_pieces_;
  uint64_t runs_ = 0;
  uint64_t blocks_ = 0;
  int64_t saved_at_ns_ = 0;
};

}  // namespace warmpath
