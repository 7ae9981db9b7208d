#include "loadtest/simulate/block_cache.h"

namespace warmpath {

void BlockCache::Changes::clear() {
  stored.clear();
  removed.clear();
  host_stored.clear();
  host_removed.clear();
}

// The ring: head.next is the most recently used, head.previous the oldest.
uint32_t BlockCache::Lru::find(uint32_t block) const {
  const auto found = where_.find(block);
  return found == where_.end() ? kNone : found->second;
}

void BlockCache::Lru::link(uint32_t node) {
  const uint32_t first = nodes_[0].next;
  nodes_[node].next = first;
  nodes_[node].previous = 0;
  nodes_[first].previous = node;
  nodes_[0].next = node;
}

void BlockCache::Lru::unlink(uint32_t node) {
  nodes_[nodes_[node].previous].next = nodes_[node].next;
  nodes_[nodes_[node].next].previous = nodes_[node].previous;
}

void BlockCache::Lru::push(uint32_t block) {
  uint32_t node = static_cast<uint32_t>(nodes_.size());
  if (free_.empty()) {
    nodes_.emplace_back();
  } else {
    node = free_.back();
    free_.pop_back();
  }
  nodes_[node].block = block;
  nodes_[node].pins = 0;
  where_[block] = node;
  link(node);
}

void BlockCache::Lru::touch(uint32_t node) {
  unlink(node);
  link(node);
}

void BlockCache::Lru::erase(uint32_t node) {
  unlink(node);
  where_.erase(nodes_[node].block);
  free_.push_back(node);
}

void BlockCache::Lru::clear() {
  nodes_.assign(1, Node{});
  free_.clear();
  where_.clear();
}

BlockCache::BlockCache(int64_t device_blocks, int64_t host_blocks)
    : device_capacity_(device_blocks), host_capacity_(host_blocks) {}

void BlockCache::use(uint32_t block, Changes& changes) {
  const uint32_t node = device_.find(block);
  if (node != kNone) {
    if (device_.pins(node) == 0) device_.touch(node);
    return;
  }
  make_room(1, changes);
  if (const uint32_t below = host_.find(block); below != kNone) host_.touch(below);
  device_.push(block);
  changes.stored.push_back(block);
}

void BlockCache::pin(uint32_t block) {
  const uint32_t node = device_.find(block);
  if (device_.pins(node)++ > 0) return;
  device_.unlink(node);
  ++pinned_;
}

void BlockCache::unpin(uint32_t block) {
  const uint32_t node = device_.find(block);
  if (node == kNone || device_.pins(node) == 0 || --device_.pins(node) > 0) return;
  device_.link(node);
  --pinned_;
}

bool BlockCache::is_pinned(uint32_t block) const {
  const uint32_t node = device_.find(block);
  return node != kNone && device_.pins(node) > 0;
}

bool BlockCache::has_room(int64_t blocks) const { return pinned_ + reserved_ + blocks <= device_capacity_; }

void BlockCache::reserve(int64_t blocks, Changes& changes) {
  make_room(blocks, changes);
  reserved_ += blocks;
}

void BlockCache::make_room(int64_t extra, Changes& changes) {
  while (device_blocks() + reserved_ + extra > device_capacity_) {
    const uint32_t node = device_.oldest();
    if (node == 0) return;  // all that is left is pinned
    const uint32_t block = device_.block(node);
    device_.erase(node);
    changes.removed.push_back(block);
    ++evicted_;
    if (host_capacity_ == 0 || host_.find(block) != kNone) continue;
    if (static_cast<int64_t>(host_.size()) >= host_capacity_) {
      const uint32_t last = host_.oldest();
      changes.host_removed.push_back(host_.block(last));
      host_.erase(last);
    }
    host_.push(block);
    changes.host_stored.push_back(block);
  }
}

void BlockCache::clear() {
  device_.clear();
  host_.clear();
  pinned_ = 0;
  reserved_ = 0;
}

}  // namespace warmpath
