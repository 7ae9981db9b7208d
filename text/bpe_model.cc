#include "text/bpe_model.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <unordered_map>
#include <utility>

namespace warmpath {
namespace {

// Above this many bytes buckets beat scanning (measured: equal at about 100 on text, far better beyond).
constexpr size_t kLongPiece = 128;

}  // namespace

BpeModel::BpeModel(const std::array<TokenId, 256>& byte_ids, const std::vector<Merge>& merges) : byte_ids_(byte_ids) {
  slots_.resize(std::bit_ceil(std::max<size_t>(merges.size() * 2, 16)));
  mask_ = slots_.size() - 1;
  joined_of_rank_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    slots_[slot_of(merge.left, merge.right)] = {merge.left, merge.right, static_cast<uint32_t>(rank)};
    joined_of_rank_.push_back(merge.joined);
  }
  rank_of_bytes_.assign(size_t{1} << 16, kNoRank);
  for (uint32_t pair = 0; pair < rank_of_bytes_.size(); ++pair) {
    const TokenId left = byte_ids_[pair >> 8];
    const TokenId right = byte_ids_[pair & 0xFF];
    if (left >= 0 && right >= 0) rank_of_bytes_[pair] = rank_of(left, right);
  }
  std::unordered_map<TokenId, size_t> last_made;  // token -> last rank that makes it
  for (size_t rank = 0; rank < merges.size(); ++rank) last_made[merges[rank].joined] = rank;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    for (const TokenId part : {merges[rank].left, merges[rank].right}) {
      const auto made = last_made.find(part);
      ordered_ = ordered_ && (made == last_made.end() || made->second < rank);
    }
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
  }
  TokenId* ids = scratch.ids.data();
  uint32_t* ranks = scratch.ranks.data();  // ranks[i]: of the pair (i, i + 1)
  size_t count = 0;
  uint32_t bytes = 0;  // the last two
  for (const char character : piece) {
    const auto byte = static_cast<uint8_t>(character);
    if (byte_ids_[byte] < 0) continue;
    bytes = (bytes << 8 | byte) & 0xFFFF;
    if (count > 0) ranks[count - 1] = rank_of_bytes_[bytes];
    ids[count++] = byte_ids_[byte];
  }
  while (count > 1) {
    size_t best = 0;
    for (size_t at = 1; at + 1 < count; ++at) best = ranks[at] < ranks[best] ? at : best;
    if (ranks[best] == kNoRank) break;
    ids[best] = joined_of_rank_[ranks[best]];
    std::copy(ids + best + 2, ids + count, ids + best + 1);
    std::copy(ranks + best + 2, ranks + count, ranks + best + 1);
    --count;
    if (best > 0) ranks[best - 1] = rank_of(ids[best - 1], ids[best]);
    if (best + 1 < count) ranks[best] = rank_of(ids[best], ids[best + 1]);
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
  merge_by_buckets(scratch);
  const auto count = static_cast<int32_t>(symbols.size());
  for (int32_t at = 0; at < count; at = symbols[static_cast<size_t>(at)].after) {
    out.push_back(symbols[static_cast<size_t>(at)].id);
  }
}

void BpeModel::merge_by_buckets(BpeScratch& scratch) const {
  BpeScratch::Symbol* symbols = scratch.symbols.data();
  const auto count = static_cast<int32_t>(scratch.symbols.size());
  scratch.bucket_of_rank.resize(joined_of_rank_.size(), -1);
  auto& heap = scratch.rank_heap;
  heap.clear();
  scratch.free_buckets.clear();
  for (size_t bucket = 0; bucket < scratch.buckets.size(); ++bucket) {
    scratch.free_buckets.push_back(static_cast<int32_t>(bucket));
  }
  // Files the pair that starts at `at` under its rank.
  const auto file = [&](int32_t at) {
    if (symbols[at].after >= count) return;
    const uint32_t rank = rank_of(symbols[at].id, symbols[symbols[at].after].id);
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
  for (int32_t at = 0; at < count; ++at) file(at);

  std::vector<uint32_t> positions;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const uint32_t rank = heap.back();
    heap.pop_back();
    const int32_t bucket = std::exchange(scratch.bucket_of_rank[rank], -1);
    positions.clear();
    positions.swap(scratch.buckets[static_cast<size_t>(bucket)]);
    scratch.free_buckets.push_back(bucket);
    if (!std::is_sorted(positions.begin(), positions.end())) std::sort(positions.begin(), positions.end());

    const TokenId joined = joined_of_rank_[rank];
    size_t merged = 0;  // positions[0 ... merged) were joined
    for (size_t next = 0; next < positions.size(); ++next) {
      const auto at = static_cast<int32_t>(positions[next]);
      if (symbols[at].id < 0 || symbols[at].after >= count) continue;  // joined into its left neighbour meanwhile
      const int32_t right = symbols[at].after;
      if (rank_of(symbols[at].id, symbols[right].id) != rank) continue;  // one of the two has changed meanwhile
      symbols[at].id = joined;
      symbols[at].after = symbols[right].after;
      symbols[right].id = -1;
      if (symbols[at].after < count) symbols[symbols[at].after].before = at;
      if (ordered_) {
        positions[merged++] = positions[next];
        continue;
      }
      // This list may hold a pair of the new symbol that comes before `rank`: then that one is next.
      file(at);
      if (symbols[at].before >= 0) file(symbols[at].before);
      if (!heap.empty() && heap.front() < rank) {
        for (++next; next < positions.size(); ++next) {
          if (symbols[positions[next]].id >= 0) file(static_cast<int32_t>(positions[next]));
        }
      }
    }
    // Nothing that these joins made comes before what is still to be done at this rank, so it can be filed now, each
    // pair once: a left neighbour that was joined too files the pair itself.
    for (size_t next = 0; next < merged; ++next) {
      const auto at = static_cast<int32_t>(positions[next]);
      file(at);
      const int32_t before = symbols[at].before;
      if (before >= 0 && (next == 0 || static_cast<int32_t>(positions[next - 1]) != before)) file(before);
    }
  }
}

}  // namespace warmpath
