// BlockChains: an index of blocks under 64-bit keys; those of one bucket are a doubly linked chain through two arrays,
// newest first. A block is under at most one key. Nothing is allocated after construction; everything is O(1) but the
// walk of a chain, which also meets blocks of other keys that share the bucket: whoever walks compares.
//
// Thread safety: none. Keys must be well mixed in their low bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/backend.h"

namespace warmpath {

class BlockChains {
 public:
  explicit BlockChains(int64_t blocks)
      : heads_(std::bit_ceil(static_cast<size_t>(blocks)), kNoBlock), links_(static_cast<size_t>(blocks)) {}

  // The newest block of `key`'s bucket and the next older one; kNoBlock at the end.
  BlockId first(uint64_t key) const { return heads_[bucket(key)]; }
  BlockId next(BlockId block) const { return links_[static_cast<size_t>(block)].next; }

  // REQUIRES that the block is under no key.
  void insert(BlockId block, uint64_t key) {
    BlockId& head = heads_[bucket(key)];
    links_[static_cast<size_t>(block)] = {head, kNoBlock};
    if (head != kNoBlock) links_[static_cast<size_t>(head)].previous = block;
    head = block;
  }
  // REQUIRES that the block is under `key`.
  void erase(BlockId block, uint64_t key) {
    const Links links = links_[static_cast<size_t>(block)];
    (links.previous == kNoBlock ? heads_[bucket(key)] : links_[static_cast<size_t>(links.previous)].next) = links.next;
    if (links.next != kNoBlock) links_[static_cast<size_t>(links.next)].previous = links.previous;
    links_[static_cast<size_t>(block)] = {};
  }

  size_t buckets() const { return heads_.size(); }
  size_t bucket(uint64_t key) const { return key & (heads_.size() - 1); }
  BlockId head(size_t bucket) const { return heads_[bucket]; }

 private:
  struct Links {
    BlockId next = kNoBlock;
    BlockId previous = kNoBlock;
  };
  std::vector<BlockId> heads_;  // a power of two
  std::vector<Links> links_;    // of each block
};

}  // namespace warmpath
