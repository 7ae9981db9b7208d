#include "text/bpe_model.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace warmpath {
namespace {

// Above this many bytes buckets beat scanning (measured: equal at about 100 on text, far better beyond).
constexpr size_t kLongPiece = 128;

}  // namespace

BpeModel::BpeModel(const std::array<TokenId, 256>& byte_ids, const std::vector<Merge>& merges)
    : byte_ids_(byte_ids), merge_count_(merges.size()) {
  slots_.resize(std::bit_ceil(std::max<size_t>(merges.size() * 2, 16)));
  mask_ = slots_.size() - 1;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    slots_[slot_of(merge.left, merge.right)] = {merge.left, merge.right, static_cast<uint32_t>(rank), merge.joined};
  }
}

void BpeModel::encode(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const {
  if (piece.size() <= kLongPiece) {
    encode_by_scanning(piece, scratch, out);
  } else {
    encode_by_buckets(piece, scratch, out);
  }
}

void BpeModel::encode_by_scanning(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const {
  if (scratch.ids.size() <= piece.size()) {
    scratch.ids.resize(piece.size() + 1);
    scratch.ranks.resize(piece.size() + 1);
    scratch.joined.resize(piece.size() + 1);
  }
  TokenId* ids = scratch.ids.data();
  uint32_t* ranks = scratch.ranks.data();   // ranks[i]: of the pair (i, i + 1)
  TokenId* joined = scratch.joined.data();  // joined[i]: what that pair becomes
  size_t count = 0;
  for (const char byte : piece) {
    const TokenId id = byte_ids_[static_cast<uint8_t>(byte)];
    if (id >= 0) ids[count++] = id;
  }
  const auto rank_pair = [&](size_t at) {
    const Slot& slot = find(ids[at], ids[at + 1]);
    ranks[at] = slot.rank;
    joined[at] = slot.joined;
  };
  for (size_t at = 0; at + 1 < count; ++at) rank_pair(at);
  while (count > 1) {
    size_t best = 0;
    for (size_t at = 1; at + 1 < count; ++at) best = ranks[at] < ranks[best] ? at : best;
    if (ranks[best] == kNoRank) break;
    ids[best] = joined[best];
    std::copy(ids + best + 2, ids + count, ids + best + 1);
    std::copy(ranks + best + 2, ranks + count, ranks + best + 1);
    std::copy(joined + best + 2, joined + count, joined + best + 1);
    --count;
    if (best > 0) rank_pair(best - 1);
    if (best + 1 < count) rank_pair(best);
  }
  out.insert(out.end(), ids, ids + count);
}

void BpeModel::encode_by_buckets(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const {
  auto& symbols = scratch.symbols;
  symbols.clear();
  symbols.reserve(piece.size());
  for (const char byte : piece) {
    const TokenId id = byte_ids_[static_cast<uint8_t>(byte)];
    if (id < 0) continue;
    const auto at = static_cast<int32_t>(symbols.size());
    symbols.push_back({id, at - 1, at + 1});
  }
  const auto count = static_cast<int32_t>(symbols.size());
  scratch.bucket_of_rank.resize(merge_count_, -1);
  auto& heap = scratch.rank_heap;  // distinct ranks that have a bucket, smallest first
  heap.clear();
  scratch.free_buckets.clear();
  for (size_t bucket = 0; bucket < scratch.buckets.size(); ++bucket) {
    scratch.free_buckets.push_back(static_cast<int32_t>(bucket));
  }

  const auto push = [&](int32_t at) {
    const BpeScratch::Symbol& symbol = symbols[static_cast<size_t>(at)];
    if (symbol.after >= count) return;
    const uint32_t rank = find(symbol.id, symbols[static_cast<size_t>(symbol.after)].id).rank;
    if (rank == kNoRank) return;
    int32_t& bucket = scratch.bucket_of_rank[rank];
    if (bucket < 0) {
      if (scratch.free_buckets.empty()) {
        scratch.free_buckets.push_back(static_cast<int32_t>(scratch.buckets.size()));
        scratch.buckets.emplace_back();
      }
      bucket = scratch.free_buckets.back();
      scratch.free_buckets.pop_back();
      heap.push_back(rank);
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
    scratch.buckets[static_cast<size_t>(bucket)].push_back(static_cast<uint32_t>(at));
  };
  for (int32_t at = 0; at < count; ++at) push(at);

  std::vector<uint32_t> positions;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const uint32_t rank = heap.back();
    heap.pop_back();
    const int32_t bucket = scratch.bucket_of_rank[rank];
    scratch.bucket_of_rank[rank] = -1;
    positions.clear();
    positions.swap(scratch.buckets[static_cast<size_t>(bucket)]);
    scratch.free_buckets.push_back(bucket);
    if (!std::is_sorted(positions.begin(), positions.end())) std::sort(positions.begin(), positions.end());

    for (size_t next = 0; next < positions.size(); ++next) {
      // A merge list may let a join make a pair that stands earlier in the list: that one comes first.
      if (!heap.empty() && heap.front() < rank) {
        for (; next < positions.size(); ++next) push(static_cast<int32_t>(positions[next]));
        break;
      }
      const auto at = static_cast<int32_t>(positions[next]);
      BpeScratch::Symbol& symbol = symbols[static_cast<size_t>(at)];
      if (symbol.id < 0 || symbol.after >= count) continue;  // joined into its left neighbour meanwhile
      BpeScratch::Symbol& right = symbols[static_cast<size_t>(symbol.after)];
      const Slot& slot = find(symbol.id, right.id);
      if (slot.rank != rank) continue;  // one of the two has changed meanwhile
      symbol.id = slot.joined;
      symbol.after = right.after;
      right.id = -1;
      if (symbol.after < count) symbols[static_cast<size_t>(symbol.after)].before = at;
      push(at);
      if (symbol.before >= 0) push(symbol.before);
    }
  }
  for (int32_t at = 0; at < count; at = symbols[static_cast<size_t>(at)].after) {
    out.push_back(symbols[static_cast<size_t>(at)].id);
  }
}

}  // namespace warmpath
