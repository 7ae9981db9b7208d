// SharedIndex: the fleet's RadixIndex behind its lock. Lookups run side by side; writers take turns, briefly.
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <shared_mutex>
#include <span>

#include "radix_index/radix_index.h"

namespace warmpath {

class SharedIndex {
 public:
  explicit SharedIndex(size_t max_bytes) : index_(options(max_bytes)) {}

  void query(std::span<const Hash128> chain, MonotonicNs now, IndexMatches& matches) const {
    const std::shared_lock lock(mutex_);
    index_.query(chain, now, matches);
  }
  // Any write: `change` gets the index to itself.
  template <typename Change>
  auto write(Change change) {
    const std::unique_lock lock(mutex_);
    return change(index_);
  }
  // Any other read.
  template <typename Look>
  auto read(Look look) const {
    const std::shared_lock lock(mutex_);
    return look(static_cast<const RadixIndex&>(index_));
  }

 private:
  static IndexOptions options(size_t max_bytes) {
    IndexOptions options;
    options.max_bytes = max_bytes;
    return options;
  }

  mutable std::shared_mutex mutex_;
  RadixIndex index_;
};

}  // namespace warmpath
