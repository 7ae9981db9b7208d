// RecentRemovals: which blocks a replica has lately said it let go of, so that a receipt can tell "evicted between the
// decision and the prefill" from "it was never there". The last kKept of them are remembered, by 64 bits of their
// identity. Thread safety: any thread; one short mutex.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/hash128.h"
#include "proto/kv_event.h"

namespace warmpath {

class RecentRemovals {
 public:
  static constexpr size_t kKept = 1024;
  // A moment: what was removed before it does not count.
  using Mark = uint64_t;

  Mark mark() const;
  // Whatever tier it left, and all blocks when the cache was cleared or is being described anew.
  void note(const KvEventBatch& batch);
  // True if `block` may have gone since `mark`: it did, everything did, or more has gone than is remembered.
  bool may_have_gone(const Hash128& block, Mark mark) const;

 private:
  mutable std::mutex mutex_;
  std::vector<uint64_t> ring_;  // of kKept, made when first needed; removal n is at n % kKept
  Mark removed_ = 0;            // so many, ever
  Mark cleared_at_ = 0;         // `removed_` after the last time that everything went; 0: never
};

}  // namespace warmpath
