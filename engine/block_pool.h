// BlockPool: who holds which KV block, what is cached in it, and which block goes next when one is needed.
//
// The pool deals in ids only; the KV itself lies with the backend. Everything it does is O(1) per block and allocates
// nothing after construction.
//
// Thread safety: none; the engine's loop thread owns it.
// Invariants (check_integrity() proves them)
//  (1) A block is either referenced (references > 0) or on exactly one shelf of the free list.
//  (2) A block holds the KV of its first filled() tokens, and is in the index of beginnings when there are any. It is
//      whole, has an identity and is in the index of identities exactly when it is full. Referenced or not.
//  (3) Two whole blocks have the same lineage exactly when they hold the KV of the same tokens after the same tokens.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/hash128.h"
#include "base/token.h"
#include "engine/backend.h"
#include "engine/block_chains.h"

namespace warmpath {

// What a block holds: tokens after a parent.
struct BlockContent {
  Hash128 parent;    // the parent block's identity, or the chain root
  Hash128 identity;  // of this block; zero exactly when it is not whole
  std::array<TokenId, kBlockTokens> tokens;
  int32_t count = kBlockTokens;  // of the tokens, 1..16: only so many are there
};

// Hears of every whole copy that becomes resident or goes.
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

  // The whole block that holds exactly `content` after what `parent` holds (kNoBlock = after the chain root), or
  // kNoBlock. Tokens are compared, not only identities. It may be unreferenced: take a reference before the next
  // acquire().
  BlockId find(BlockId parent, const BlockContent& content) const;
  // A block, whole or not, that begins with the most of `content`'s tokens after what `parent` holds, and how many
  // those are; kNoBlock and 0 when none shares the first. Looks at the newest kMostSiblings that do. As for find(), it
  // may be unreferenced.
  struct Beginning {
    BlockId block = kNoBlock;
    int32_t tokens = 0;
  };
  Beginning find_beginning(BlockId parent, const BlockContent& content) const;
  static constexpr int kMostSiblings = 64;
  void reference(BlockId block);
  // Gives back one reference to each, last first, so that the tail of a sequence is evicted before its head.
  void release(std::span<const BlockId> table);

  // `block` (referenced, not whole) now holds `content`'s KV; find_beginning() and, once it is whole, find() see it
  // from here on. REQUIRES what the block held to be the beginning of `content`, and `parent` to hold content whose
  // identity is content.parent, or to be kNoBlock.
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
  int64_t evicted() const { return evicted_; }  // whole blocks, since construction
  int32_t references(BlockId block) const { return at(block).references; }
  int32_t filled(BlockId block) const { return at(block).filled; }
  Hash128 identity(BlockId block) const { return at(block).identity; }

  // Every resident whole copy: (parent identity, identity).
  template <typename Visitor>
  void for_each_resident(Visitor visit) const {
    for (int64_t block = 0; block < total_; ++block) {
      if (!blocks_[block].identity.is_zero()) visit(blocks_[block].parent, blocks_[block].identity);
    }
  }
  // The unpinned whole blocks that would be evicted first, at most `limit`.
  std::vector<Hash128> next_to_go(int64_t limit) const;

  // Ends the process when an invariant does not hold.
  void check_integrity() const;

 private:
  // The free list: three shelves, emptied in this order.
  enum Shelf : int8_t { kInUse = -1, kEmpty = 0, kCached = 1, kPinned = 2 };
  static constexpr int kShelves = 3;

  struct Block {
    Hash128 identity;  // zero: not whole
    Hash128 parent;
    std::array<TokenId, kBlockTokens> tokens;  // the first `filled`
    uint64_t lineage = 0;                      // see invariant (3); 0 = not whole
    uint64_t parent_lineage = 0;               // 0 = the parent is the chain root
    MonotonicNs pinned_until = 0;
    BlockId next = kNoBlock;  // on its shelf
    BlockId previous = kNoBlock;
    int32_t references = 0;
    int32_t filled = 0;  // tokens whose KV it holds
    Shelf shelf = kInUse;
  };

  Block& at(BlockId block) { return blocks_[static_cast<size_t>(block)]; }
  const Block& at(BlockId block) const { return blocks_[static_cast<size_t>(block)]; }
  BlockId shelf_head(Shelf shelf) const { return static_cast<BlockId>(total_ + shelf); }
  uint64_t lineage_of(BlockId parent) const { return parent == kNoBlock ? 0 : at(parent).lineage; }
  // Where blocks that begin alike are found.
  static uint64_t beginning_key(Hash128 parent, TokenId first);
  uint64_t beginning_key(BlockId block) const { return beginning_key(at(block).parent, at(block).tokens[0]); }
  BlockId find_identity(Hash128 identity) const;
  // Whether `other` holds everything that `block` does, after the same tokens.
  bool covers(BlockId other, BlockId block) const;
  BlockId find_cover(BlockId block) const;
  void drop_covered(BlockId block);

  void unlink(BlockId block);
  void link_before(BlockId block, BlockId where, Shelf shelf);
  void shelve_last(BlockId block, Shelf shelf) { link_before(block, shelf_head(shelf), shelf); }
  void shelve_first(BlockId block, Shelf shelf) { link_before(block, at(shelf_head(shelf)).next, shelf); }
  void put_back(BlockId block);
  void drop_content(BlockId block);

  const int64_t total_;
  BlockListener* const listener_;
  const bool keep_released_;
  std::vector<Block> blocks_;  // [total] and then the shelves' dummy heads
  BlockChains by_identity_;    // whole blocks
  BlockChains by_beginning_;   // all with content, by parent and first token
  int64_t shelf_size_[kShelves] = {0, 0, 0};
  int64_t evicted_ = 0;
  uint64_t last_lineage_ = 0;
  MonotonicNs now_ = 0;
  MonotonicNs next_pin_scan_ = 0;
};

}  // namespace warmpath
