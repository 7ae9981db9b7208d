#include "engine/block_pool.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>

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
      buckets_(std::bit_ceil(static_cast<size_t>(blocks)), kNoBlock) {
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
    if (!at(block).identity.is_zero()) {
      ++evicted_;
      drop_content(block);
    }
    at(block).references = 1;
    table.push_back(block);
  }
  return true;
}

BlockId BlockPool::find(BlockId parent, const BlockContent& content) const {
  const uint64_t parent_lineage = parent == kNoBlock ? 0 : at(parent).lineage;
  for (BlockId block = buckets_[bucket_of(content.identity)]; block != kNoBlock; block = at(block).next_in_bucket) {
    const Block& entry = at(block);
    if (entry.identity == content.identity && entry.parent_lineage == parent_lineage &&
        entry.parent == content.parent && entry.tokens == content.tokens) {
      return block;
    }
  }
  return kNoBlock;
}

BlockId BlockPool::find_identity(Hash128 identity) const {
  BlockId block = buckets_[bucket_of(identity)];
  while (block != kNoBlock && at(block).identity != identity) block = at(block).next_in_bucket;
  return block;
}

BlockId BlockPool::find_spare(BlockId block) const {
  BlockId other = buckets_[bucket_of(at(block).identity)];
  while (other != kNoBlock && (other == block || at(other).lineage != at(block).lineage)) {
    other = at(other).next_in_bucket;
  }
  return other;
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
  if (!entry.identity.is_zero()) {
    const BlockId spare = find_spare(block);
    if (spare != kNoBlock) {
      at(spare).pinned_until = std::max(at(spare).pinned_until, entry.pinned_until);
      if (at(spare).references == 0) {
        unlink(spare);
        shelve_last(spare, at(spare).pinned_until > now_ ? kPinned : kCached);
      }
    }
    if (spare != kNoBlock || !keep_released_) drop_content(block);
  }
  if (entry.identity.is_zero()) {
    shelve_last(block, kEmpty);
  } else {
    shelve_last(block, entry.pinned_until > now_ ? kPinned : kCached);
  }
}

void BlockPool::commit(BlockId block, BlockId parent, const BlockContent& content) {
  Block& entry = at(block);
  WARMPATH_DCHECK(entry.references > 0 && entry.identity.is_zero(), "only a fresh block in use can be committed");
  WARMPATH_DCHECK(parent == kNoBlock || at(parent).identity == content.parent, "the parent must be committed first");
  WARMPATH_DCHECK(!content.identity.is_zero(), "zero means no identity");
  const BlockId equal = find(parent, content);
  entry.lineage = equal == kNoBlock ? ++last_lineage_ : at(equal).lineage;
  entry.parent_lineage = parent == kNoBlock ? 0 : at(parent).lineage;
  entry.identity = content.identity;
  entry.parent = content.parent;
  entry.tokens = content.tokens;
  BlockId& bucket = buckets_[bucket_of(content.identity)];
  entry.next_in_bucket = bucket;
  bucket = block;
  if (listener_ != nullptr) listener_->on_stored(content.parent, content.identity);
}

void BlockPool::drop_content(BlockId block) {
  Block& entry = at(block);
  BlockId* link = &buckets_[bucket_of(entry.identity)];
  while (*link != block) link = &at(*link).next_in_bucket;
  *link = entry.next_in_bucket;
  if (listener_ != nullptr) listener_->on_removed(entry.identity);
  entry.next_in_bucket = kNoBlock;
  entry.identity = entry.parent = Hash128{};
  entry.lineage = entry.parent_lineage = 0;
  entry.pinned_until = 0;
}

void BlockPool::forget(BlockId block) {
  if (at(block).identity.is_zero()) return;
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
    identities.push_back(at(block).identity);
  }
  return identities;
}

void BlockPool::check_integrity() const {
  int64_t on_shelves = 0;
  for (const Shelf shelf : {kEmpty, kCached, kPinned}) {
    int64_t size = 0;
    for (BlockId block = at(shelf_head(shelf)).next; block != shelf_head(shelf); block = at(block).next) {
      WARMPATH_CHECK(++size <= total_, "a shelf is not a circle");
      WARMPATH_CHECK(at(block).shelf == shelf && at(block).references == 0, "a referenced block is on a shelf");
      WARMPATH_CHECK(at(at(block).next).previous == block, "a shelf's links disagree");
      WARMPATH_CHECK(at(block).identity.is_zero() == (shelf == kEmpty), "a block is on the wrong shelf");
    }
    WARMPATH_CHECK(size == shelf_size_[shelf], "a shelf's size is wrong");
    on_shelves += size;
  }
  int64_t referenced = 0, resident = 0, indexed = 0;
  std::unordered_map<uint64_t, BlockId> lineages;
  for (BlockId block = 0; block < total_; ++block) {
    const Block& entry = at(block);
    WARMPATH_CHECK(entry.references >= 0, "a block was released too often");
    WARMPATH_CHECK((entry.shelf == kInUse) == (entry.references > 0), "an unreferenced block is on no shelf");
    if (entry.references > 0) ++referenced;
    WARMPATH_CHECK(entry.identity.is_zero() == (entry.lineage == 0), "content and lineage go together");
    if (entry.identity.is_zero()) continue;
    ++resident;
    const Block& first = at(lineages.try_emplace(entry.lineage, block).first->second);
    WARMPATH_CHECK(first.identity == entry.identity && first.parent_lineage == entry.parent_lineage &&
                       first.tokens == entry.tokens,
                   "one lineage, two contents");
  }
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (BlockId block = buckets_[bucket]; block != kNoBlock; block = at(block).next_in_bucket) {
      WARMPATH_CHECK(++indexed <= total_, "an index chain is a circle");
      WARMPATH_CHECK(bucket_of(at(block).identity) == bucket && at(block).lineage != 0, "a block is in a wrong chain");
    }
  }
  WARMPATH_CHECK(on_shelves + referenced == total_, "blocks were lost");
  WARMPATH_CHECK(indexed == resident, "the index and the blocks disagree");
}

}  // namespace warmpath
