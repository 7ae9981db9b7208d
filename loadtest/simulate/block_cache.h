// BlockCache: the blocks one simulated replica holds, least recently used first out, with an optional host tier below.
//
// Pinned blocks (of requests that run) stay. `reserved` blocks are memory without content yet: what running requests
// will write. The host tier gets what the device lets go of, and loses its own least recently used.
// Invariants: held + reserved <= capacity on the device, as long as pins and reservations allow it.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace warmpath {

class BlockCache {
 public:
  // What changed, for the replica's KV events.
  struct Changes {
    std::vector<uint32_t> stored;  // on the device
    std::vector<uint32_t> removed;
    std::vector<uint32_t> host_stored;
    std::vector<uint32_t> host_removed;
    bool empty() const { return stored.empty() && removed.empty() && host_stored.empty() && host_removed.empty(); }
    void clear();
  };

  BlockCache(int64_t device_blocks, int64_t host_blocks);

  bool on_device(uint32_t block) const { return device_.find(block) != kNone; }
  bool on_host(uint32_t block) const { return host_.find(block) != kNone; }
  // Most recently used now; stored if it was not there.
  void use(uint32_t block, Changes& changes);
  void pin(uint32_t block);  // REQUIRES on_device
  void unpin(uint32_t block);
  bool is_pinned(uint32_t block) const;
  // True if so many more blocks could be reserved by evicting what is not pinned.
  bool has_room(int64_t blocks) const;
  void reserve(int64_t blocks, Changes& changes);
  void release(int64_t blocks) { reserved_ -= blocks; }
  // Forgets everything (a restart).
  void clear();

  int64_t device_blocks() const { return static_cast<int64_t>(device_.size()); }
  int64_t pinned_blocks() const { return pinned_; }
  int64_t reserved_blocks() const { return reserved_; }
  int64_t evicted() const { return evicted_; }
  template <typename Visit>
  void each_device_block(Visit visit) const {
    device_.each(visit);
  }
  template <typename Visit>
  void each_host_block(Visit visit) const {
    host_.each(visit);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // A doubly linked list in an array, found by id.
  class Lru {
   public:
    uint32_t find(uint32_t block) const;
    void push(uint32_t block);                              // as the most recently used
    void touch(uint32_t node);                              // REQUIRES it is linked
    void unlink(uint32_t node);                             // stays known, but cannot be the oldest
    void link(uint32_t node);                               // as the most recently used
    void erase(uint32_t node);                              // REQUIRES it is linked
    uint32_t oldest() const { return nodes_[0].previous; }  // 0: none
    uint32_t block(uint32_t node) const { return nodes_[node].block; }
    uint32_t& pins(uint32_t node) { return nodes_[node].pins; }
    uint32_t pins(uint32_t node) const { return nodes_[node].pins; }
    size_t size() const { return where_.size(); }
    void clear();
    template <typename Visit>
    void each(Visit visit) const {
      for (const auto& [block, node] : where_) visit(block);
    }

   private:
    struct Node {
      uint32_t block = 0;
      uint32_t previous = 0;  // towards the less recently used; of node 0 (the ring's head): the oldest
      uint32_t next = 0;
      uint32_t pins = 0;
    };
    std::vector<Node> nodes_{Node{}};
    std::vector<uint32_t> free_;
    std::unordered_map<uint32_t, uint32_t> where_;
  };

  void make_room(int64_t extra, Changes& changes);

  const int64_t device_capacity_;
  const int64_t host_capacity_;
  Lru device_;
  Lru host_;
  int64_t pinned_ = 0;
  int64_t reserved_ = 0;
  int64_t evicted_ = 0;
};

}  // namespace warmpath
