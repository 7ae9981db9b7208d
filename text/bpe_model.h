// BpeModel: byte-pair encoding inside one piece of text: start from one token a byte (or a character, see merge()),
// then again and again join the neighbours whose merge has the lowest rank (leftmost of equals), until none can be
// joined. Ranks are positions in a merge list, or, for SentencePiece, the order of the joined tokens' scores.
//
// Two ways to the same answer: a scan over all neighbours per merge for short pieces, and buckets of positions per
// rank for long ones, O(n log n) in time and about 40 bytes a symbol in memory. Thread safety: immutable once built;
// each thread brings its own BpeScratch.
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
  // Positions whose pair has one rank. `late` is a heap, smallest first, of those filed after the bucket was opened.
  struct Bucket {
    std::vector<uint32_t> positions;
    std::vector<uint32_t> late;
    size_t next = 0;  // into positions
    bool open = false;
  };
  std::vector<Symbol> symbols;
  std::vector<TokenId> initial;  // what merge() starts from
  // Of a short piece, by the position of a symbol's first byte.
  struct Small {
    std::vector<uint64_t> keys;  // rank of the pair that begins here, then the position; no pair: kNoRank
    std::vector<TokenId> ids;
    std::vector<TokenId> joined;  // what the pair becomes
    std::vector<int32_t> before;  // positions of the neighbours
    std::vector<int32_t> after;
    void grow(size_t count);
  };
  Small small;
  std::vector<Bucket> buckets;
  std::vector<int32_t> bucket_of_rank;  // -1: none
  std::vector<uint32_t> rank_heap;      // distinct ranks that have a bucket, smallest first
  std::vector<int32_t> free_buckets;
};

class BpeModel {
 public:
  static constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();

  struct Merge {
    TokenId left;
    TokenId right;
    TokenId joined;
    uint32_t rank;  // lowest first; merges may share one
  };

  // `byte_ids`: the token of each byte, -1 where there is none (such bytes are left out). Of merges of one pair the
  // last counts, as in Hugging Face tokenizers. REQUIRES ranks below 2^31.
  BpeModel(const std::array<TokenId, 256>& byte_ids, const std::vector<Merge>& merges);

  // Appends the ids of `piece` to `out`.
  void encode(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const;
  // The same from the tokens in `scratch.initial`.
  void merge(BpeScratch& scratch, std::vector<TokenId>& out) const;
  // The two ways, for tests: both take any piece.
  void encode_by_scanning(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const;
  void encode_by_buckets(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const;

 private:
  // One slot of the open-addressed table of merges.
  struct Slot {
    TokenId left = -1;
    TokenId right = -1;
    uint32_t rank = kNoRank;
    TokenId joined = -1;
  };
  // Where the merge of (left, right) is or belongs.
  size_t slot_of(TokenId left, TokenId right) const {
    size_t at = hash(left, right) & mask_;
    while (slots_[at].left >= 0 && (slots_[at].left != left || slots_[at].right != right)) at = (at + 1) & mask_;
    return at;
  }
  // What two neighbours become, and when.
  struct Pair {
    uint32_t rank = kNoRank;  // kNoRank: they cannot be joined
    TokenId joined = -1;
  };
  // Most pairs cannot be joined: a table of bits, which fits into a core's own cache, knows nearly all of those.
  Pair pair_of(TokenId left, TokenId right) const {
    const size_t bit = hash(left, right) & filter_mask_;
    if ((filter_[bit >> 6] >> (bit & 63) & 1) == 0) return {};
    const Slot& slot = slots_[slot_of(left, right)];
    return {slot.rank, slot.joined};
  }
  uint32_t rank_of(TokenId left, TokenId right) const { return pair_of(left, right).rank; }
  static size_t hash(TokenId left, TokenId right) {
    const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
    const uint64_t mixed = key * 0x9E3779B97F4A7C15ull;  // golden ratio, Fibonacci hashing
    return static_cast<size_t>(mixed ^ mixed >> 32);
  }
  TokenId joined(uint32_t rank, TokenId left, TokenId right) const {
    const TokenId only = joined_of_rank_[rank];
    return only >= 0 ? only : slots_[slot_of(left, right)].joined;
  }
  // `count` tokens in scratch.small.ids, what their pairs become in keys and joined.
  void merge_by_scanning(size_t count, BpeScratch& scratch, std::vector<TokenId>& out) const;
  // The tokens in scratch.symbols.
  void merge_by_buckets(BpeScratch& scratch, std::vector<TokenId>& out) const;
  // One step each: all positions of a bucket, or one position.
  class BucketMerge;

  std::array<TokenId, 256> byte_ids_;
  std::vector<Slot> slots_;
  size_t mask_ = 0;
  std::vector<TokenId> joined_of_rank_;  // -1: several tokens share the rank
  std::vector<uint64_t> filter_;         // a bit for every merge, by its hash
  size_t filter_mask_ = 0;
  std::vector<Pair> pair_of_bytes_;  // [first byte << 8 | second byte]: every piece starts with these
  // Whether no join makes a pair of a lower or equal rank than the join itself, which is so in every list that training
  // made.
  bool ordered_ = true;
};

}  // namespace warmpath
