// LruCache: hash -> value, bounded by the bytes that its user says the values cost, least recently used out first.
// Thread safety: any thread; 16 shards with a mutex each, held for a look-up or an insertion only. Values are copied
// out, so they should be cheap to copy (a shared pointer, a Value).
#pragma once

#include <array>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/hash128.h"

namespace warmpath {

template <typename T>
class LruCache {
 public:
  explicit LruCache(size_t max_bytes) : max_shard_bytes_(max_bytes / kShards) {}

  std::optional<T> find(Hash128 key) {
    Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.index.find(key);
    if (found == shard.index.end()) return std::nullopt;
    shard.order.splice(shard.order.begin(), shard.order, found->second);
    return found->second->value;
  }

  // `bytes`: of the value with everything it owns. A value larger than a shard is not kept; of two equal keys the first
  // stays.
  void insert(Hash128 key, T value, size_t bytes) { put(key, std::move(value), bytes, false); }
  // Of two equal keys the last stays.
  void replace(Hash128 key, T value, size_t bytes) { put(key, std::move(value), bytes, true); }

  size_t bytes() const {
    size_t total = 0;
    for (const Shard& shard : shards_) {
      const std::lock_guard lock(shard.mutex);
      total += shard.bytes;
    }
    return total;
  }

 private:
  static constexpr size_t kShards = 16;
  static constexpr size_t kEntryBytes = 128;  // list node, index slot, allocator's share

  struct Entry {
    Hash128 key;
    T value;
    size_t cost;
  };
  struct Hasher {
    size_t operator()(Hash128 key) const noexcept { return key.lo; }  // the key is a hash already
  };
  struct alignas(64) Shard {
    mutable std::mutex mutex;
    std::list<Entry> order;  // most recently used first
    std::unordered_map<Hash128, typename std::list<Entry>::iterator, Hasher> index;
    size_t bytes = 0;
  };
  void put(Hash128 key, T value, size_t bytes, bool replaces) {
    const size_t cost = bytes + kEntryBytes;
    if (cost > max_shard_bytes_) return;
    std::list<Entry> dropped;  // destroyed after the lock is gone
    Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    if (const auto found = shard.index.find(key); found != shard.index.end()) {
      if (!replaces) return;
      shard.bytes -= found->second->cost;
      dropped.splice(dropped.begin(), shard.order, found->second);
      shard.index.erase(found);
    }
    while (shard.bytes + cost > max_shard_bytes_) {
      shard.bytes -= shard.order.back().cost;
      shard.index.erase(shard.order.back().key);
      dropped.splice(dropped.begin(), shard.order, std::prev(shard.order.end()));
    }
    shard.order.push_front({key, std::move(value), cost});
    shard.index.emplace(key, shard.order.begin());
    shard.bytes += cost;
  }
  Shard& shard_of(Hash128 key) { return shards_[key.hi % kShards]; }

  const size_t max_shard_bytes_;
  std::array<Shard, kShards> shards_;
};

}  // namespace warmpath
