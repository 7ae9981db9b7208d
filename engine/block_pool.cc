#include "engine/block_pool.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace warmpath {

// The free list is the eviction list.
//
// A block that loses its last reference is not erased: it keeps its identity and moves to the end of a list, and the
// block that acquire() hands out next is the one at the front of it. So "free" and "least recently used" are one
// structure, a hit is an unlink from the middle, and nothing ever searches for a victim.
//
// The list is cut into three shelves. `empty` blocks hold nothing worth keeping and go first. `cached` blocks hold KV
// that a later prompt may start with; they go oldest first. `pinned` blocks were asked for by a hint and go when
// nothing else is left, so that a pin can never stop a running request. Each shelf is a circular list through a dummy
// head, linked by ids inside the blocks.
//
// A chain is only as useful as its head: a block whose parent is gone can't be reached. Sequences therefore give their
// blocks back last first, which puts leaves in front of their parents; since whoever references a block references its
// parents too, a parent is never older than its children.
//
// Two sequences may compute the same block at the same time, so duplicates exist and are counted one by one (vLLM's
// block tables are append-only for the same reason). When a spare copy loses its last reference it is forgotten at once
// and the copy that stays takes its place in the order.
//
// A block that is not full yet is content too: what a prompt ends with, or an answer, is what the next prompt of the
// session goes on from, and up to 15 tokens computed again at the end of a long context cost more than a decode step.
// Such a block has no identity and no one hears of it; find_beginning() finds it, or the beginning of a whole block,
// by its tokens, for a caller that copies it. It is forgotten as a spare is, once another block holds all of it.
//
// Identities are hashes, and a wrong hit would put one conversation's KV under another's tokens. A hit therefore
// compares the 16 tokens, and the *lineage* of the parent: a number shared by exactly those blocks whose whole history
// is equal token by token. It is given at commit: the number of a resident equal block, or a new one. By induction from
// the root, a hit is a hit even if XXH3 collides. Roots are compared by their 128 bits: they hash the replica's own
// fingerprint and the tenant's salt, not a prompt. The price: if a parent goes before its child after all (hints can do
// that), the child isn't found again, and goes in its turn.

BlockPool::BlockPool(int64_t blocks, BlockListener* listener, bool keep_released)
    : total_(blocks),
      listener_(listener),
      keep_released_(keep_released),
      blocks_(static_cast<size_t>(blocks) + kShelves),
      by_identity_(blocks),
      by_beginning_(blocks) {
  WARMPATH_CHECK(blocks > 0 && blocks < std::numeric_limits<BlockId>::max() - kShelves, "block count out of range");
  for (const Shelf shelf : {kEmpty, kCached, kPinned}) {
    const BlockId head = shelf_head(shelf);
    at(head).next = at(head).previous = head;
    at(head).shelf = shelf;
  }
  for (int64_t block = 0; block < blocks; ++block) shelve_last(static_cast<BlockId>(block), kEmpty);
}

void BlockPool::unlink(BlockId block) {
  Block& entry = at(block);
  at(entry.previous).next = entry.next;
  at(entry.next).previous = entry.previous;
  --shelf_size_[entry.shelf];
  entry.next = entry.previous = kNoBlock;
  entry.shelf = kInUse;
}

void BlockPool::link_before(BlockId block, BlockId where, Shelf shelf) {
  Block& entry = at(block);
  entry.next = where;
  entry.previous = at(where).previous;
  at(entry.previous).next = block;
  at(where).previous = block;
  entry.shelf = shelf;
  ++shelf_size_[shelf];
}

bool BlockPool::acquire(int64_t count, std::vector<BlockId>& table) {
  if (count > available()) return false;
  for (int64_t taken = 0; taken < count; ++taken) {
    Shelf shelf = kEmpty;
    while (shelf_size_[shelf] == 0) shelf = static_cast<Shelf>(shelf + 1);
    const BlockId block = at(shelf_head(shelf)).next;
    unlink(block);
    if (!at(block).identity.is_zero()) ++evicted_;
    if (at(block).filled > 0) drop_content(block);
    at(block).references = 1;
    table.push_back(block);
  }
  return true;
}

BlockId BlockPool::find(BlockId parent, const BlockContent& content) const {
  const uint64_t parent_lineage = lineage_of(parent);
  for (BlockId block = by_identity_.first(content.identity.lo); block != kNoBlock; block = by_identity_.next(block)) {
    const Block& entry = at(block);
    if (entry.identity == content.identity && entry.parent_lineage == parent_lineage &&
        entry.parent == content.parent && entry.tokens == content.tokens) {
      return block;
    }
  }
  return kNoBlock;
}

uint64_t BlockPool::beginning_key(Hash128 parent, TokenId first) {
  // The parent is a hash already; an odd factor spreads the token over the bits that the next one down doesn't reach.
  const uint64_t key = parent.lo ^ (static_cast<uint64_t>(static_cast<uint32_t>(first)) * 0x9e3779b97f4a7c15u);
  return key ^ (key >> 32);
}

BlockPool::Beginning BlockPool::find_beginning(BlockId parent, const BlockContent& content) const {
  const uint64_t parent_lineage = lineage_of(parent);
  Beginning best;
  int looked_at = 0;
  for (BlockId block = by_beginning_.first(beginning_key(content.parent, content.tokens[0]));
       block != kNoBlock && looked_at < kMostSiblings && best.tokens < content.count;
       block = by_beginning_.next(block), ++looked_at) {
    const Block& entry = at(block);
    if (entry.parent_lineage != parent_lineage || entry.parent != content.parent) continue;
    const auto most = entry.tokens.begin() + std::min(entry.filled, content.count);
    const auto equal = std::mismatch(entry.tokens.begin(), most, content.tokens.begin()).first - entry.tokens.begin();
    if (equal > best.tokens) best = {block, static_cast<int32_t>(equal)};
  }
  return best;
}

BlockId BlockPool::find_identity(Hash128 identity) const {
  BlockId block = by_identity_.first(identity.lo);
  while (block != kNoBlock && at(block).identity != identity) block = by_identity_.next(block);
  return block;
}

bool BlockPool::covers(BlockId other, BlockId block) const {
  const Block& more = at(other);
  const Block& less = at(block);
  return other != block && more.filled >= less.filled && more.parent_lineage == less.parent_lineage &&
         more.parent == less.parent &&
         std::equal(less.tokens.begin(), less.tokens.begin() + less.filled, more.tokens.begin());
}

BlockId BlockPool::find_cover(BlockId block) const {
  if (!at(block).identity.is_zero()) {
    BlockId other = by_identity_.first(at(block).identity.lo);
    while (other != kNoBlock && (other == block || at(other).lineage != at(block).lineage)) {
      other = by_identity_.next(other);
    }
    return other;
  }
  BlockId other = by_beginning_.first(beginning_key(block));
  for (int looked_at = 0; other != kNoBlock && looked_at < kMostSiblings; ++looked_at) {
    if (covers(other, block)) return other;
    other = by_beginning_.next(other);
  }
  return kNoBlock;
}

void BlockPool::drop_covered(BlockId block) {
  BlockId other = by_beginning_.first(beginning_key(block));
  for (int looked_at = 0; other != kNoBlock && looked_at < kMostSiblings; ++looked_at) {
    const BlockId next = by_beginning_.next(other);
    if (at(other).references == 0 && at(other).identity.is_zero() && covers(block, other)) {
      unlink(other);
      drop_content(other);
      shelve_last(other, kEmpty);
    }
    other = next;
  }
}

void BlockPool::reference(BlockId block) {
  if (at(block).references++ == 0) unlink(block);
}

void BlockPool::release(std::span<const BlockId> table) {
  for (size_t index = table.size(); index-- > 0;) {
    Block& entry = at(table[index]);
    WARMPATH_DCHECK(entry.references > 0, "a block is released once per reference");
    if (--entry.references == 0) put_back(table[index]);
  }
}

void BlockPool::put_back(BlockId block) {
  Block& entry = at(block);
  if (entry.filled > 0) {
    const BlockId cover = find_cover(block);
    if (cover != kNoBlock) {
      at(cover).pinned_until = std::max(at(cover).pinned_until, entry.pinned_until);
      if (at(cover).references == 0) {
        unlink(cover);
        shelve_last(cover, at(cover).pinned_until > now_ ? kPinned : kCached);
      }
    }
    if (cover != kNoBlock || !keep_released_) {
      drop_content(block);
    } else {
      drop_covered(block);
    }
  }
  if (entry.filled == 0) {
    shelve_last(block, kEmpty);
  } else {
    shelve_last(block, entry.pinned_until > now_ ? kPinned : kCached);
  }
}

void BlockPool::commit(BlockId block, BlockId parent, const BlockContent& content) {
  Block& entry = at(block);
  WARMPATH_DCHECK(entry.references > 0 && entry.identity.is_zero(), "only a block being written can be committed");
  WARMPATH_DCHECK(parent == kNoBlock || at(parent).identity == content.parent, "the parent must be committed first");
  WARMPATH_DCHECK(content.count > 0 && content.count >= entry.filled, "a block's content only grows");
  WARMPATH_DCHECK(content.identity.is_zero() == (content.count < kBlockTokens), "whole blocks have an identity");
  if (entry.filled == 0) {
    entry.parent = content.parent;
    entry.parent_lineage = lineage_of(parent);
    by_beginning_.insert(block, beginning_key(content.parent, content.tokens[0]));
  }
  entry.tokens = content.tokens;
  entry.filled = content.count;
  if (content.count < kBlockTokens) return;
  const BlockId equal = find(parent, content);
  entry.lineage = equal == kNoBlock ? ++last_lineage_ : at(equal).lineage;
  entry.identity = content.identity;
  by_identity_.insert(block, content.identity.lo);
  if (listener_ != nullptr) listener_->on_stored(content.parent, content.identity);
}

void BlockPool::drop_content(BlockId block) {
  Block& entry = at(block);
  by_beginning_.erase(block, beginning_key(block));
  if (!entry.identity.is_zero()) {
    by_identity_.erase(block, entry.identity.lo);
    if (listener_ != nullptr) listener_->on_removed(entry.identity);
  }
  entry.identity = entry.parent = Hash128{};
  entry.lineage = entry.parent_lineage = 0;
  entry.pinned_until = 0;
  entry.filled = 0;
}

void BlockPool::forget(BlockId block) {
  if (at(block).filled == 0) return;
  drop_content(block);
  if (at(block).references == 0) {
    unlink(block);
    shelve_last(block, kEmpty);
  }
}

int32_t BlockPool::pin(std::span<const Hash128> identities, MonotonicNs until) {
  int32_t resident = 0;
  // Last first, as in release(): when these pins end, leaves are in front again.
  for (size_t index = identities.size(); index-- > 0;) {
    BlockId block = find_identity(identities[index]);
    if (block != kNoBlock) ++resident;
    while (block != kNoBlock && at(block).pinned_until < until) {
      const BlockId parent = find_identity(at(block).parent);
      at(block).pinned_until = until;
      if (at(block).references == 0) {
        unlink(block);
        put_back(block);
      }
      block = parent;
    }
  }
  return resident;
}

int32_t BlockPool::demote(std::span<const Hash128> identities) {
  int32_t resident = 0;
  for (const Hash128& identity : identities) {
    const BlockId block = find_identity(identity);
    if (block == kNoBlock) continue;
    ++resident;
    at(block).pinned_until = 0;
    if (at(block).references > 0) continue;
    unlink(block);
    shelve_first(block, kCached);
  }
  return resident;
}

void BlockPool::advance_clock(MonotonicNs now) {
  now_ = now;
  if (shelf_size_[kPinned] == 0 || now < next_pin_scan_) return;
  next_pin_scan_ = now + kPinGranularityNs;
  for (BlockId block = at(shelf_head(kPinned)).next; block != shelf_head(kPinned);) {
    const BlockId next = at(block).next;
    if (at(block).pinned_until <= now) {
      unlink(block);
      shelve_last(block, kCached);
    }
    block = next;
  }
}

std::vector<Hash128> BlockPool::next_to_go(int64_t limit) const {
  std::vector<Hash128> identities;
  BlockId block = at(shelf_head(kCached)).next;
  for (; block != shelf_head(kCached) && static_cast<int64_t>(identities.size()) < limit; block = at(block).next) {
    if (!at(block).identity.is_zero()) identities.push_back(at(block).identity);
  }
  return identities;
}

}  // namespace warmpath
