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
// Bits of the filter per merge, at least: then one pair in five or fewer gets past it for nothing.
constexpr size_t kFilterBits = 4;
constexpr uint64_t kNoKey = uint64_t{BpeModel::kNoRank} << 32;

}  // namespace

void BpeScratch::Small::grow(size_t count) {
  if (ids.size() >= count + 8) return;
  keys.resize(count + 8);
  ids.resize(count + 8);
  joined.resize(count + 8);
  before.resize(count + 8);
  after.resize(count + 8);
}

BpeModel::BpeModel(const std::array<TokenId, 256>& byte_ids, const std::vector<Merge>& merges) : byte_ids_(byte_ids) {
  slots_.resize(std::bit_ceil(std::max<size_t>(merges.size() * 2, 16)));
  mask_ = slots_.size() - 1;
  uint32_t ranks = 0;
  for (const Merge& merge : merges) ranks = std::max(ranks, merge.rank + 1);
  constexpr TokenId kUnset = -2;
  joined_of_rank_.assign(ranks, kUnset);
  const size_t filter_bits = std::bit_ceil(std::max<size_t>(merges.size() * kFilterBits, 64));
  filter_.assign(filter_bits / 64, 0);
  filter_mask_ = filter_bits - 1;
  for (const Merge& merge : merges) {
    const size_t bit = hash(merge.left, merge.right) & filter_mask_;
    filter_[bit >> 6] |= uint64_t{1} << (bit & 63);
    slots_[slot_of(merge.left, merge.right)] = {merge.left, merge.right, merge.rank, merge.joined};
    TokenId& only = joined_of_rank_[merge.rank];
    only = only == kUnset || only == merge.joined ? merge.joined : -1;
  }
  pair_of_bytes_.resize(size_t{1} << 16);
  for (uint32_t pair = 0; pair < pair_of_bytes_.size(); ++pair) {
    const TokenId left = byte_ids_[pair >> 8];
    const TokenId right = byte_ids_[pair & 0xFF];
    if (left >= 0 && right >= 0) pair_of_bytes_[pair] = pair_of(left, right);
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
  BpeScratch::Small& small = scratch.small;
  small.grow(piece.size());
  size_t count = 0;
  uint32_t bytes = 0;  // the last two
  for (const char character : piece) {
    const auto byte = static_cast<uint8_t>(character);
    if (byte_ids_[byte] < 0) continue;
    bytes = (bytes << 8 | byte) & 0xFFFF;
    if (count > 0) {
      const Pair& pair = pair_of_bytes_[bytes];
      small.keys[count - 1] = uint64_t{pair.rank} << 32 | (count - 1);
      small.joined[count - 1] = pair.joined;
    }
    small.ids[count++] = byte_ids_[byte];
  }
  merge_by_scanning(count, scratch, out);
}

void BpeModel::merge_by_scanning(size_t count, BpeScratch& scratch, std::vector<TokenId>& out) const {
  if (count == 0) return;
  uint64_t* keys = scratch.small.keys.data();
  TokenId* ids = scratch.small.ids.data();
  TokenId* joined = scratch.small.joined.data();
  int32_t* before = scratch.small.before.data();
  int32_t* after = scratch.small.after.data();
  const auto end = static_cast<int32_t>(count);
  for (int32_t at = 0; at < end; ++at) {
    before[at] = at - 1;
    after[at] = at + 1;
  }
  std::fill(keys + count - 1, keys + count + 4, kNoKey);  // the loop below reads four at a time
  const auto look_up = [&](int32_t left, int32_t right) {
    const Pair pair = pair_of(ids[left], ids[right]);
    keys[left] = uint64_t{pair.rank} << 32 | static_cast<uint32_t>(left);
    joined[left] = pair.joined;
  };
  for (;;) {
    uint64_t lowest[4] = {keys[0], keys[1], keys[2], keys[3]};
    for (size_t at = 4; at < count; at += 4) {
      for (size_t lane = 0; lane < 4; ++lane) lowest[lane] = std::min(lowest[lane], keys[at + lane]);
    }
    const uint64_t best = std::min(std::min(lowest[0], lowest[1]), std::min(lowest[2], lowest[3]));
    if (best >= kNoKey) break;
    const auto left = static_cast<int32_t>(static_cast<uint32_t>(best));
    const int32_t right = after[left];
    const int32_t next = after[right];
    ids[left] = joined[left];
    keys[right] = kNoKey;
    after[left] = next;
    if (before[left] >= 0) look_up(before[left], left);
    if (next < end) {
      before[next] = left;
      look_up(left, next);
    } else {
      keys[left] = kNoKey;
    }
  }
  for (int32_t at = 0; at < end; at = after[at]) out.push_back(ids[at]);
}

void BpeModel::merge(BpeScratch& scratch, std::vector<TokenId>& out) const {
  const std::vector<TokenId>& initial = scratch.initial;
  const size_t count = initial.size();
  if (count <= kLongPiece) {
    BpeScratch::Small& small = scratch.small;
    small.grow(count);
    std::copy(initial.begin(), initial.end(), small.ids.begin());
    for (size_t at = 0; at + 1 < count; ++at) {
      const Pair pair = pair_of(initial[at], initial[at + 1]);
      small.keys[at] = uint64_t{pair.rank} << 32 | at;
      small.joined[at] = pair.joined;
    }
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
