#include "text/bpe_model.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <unordered_map>
#include <utility>

namespace warmpath {
namespace {

// Above this many symbols buckets beat scanning (measured: equal at about 100 on text, far better beyond).
constexpr size_t kLongPiece = 128;

}  // namespace

BpeModel::BpeModel(const std::array<TokenId, 256>& byte_ids, const std::vector<Merge>& merges) : byte_ids_(byte_ids) {
  slots_.resize(std::bit_ceil(std::max<size_t>(merges.size() * 2, 16)));
  mask_ = slots_.size() - 1;
  uint32_t ranks = 0;
  for (const Merge& merge : merges) ranks = std::max(ranks, merge.rank + 1);
  constexpr TokenId kUnset = -2;
  joined_of_rank_.assign(ranks, kUnset);
  for (const Merge& merge : merges) {
    slots_[slot_of(merge.left, merge.right)] = {merge.left, merge.right, merge.rank, merge.joined};
    TokenId& only = joined_of_rank_[merge.rank];
    only = only == kUnset || only == merge.joined ? merge.joined : -1;
  }
  rank_of_bytes_.assign(size_t{1} << 16, kNoRank);
  for (uint32_t pair = 0; pair < rank_of_bytes_.size(); ++pair) {
    const TokenId left = byte_ids_[pair >> 8];
    const TokenId right = byte_ids_[pair & 0xFF];
    if (left >= 0 && right >= 0) rank_of_bytes_[pair] = rank_of(left, right);
  }
  std::unordered_map<TokenId, uint32_t> last_made;  // token -> highest rank that makes it
  for (const Merge& merge : merges) {
    const auto [made, added] = last_made.try_emplace(merge.joined, merge.rank);
    made->second = std::max(made->second, merge.rank);
  }
  for (const Merge& merge : merges) {
    for (const TokenId part : {merge.left, merge.right}) {
      const auto made = last_made.find(part);
      ordered_ = ordered_ && (made == last_made.end() || made->second < merge.rank);
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
  merge_by_scanning(count, scratch, out);
}

void BpeModel::merge_by_scanning(size_t count, BpeScratch& scratch, std::vector<TokenId>& out) const {
  TokenId* ids = scratch.ids.data();
  uint32_t* ranks = scratch.ranks.data();
  while (count > 1) {
    size_t best = 0;
    for (size_t at = 1; at + 1 < count; ++at) best = ranks[at] < ranks[best] ? at : best;
    if (ranks[best] == kNoRank) break;
    ids[best] = joined(ranks[best], ids[best], ids[best + 1]);
    std::copy(ids + best + 2, ids + count, ids + best + 1);
    std::copy(ranks + best + 2, ranks + count, ranks + best + 1);
    --count;
    if (best > 0) ranks[best - 1] = rank_of(ids[best - 1], ids[best]);
    if (best + 1 < count) ranks[best] = rank_of(ids[best], ids[best + 1]);
  }
  out.insert(out.end(), ids, ids + count);
}

void BpeModel::merge(BpeScratch& scratch, std::vector<TokenId>& out) const {
  const std::vector<TokenId>& initial = scratch.initial;
  const size_t count = initial.size();
  if (count <= kLongPiece) {
    if (scratch.ids.size() <= count) {
      scratch.ids.resize(count + 1);
      scratch.ranks.resize(count + 1);
    }
    std::copy(initial.begin(), initial.end(), scratch.ids.begin());
    for (size_t at = 0; at + 1 < count; ++at) scratch.ranks[at] = rank_of(initial[at], initial[at + 1]);
    return merge_by_scanning(count, scratch, out);
  }
  scratch.symbols.clear();
  for (size_t at = 0; at < count; ++at) {
    scratch.symbols.push_back({initial[at], static_cast<int32_t>(at) - 1, static_cast<int32_t>(at) + 1});
  }
  merge_by_buckets(scratch, out);
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
  merge_by_buckets(scratch, out);
}

class BpeModel::BucketMerge {
 public:
  BucketMerge(const BpeModel& model, BpeScratch& scratch)
      : model_(model),
        scratch_(scratch),
        symbols_(scratch.symbols.data()),
        count_(static_cast<int32_t>(scratch.symbols.size())),
        heap_(scratch.rank_heap) {
    scratch.bucket_of_rank.resize(model.joined_of_rank_.size(), -1);
    heap_.clear();
    scratch.free_buckets.clear();
    for (size_t bucket = 0; bucket < scratch.buckets.size(); ++bucket) {
      scratch.free_buckets.push_back(static_cast<int32_t>(bucket));
    }
    for (int32_t at = 0; at < count_; ++at) file(at);
  }

  void run() {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const uint32_t rank = heap_.back();
      heap_.pop_back();
      if (model_.ordered_) {
        join_all(rank);
      } else {
        join_while_lowest(rank);
      }
    }
  }

 private:
  // Files the pair that starts at `at` under its rank.
  void file(int32_t at) {
    if (symbols_[at].after >= count_) return;
    const uint32_t rank = model_.rank_of(symbols_[at].id, symbols_[symbols_[at].after].id);
    if (rank == kNoRank) return;
    int32_t& index = scratch_.bucket_of_rank[rank];
    if (index < 0) {
      if (scratch_.free_buckets.empty()) {
        scratch_.free_buckets.push_back(static_cast<int32_t>(scratch_.buckets.size()));
        scratch_.buckets.emplace_back();
      }
      index = scratch_.free_buckets.back();
      scratch_.free_buckets.pop_back();
      heap_.push_back(rank);
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
    BpeScratch::Bucket& bucket = scratch_.buckets[static_cast<size_t>(index)];
    if (bucket.open) {
      bucket.late.push_back(static_cast<uint32_t>(at));
      std::push_heap(bucket.late.begin(), bucket.late.end(), std::greater<>());
    } else {
      bucket.positions.push_back(static_cast<uint32_t>(at));
    }
  }

  // Joins the pair at `at` unless it was joined into its left neighbour or changed since it was filed.
  bool join(int32_t at, uint32_t rank) {
    if (symbols_[at].id < 0 || symbols_[at].after >= count_) return false;
    const int32_t right = symbols_[at].after;
    if (model_.rank_of(symbols_[at].id, symbols_[right].id) != rank) return false;
    symbols_[at].id = model_.joined(rank, symbols_[at].id, symbols_[right].id);
    symbols_[at].after = symbols_[right].after;
    symbols_[right].id = -1;
    if (symbols_[at].after < count_) symbols_[symbols_[at].after].before = at;
    return true;
  }

  // Nothing that these joins make comes before what is still to be done at this rank, so it can be filed afterwards,
  // each pair once: a left neighbour that was joined too files the pair itself.
  void join_all(uint32_t rank) {
    const auto index = static_cast<size_t>(std::exchange(scratch_.bucket_of_rank[rank], -1));
    positions_.clear();
    positions_.swap(scratch_.buckets[index].positions);
    scratch_.free_buckets.push_back(static_cast<int32_t>(index));
    if (!std::is_sorted(positions_.begin(), positions_.end())) std::sort(positions_.begin(), positions_.end());
    size_t merged = 0;  // positions_[0 ... merged) were joined
    for (const uint32_t position : positions_) {
      if (join(static_cast<int32_t>(position), rank)) positions_[merged++] = position;
    }
    for (size_t next = 0; next < merged; ++next) {
      const auto at = static_cast<int32_t>(positions_[next]);
      file(at);
      const int32_t before = symbols_[at].before;
      if (before >= 0 && (next == 0 || static_cast<int32_t>(positions_[next - 1]) != before)) file(before);
    }
  }

  // Position after position, until a join has made a pair of a lower rank; then the rest waits in the open bucket.
  void join_while_lowest(uint32_t rank) {
    const auto index = static_cast<size_t>(scratch_.bucket_of_rank[rank]);
    if (BpeScratch::Bucket& bucket = scratch_.buckets[index]; !bucket.open) {
      std::sort(bucket.positions.begin(), bucket.positions.end());
      bucket.open = true;
    }
    for (;;) {
      BpeScratch::Bucket& bucket = scratch_.buckets[index];  // file() may move the buckets
      const bool more = bucket.next < bucket.positions.size();
      if (!more && bucket.late.empty()) break;
      uint32_t position;
      if (bucket.late.empty() || (more && bucket.positions[bucket.next] <= bucket.late.front())) {
        position = bucket.positions[bucket.next++];
      } else {
        std::pop_heap(bucket.late.begin(), bucket.late.end(), std::greater<>());
        position = bucket.late.back();
        bucket.late.pop_back();
      }
      const auto at = static_cast<int32_t>(position);
      if (!join(at, rank)) continue;
      file(at);
      if (symbols_[at].before >= 0) file(symbols_[at].before);
      if (!heap_.empty() && heap_.front() < rank) {
        heap_.push_back(rank);
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
        return;
      }
    }
    BpeScratch::Bucket& bucket = scratch_.buckets[index];
    bucket.positions.clear();
    bucket.next = 0;
    bucket.open = false;
    scratch_.bucket_of_rank[rank] = -1;
    scratch_.free_buckets.push_back(static_cast<int32_t>(index));
  }

  const BpeModel& model_;
  BpeScratch& scratch_;
  BpeScratch::Symbol* symbols_;
  const int32_t count_;
  std::vector<uint32_t>& heap_;
  std::vector<uint32_t> positions_;
};

void BpeModel::merge_by_buckets(BpeScratch& scratch, std::vector<TokenId>& out) const {
  BucketMerge(*this, scratch).run();
  const auto& symbols = scratch.symbols;
  const auto count = static_cast<int32_t>(symbols.size());
  for (int32_t at = 0; at < count; at = symbols[static_cast<size_t>(at)].after) {
    out.push_back(symbols[static_cast<size_t>(at)].id);
  }
}

}  // namespace warmpath
