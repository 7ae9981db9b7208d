// BpeModel: byte-pair encoding inside one piece of text: start from one token a byte, then again and again join the
// neighbours whose merge stands first in the merge list (leftmost of equals), until none can be joined.
//
// Two ways to the same answer: a scan over all neighbours per merge for short pieces, and buckets of positions per
// merge rank for long ones, O(n log n) in time and about 40 bytes a byte in memory. Thread safety: immutable after
// create(); each thread brings its own BpeScratch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/token.h"

namespace warmpath {

// Working memory of one encoding thread.
struct BpeScratch {
  // A symbol of a long piece: its token and its neighbours' positions.
  struct Symbol {
    TokenId id;
    int32_t before;
    int32_t after;
  };
  std::vector<Symbol> symbols;
  std::vector<TokenId> ids;
  std::vector<uint32_t> ranks;
  std::vector<std::vector<uint32_t>> buckets;  // positions whose pair has the rank of the bucket
  std::vector<int32_t> bucket_of_rank;         // -1: none
  std::vector<uint32_t> rank_heap;             // distinct ranks that have a bucket, smallest first
  std::vector<int32_t> free_buckets;
};

class BpeModel {
 public:
  static constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();

  struct Merge {
    TokenId left;
    TokenId right;
    TokenId joined;
  };

  // `byte_ids`: the token of each byte, -1 where there is none (such bytes are left out). `merges`: most wanted first;
  // of equal pairs the last counts, as in Hugging Face tokenizers.
  BpeModel(const std::array<TokenId, 256>& byte_ids, const std::vector<Merge>& merges);

  // Appends the ids of `piece` to `out`.
  void encode(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const;
  // The two ways, for tests: both take any piece.
  void encode_by_scanning(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const;
  void encode_by_buckets(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const;

 private:
  // One slot of the open-addressed table of merges.
  struct Slot {
    TokenId left = -1;
    TokenId right = -1;
    uint32_t rank = kNoRank;
  };
  // Where the merge of (left, right) is or belongs.
  size_t slot_of(TokenId left, TokenId right) const {
    size_t at = hash(left, right) & mask_;
    while (slots_[at].left >= 0 && (slots_[at].left != left || slots_[at].right != right)) at = (at + 1) & mask_;
    return at;
  }
  // kNoRank when the two cannot be joined.
  uint32_t rank_of(TokenId left, TokenId right) const { return slots_[slot_of(left, right)].rank; }
  static size_t hash(TokenId left, TokenId right) {
    const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
    const uint64_t mixed = key * 0x9E3779B97F4A7C15ull;  // golden ratio, Fibonacci hashing
    return static_cast<size_t>(mixed ^ mixed >> 32);
  }
  void merge_by_buckets(BpeScratch& scratch) const;

  std::array<TokenId, 256> byte_ids_;
  std::vector<Slot> slots_;
  size_t mask_ = 0;
  std::vector<TokenId> joined_of_rank_;
  std::vector<uint32_t> rank_of_bytes_;  // [first byte << 8 | second byte]: every piece starts with these
  // Whether no join makes a pair that stands earlier in the list than the join itself, which is so in every list that
  // training made.
  bool ordered_ = true;
};

}  // namespace warmpath
