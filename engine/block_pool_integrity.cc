// BlockPool::check_integrity(): every invariant of block_pool.h, from the blocks themselves.
#include <unordered_map>

#include "base/check.h"
#include "engine/block_pool.h"

namespace warmpath {

void BlockPool::check_integrity() const {
  int64_t on_shelves = 0;
  for (const Shelf shelf : {kEmpty, kCached, kPinned}) {
    int64_t size = 0;
    for (BlockId block = at(shelf_head(shelf)).next; block != shelf_head(shelf); block = at(block).next) {
      WARMPATH_CHECK(++size <= total_, "a shelf is not a circle");
      WARMPATH_CHECK(at(block).shelf == shelf && at(block).references == 0, "a referenced block is on a shelf");
      WARMPATH_CHECK(at(at(block).next).previous == block, "a shelf's links disagree");
      WARMPATH_CHECK((at(block).filled == 0) == (shelf == kEmpty), "a block is on the wrong shelf");
    }
    WARMPATH_CHECK(size == shelf_size_[shelf], "a shelf's size is wrong");
    on_shelves += size;
  }
  int64_t referenced = 0, whole = 0, filled = 0;
  std::unordered_map<uint64_t, BlockId> lineages;
  for (BlockId block = 0; block < total_; ++block) {
    const Block& entry = at(block);
    WARMPATH_CHECK(entry.references >= 0, "a block was released too often");
    WARMPATH_CHECK((entry.shelf == kInUse) == (entry.references > 0), "an unreferenced block is on no shelf");
    if (entry.references > 0) ++referenced;
    WARMPATH_CHECK(entry.filled >= 0 && entry.filled <= kBlockTokens, "a block holds more than it can");
    WARMPATH_CHECK(entry.identity.is_zero() == (entry.lineage == 0), "identity and lineage go together");
    WARMPATH_CHECK(entry.identity.is_zero() == (entry.filled < kBlockTokens), "whole blocks have an identity");
    if (entry.filled > 0) ++filled;
    if (entry.identity.is_zero()) continue;
    ++whole;
    const Block& first = at(lineages.try_emplace(entry.lineage, block).first->second);
    WARMPATH_CHECK(first.identity == entry.identity && first.parent_lineage == entry.parent_lineage &&
                       first.tokens == entry.tokens,
                   "one lineage, two contents");
  }
  const auto indexed = [&](const BlockChains& chains, auto&& key_of) {
    int64_t size = 0;
    for (size_t bucket = 0; bucket < chains.buckets(); ++bucket) {
      for (BlockId block = chains.head(bucket); block != kNoBlock; block = chains.next(block)) {
        WARMPATH_CHECK(++size <= total_, "an index chain is a circle");
        WARMPATH_CHECK(at(block).filled > 0 && chains.bucket(key_of(block)) == bucket, "a block is in a wrong chain");
      }
    }
    return size;
  };
  WARMPATH_CHECK(on_shelves + referenced == total_, "blocks were lost");
  WARMPATH_CHECK(indexed(by_identity_, [&](BlockId block) { return at(block).identity.lo; }) == whole,
                 "the index of identities and the blocks disagree");
  WARMPATH_CHECK(indexed(by_beginning_, [&](BlockId block) { return beginning_key(block); }) == filled,
                 "the index of beginnings and the blocks disagree");
}

}  // namespace warmpath
