// BlockPool: who holds which KV block, what is cached in it, and which block goes next when one is needed.
//
// The pool deals in ids only; the KV itself lies with the backend. Everything it does is O(1) per block and allocates
// nothing after construction.
//
// Thread safety: none; the engine's loop thread owns it.
// Invariants (check_integrity() proves them)
//  (1) A block is either referenced (references > 0) or on exactly one shelf of the free list.
//  (2) A block holds cached KV exactly when its identity is not zero; then it is in the index, referenced or not.
//  (3) Two blocks have the same lineage exactly when they hold the KV of the same tokens after the same tokens.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/hash128.h"
#include "base/token.h"
#include "engine/backend.h"

namespace warmpath {

inline constexpr BlockId kNoBlock = -1;

// What a whole block holds: 16 tokens after a parent.
struct BlockContent {
  Hash128 parent;    // the parent block's identity, or the chain root
  Hash128 identity;  // of this block; never zero
  std::array<TokenId, kBlockTokens> tokens;
};

// Hears of every copy that becomes resident or goes.
class BlockListener {
 public:
  virtual ~BlockListener() = default;
  virtual void on_stored(Hash128 parent, Hash128 identity) = 0;
  virtual void on_removed(Hash128 identity) = 0;
};

class BlockPool {
 public:
  // `listener` may be null and must outlive the pool. Without `keep_released` a block is forgotten as soon as nothing
  // references it (the prefix cache is off; choices of one request still share).
  BlockPool(int64_t blocks, BlockListener* listener, bool keep_released = true);

  // Appends `count` blocks with one reference and no content to `table`, evicting as needed; false, and nothing done,
  // when fewer are available.
  bool acquire(int64_t count, std::vector<BlockId>& table);

  // The block that holds exactly `content` after what `parent` holds (kNoBlock = after the chain root), or kNoBlock.
  // Tokens are compared, not only identities. It may be unreferenced: take a reference before the next acquire().
  BlockId find(BlockId parent, const BlockContent& content) const;
  void reference(BlockId block);
  // Gives back one reference to each, last first, so that the tail of a sequence is evicted before its head.
  void release(std::span<const BlockId> table);

  // `block` (referenced, without content) now holds `content`'s KV; find() sees it from here on.
  // REQUIRES `parent` to hold content whose identity is content.parent, or to be kNoBlock.
  void commit(BlockId block, BlockId parent, const BlockContent& content);
  // The block's KV is not to be trusted any more. Referenced or not, it stays where it is.
  void forget(BlockId block);

  // Keeps these blocks and their ancestors, once unreferenced, behind all unpinned ones until `until`. A pin is a
  // preference: when nothing else is left, pinned blocks go too. Returns how many of `identities` are resident.
  int32_t pin(std::span<const Hash128> identities, MonotonicNs until);
  // Unpins; those unreferenced go next, last first. Returns how many are resident.
  int32_t demote(std::span<const Hash128> identities);
  // Tells the pool the time. Pins end at most kPinGranularityNs late.
  void advance_clock(MonotonicNs now);
  static constexpr MonotonicNs kPinGranularityNs = 100'000'000;

  int64_t total() const { return total_; }
  int64_t available() const { return shelf_size_[kEmpty] + shelf_size_[kCached] + shelf_size_[kPinned]; }
  int64_t empty() const { return shelf_size_[kEmpty]; }  // neither referenced nor cached
  int64_t cached() const { return shelf_size_[kCached] + shelf_size_[kPinned]; }
  int64_t used() const { return total_ - available(); }
  int64_t evicted() const { return evicted_; }  // since construction
  int32_t references(BlockId block) const { return at(block).references; }
  Hash128 identity(BlockId block) const { return at(block).identity; }

  // Every resident copy: (parent identity, identity).
  template <typename Visitor>
  void for_each_resident(Visitor visit) const {
    for (int64_t block = 0; block < total_; ++block) {
      if (!blocks_[block].identity.is_zero()) visit(blocks_[block].parent, blocks_[block].identity);
    }
  }
  // The unpinned cached blocks that would be evicted first, at most `limit`.
  std::vector<Hash128> next_to_go(int64_t limit) const;

  // Ends the process when an invariant does not hold.
  void check_integrity() const;

 private:
  // The free list: three shelves, emptied in this order.
  enum Shelf : int8_t { kInUse = -1, kEmpty = 0, kCached = 1, kPinned = 2 };
  static constexpr int kShelves = 3;

  struct Block {
    Hash128 identity;  // zero: no content
    Hash128 parent;
    std::array<TokenId, kBlockTokens> tokens;
    uint64_t lineage = 0;         // see invariant (3); 0 = none
    uint64_t parent_lineage = 0;  // 0 = the parent is the chain root
    MonotonicNs pinned_until = 0;
    BlockId next_in_bucket = kNoBlock;
    BlockId next = kNoBlock;  // on its shelf
    BlockId previous = kNoBlock;
    int32_t references = 0;
    Shelf shelf = kInUse;
  };

  Block& at(BlockId block) { return blocks_[static_cast<size_t>(block)]; }
  const Block& at(BlockId block) const { return blocks_[static_cast<size_t>(block)]; }
  BlockId shelf_head(Shelf shelf) const { return static_cast<BlockId>(total_ + shelf); }
  size_t bucket_of(Hash128 identity) const { return identity.lo & (buckets_.size() - 1); }
  BlockId find_identity(Hash128 identity) const;
  BlockId find_spare(BlockId block) const;

  void unlink(BlockId block);
  void link_before(BlockId block, BlockId where, Shelf shelf);
  void shelve_last(BlockId block, Shelf shelf) { link_before(block, shelf_head(shelf), shelf); }
  void shelve_first(BlockId block, Shelf shelf) { link_before(block, at(shelf_head(shelf)).next, shelf); }
  void put_back(BlockId block);
  void drop_content(BlockId block);

  const int64_t total_;
  BlockListener* const listener_;
  const bool keep_released_;
  std::vector<Block> blocks_;     // [total] and then the shelves' dummy heads
  std::vector<BlockId> buckets_;  // heads of the index's chains; a power of two
  int64_t shelf_size_[kShelves] = {0, 0, 0};
  int64_t evicted_ = 0;
  uint64_t last_lineage_ = 0;
  MonotonicNs now_ = 0;
  MonotonicNs next_pin_scan_ = 0;
};

}  // namespace warmpath
