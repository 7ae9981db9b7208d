#include "radix_index/run_store.h"

#include <algorithm>
#include <bit>
#include <bitset>
#include <new>
#include <string>
#include <utility>

#include "base/check.h"

namespace warmpath {

namespace {

// Which blocks of a run somebody covers.
using Cover = std::bitset<kMaxRunBlocks>;

template <typename Span>
void add_cover(std::span<const Span> spans, uint16_t begin, uint16_t end, Cover& cover) {
  for (const Span& span : spans) {
    if (span.begin <= begin && span.end >= end) {
      cover.set();
      return;
    }
    for (uint16_t offset = span.begin; offset < span.end; ++offset) cover.set(offset);
  }
}

}  // namespace

RunStore::RunStore(size_t max_bytes) : memory_(max_bytes) {}

RunStore::~RunStore() {
  for (uint32_t run = 0; run < id_end_; ++run) {
    Slot& left = slot(run);
    if (left.ids == nullptr) continue;
    const RunView* last = left.view.load(std::memory_order_relaxed);
    if (last != nullptr) memory_.release(const_cast<RunView*>(last), last->bytes());
    memory_.release(left.ids - 1, ids_bytes(left.capacity));
  }
}

BlockPlace RunStore::find_next(BlockPlace after, Hash128 identity) const {
  if (after.exists()) {
    const Slot& run = slot(after.run);
    if (after.offset + 1 < run.end && run.ids[after.offset + 1] == identity) return {after.run, after.offset + 1};
  }
  const Found head = find_head(identity);
  return head.view == nullptr ? BlockPlace{} : BlockPlace{head.run, head.view->begin()};
}

uint32_t RunStore::first_child(Hash128 parent) const {
  uint32_t found = UINT32_MAX;
  children_.find(parent, [&](uint32_t child) {
    if (view(child)->parent() != parent) return false;
    found = child;
    return true;
  });
  return found;
}

uint32_t RunStore::child_of(uint32_t run) const {
  const Slot& parent = slot(run);
  uint32_t found = UINT32_MAX;
  for (uint32_t offset = parent.end; offset-- > parent.begin && found == UINT32_MAX;) {
    found = first_child(parent.ids[offset]);
    if (found == run) found = slot(run).sibling_after;
  }
  return found;
}

RunStore::Stretch RunStore::append(Hash128 parent, BlockPlace after, std::span<const Hash128> blocks, uint32_t mark) {
  for (size_t n = 0; n < std::min(blocks.size(), kPrefetchAhead); ++n) blocks_.prefetch(blocks[n]);
  if (find(blocks[0]).exists()) return {};
  uint32_t id;
  if (after.exists() && slot(after.run).end == after.offset + 1 && slot(after.run).end < kMaxRunBlocks) {
    id = after.run;
    Slot& extended = slot(id);
    const auto wanted = static_cast<uint32_t>(std::min<size_t>(extended.end + blocks.size(), kMaxRunBlocks));
    if (extended.written != extended.end || wanted > extended.capacity) {
      const uint32_t growth = std::max<uint32_t>(extended.end / 4u, 4);
      move_ids(id, std::min(kMaxRunBlocks, std::max<uint32_t>(wanted, extended.end + growth)), false);
    }
  } else {
    id = new_run(parent, static_cast<uint32_t>(std::min<size_t>(blocks.size(), kMaxRunBlocks)));
  }
  Slot& target = slot(id);
  const uint16_t begin = target.end;
  for (size_t n = 0; n < blocks.size() && target.end < target.capacity; ++n) {
    if (n + kPrefetchAhead < blocks.size()) blocks_.prefetch(blocks[n + kPrefetchAhead]);
    if (n > 0 && find(blocks[n]).exists()) break;
    target.ids[target.end++] = blocks[n];
    blocks_.insert(blocks[n], id);
  }
  target.written = target.end;
  touch(id, mark);
  return {id, begin, target.end};
}

bool RunStore::renew_placed(uint32_t run, uint16_t key, uint16_t begin, uint16_t end, MonotonicNs expires) {
  const RunView* seen = view(run);
  if (seen == nullptr) return false;
  const PlacedSpan* span = find_span<PlacedSpan>(seen->placed(), key, begin);
  if (span == nullptr || span->begin != begin || span->end != end) return false;
  // With a neighbour of the same key it might have to become one span.
  const PlacedSpan* const first = seen->placed().data();
  if (span != first && span[-1].key == key) return false;
  if (span + 1 != first + seen->placed().size() && span[1].key == key) return false;
  std::atomic_ref<MonotonicNs>(const_cast<PlacedSpan*>(span)->expires_ns).store(expires, std::memory_order_relaxed);
  return true;
}

bool RunStore::join(uint32_t left, uint32_t right) {
  if (left == right) return false;
  const Slot& from = slot(right);
  const auto size = static_cast<uint32_t>(from.end - from.begin);
  if (from.ids[from.begin - 1] != slot(left).ids[slot(left).end - 1] || slot(left).end + size > kMaxRunBlocks) {
    return false;
  }
  const RunView& now = *view(left);
  const RunView& tail = *view(right);
  draft_.held.assign(now.held());
  draft_.placed.assign(now.placed());
  if (slot(left).written != slot(left).end || slot(left).end + size > slot(left).capacity) {
    move_ids(left, slot(left).end + size, false);
  }
  Slot& into = slot(left);
  const int shift = into.end - from.begin;
  for (uint16_t offset = from.begin; offset < from.end; ++offset) {
    blocks_.move(from.ids[offset], right, left);
    into.ids[into.end++] = from.ids[offset];
  }
  into.written = into.end;
  draft_.held.add_part(tail.held(), from.begin, from.end, shift);
  draft_.placed.add_part(tail.placed(), from.begin, from.end, shift);
  touch(left, from.last_used.load(std::memory_order_relaxed));
  publish(left);
  free_run(right);
  return true;
}

void RunStore::drop_run(uint32_t run) {
  const Slot& dropped = slot(run);
  for (uint16_t offset = dropped.begin; offset < dropped.end; ++offset) {
    if (offset + kPrefetchAhead < dropped.end) blocks_.prefetch(dropped.ids[offset + kPrefetchAhead]);
    blocks_.erase(dropped.ids[offset], run);
  }
  free_run(run);
}

size_t RunStore::bytes() const {
  // Half-empty slabs are no loss while they are few: what comes next fills them. If the sizes that are asked for have
  // changed so much that they do not, they count.
  const size_t used = memory_.used_bytes();
  const size_t tolerated = used + used / 2 + (size_t{16} << 20);
  const size_t lost = memory_.taken_bytes() > tolerated ? memory_.taken_bytes() - tolerated : 0;
  return used - epochs_.retired_bytes() + lost + id_end_ * sizeof(Slot);
}

uint32_t RunStore::new_run(Hash128 parent, uint32_t capacity) {
  uint32_t id = free_id_;
  if (id != UINT32_MAX) {
    free_id_ = std::exchange(slot(id).sibling_after, UINT32_MAX);
  } else {
    WARMPATH_CHECK(id_end_ < kMaxRuns, "the owner must evict before the run ids are used up");
    slots_.grow_to((id_end_ + size_t{1}) * sizeof(Slot));
    id = id_end_++;
    new (&slot(id)) Slot{};
  }
  ++run_count_;
  capacity = capacity_for(capacity);
  Slot& made = slot(id);
  made.ids = new_ids(capacity);
  made.ids[-1] = parent;
  made.capacity = static_cast<uint16_t>(capacity);
  return id;
}

void RunStore::free_run(uint32_t run) {
  Slot& freed = slot(run);
  const RunView* last = freed.view.load(std::memory_order_relaxed);
  if (last != nullptr) {
    heads_.erase(last->ids()[last->begin()], run);
    unfile_as_child(run, last->parent());
    freed.view.store(nullptr, std::memory_order_release);
    held_spans_ -= last->held().size();
    placed_spans_ -= last->placed().size();
    epochs_.retire(const_cast<RunView*>(last), last->bytes());
  }
  epochs_.retire(freed.ids - 1, ids_bytes(freed.capacity));
  freed.ids = nullptr;
  freed.first_block.store(nullptr, std::memory_order_relaxed);
  freed.last_used.store(0, std::memory_order_relaxed);
  freed.begin = freed.end = freed.written = freed.capacity = 0;
  freed.sibling_after = std::exchange(free_id_, run);
  --run_count_;
}

void RunStore::move_ids(uint32_t run, uint32_t capacity, bool to_front) {
  Slot& moved = slot(run);
  const uint16_t shift = to_front ? moved.begin : 0;
  capacity = capacity_for(capacity);
  Hash128* ids = new_ids(capacity);
  std::copy(moved.ids + shift - 1, moved.ids + moved.end, ids - 1);
  epochs_.retire(moved.ids - 1, ids_bytes(moved.capacity));
  moved.ids = ids;
  moved.begin = static_cast<uint16_t>(moved.begin - shift);
  moved.end = static_cast<uint16_t>(moved.end - shift);
  moved.written = moved.end;
  moved.capacity = static_cast<uint16_t>(capacity);
  if (shift == 0) return;
  part_.held.clear();
  part_.placed.clear();
  part_.held.add_part(draft_.held.spans(), shift, kMaxRunBlocks, -shift);
  part_.placed.add_part(draft_.placed.spans(), shift, kMaxRunBlocks, -shift);
  std::swap(draft_, part_);
}

void RunStore::publish(uint32_t run) {
  Slot& shown = slot(run);
  const RunView* old = shown.view.load(std::memory_order_relaxed);
  const RunView* fresh =
      RunView::make(memory_, shown.ids, shown.begin, shown.end, draft_.held.spans(), draft_.placed.spans());
  shown.view.store(fresh, std::memory_order_release);
  shown.first_block.store(shown.ids + shown.begin, std::memory_order_relaxed);
  held_spans_ += fresh->held().size();
  placed_spans_ += fresh->placed().size();
  const Hash128 first = shown.ids[shown.begin];
  if (old == nullptr) {
    heads_.insert(first, run);
    file_as_child(run, fresh->parent());
  } else {
    // Found by its new first block before it is no longer found by the old one.
    const Hash128 was_first = old->ids()[old->begin()];
    if (first != was_first) {
      heads_.insert(first, run);
      heads_.erase(was_first, run);
      unfile_as_child(run, old->parent());
      file_as_child(run, fresh->parent());
    }
    held_spans_ -= old->held().size();
    placed_spans_ -= old->placed().size();
    epochs_.retire(const_cast<RunView*>(old), old->bytes());
  }
}

void RunStore::file_as_child(uint32_t run, Hash128 parent) {
  const uint32_t first = first_child(parent);
  if (first == UINT32_MAX) {
    children_.insert(parent, run);
    return;
  }
  const uint32_t second = slot(first).sibling_after;
  slot(run).sibling_before = first;
  slot(run).sibling_after = second;
  slot(first).sibling_after = run;
  if (second != UINT32_MAX) slot(second).sibling_before = run;
}

void RunStore::unfile_as_child(uint32_t run, Hash128 parent) {
  Slot& leaving = slot(run);
  const uint32_t before = std::exchange(leaving.sibling_before, UINT32_MAX);
  const uint32_t after = std::exchange(leaving.sibling_after, UINT32_MAX);
  if (after != UINT32_MAX) slot(after).sibling_before = before;
  if (before != UINT32_MAX) {
    slot(before).sibling_after = after;
  } else if (after != UINT32_MAX) {
    children_.replace(parent, run, after);
  } else {
    children_.erase(parent, run);
  }
}

void RunStore::settle(uint32_t run) {
  const Slot& settled = slot(run);
  Cover cover;
  add_cover<HeldSpan>(draft_.held.spans(), settled.begin, settled.end, cover);
  if (!cover.all()) add_cover<PlacedSpan>(draft_.placed.spans(), settled.begin, settled.end, cover);
  if (cover.all()) {
    publish(run);
    return;
  }
  std::array<Piece, kMaxRunBlocks / 2 + 1> pieces;
  size_t count = 0;
  for (uint16_t offset = settled.begin; offset < settled.end;) {
    const bool covered = cover[offset];
    const uint16_t begin = offset;
    while (offset < settled.end && cover[offset] == covered) ++offset;
    if (covered) {
      pieces[count++] = {begin, offset};
      continue;
    }
    for (uint16_t gone = begin; gone < std::min<size_t>(offset, begin + kPrefetchAhead); ++gone) {
      blocks_.prefetch(settled.ids[gone]);
    }
    for (uint16_t gone = begin; gone < offset; ++gone) {
      if (gone + kPrefetchAhead < offset) blocks_.prefetch(settled.ids[gone + kPrefetchAhead]);
      blocks_.erase(settled.ids[gone], run);
    }
  }
  cut(run, {pieces.data(), count});
}

void RunStore::cut(uint32_t run, std::span<const Piece> pieces) {
  if (pieces.empty()) {
    free_run(run);
    return;
  }
  for (size_t n = pieces.size(); n-- > 1;) {
    const auto [begin, end] = pieces[n];
    const uint32_t made = new_run(slot(run).ids[begin - 1], static_cast<uint32_t>(end - begin));
    Slot& piece = slot(made);
    const Slot& whole = slot(run);
    for (uint16_t offset = begin; offset < end; ++offset) {
      blocks_.move(whole.ids[offset], run, made);
      piece.ids[piece.end++] = whole.ids[offset];
    }
    piece.written = piece.end;
    piece.last_used.store(whole.last_used.load(std::memory_order_relaxed), std::memory_order_relaxed);
    part_.held.clear();
    part_.placed.clear();
    part_.held.add_part(draft_.held.spans(), begin, end, -begin);
    part_.placed.add_part(draft_.placed.spans(), begin, end, -begin);
    std::swap(draft_, part_);
    publish(made);
    std::swap(draft_, part_);
  }
  Slot& kept = slot(run);
  const auto [begin, end] = pieces[0];
  if (pieces.size() > 1 || begin != kept.begin || end != kept.end) {
    part_.held.clear();
    part_.placed.clear();
    part_.held.add_part(draft_.held.spans(), begin, end, 0);
    part_.placed.add_part(draft_.placed.spans(), begin, end, 0);
    std::swap(draft_, part_);
    kept.begin = begin;
    kept.end = end;
    // Most of the run is gone: give back its space.
    const auto size = static_cast<uint32_t>(end - begin);
    if (size * 4 <= kept.capacity && kept.capacity > 8) move_ids(run, size, true);
  }
  publish(run);
}

void RunStore::split(BlockPlace place) {
  const uint32_t run = place.run;
  const auto at = static_cast<uint16_t>(place.offset);
  const RunView& now = *view(run);
  if (at == now.begin()) return;
  draft_.held.assign(now.held());
  draft_.placed.assign(now.placed());
  const std::array<Piece, 2> pieces = {{{now.begin(), at}, {at, now.end()}}};
  cut(run, pieces);
}

Status RunStore::check_integrity() const {
  size_t blocks = 0;
  size_t bytes = blocks_.bytes() + heads_.bytes() + children_.bytes() + epochs_.retired_bytes();
  uint32_t runs = 0;
  uint32_t lists = 0;
  uint64_t held = 0;
  uint64_t placed = 0;
  for (uint32_t id = 0; id < id_end_; ++id) {
    if (!in_use(id)) continue;
    const Slot& checked = slot(id);
    const RunView* seen = view(id);
    const std::string where = "run " + std::to_string(id) + ": ";
    ++runs;
    if (seen == nullptr || seen->ids() != checked.ids || seen->begin() != checked.begin || seen->end() != checked.end) {
      return internal_error(where + "readers see another state than the writer");
    }
    bytes += RunMemory::piece_bytes(ids_bytes(checked.capacity)) + RunMemory::piece_bytes(seen->bytes());
    held += seen->held().size();
    placed += seen->placed().size();
    if (checked.begin >= checked.end || checked.end > checked.written || checked.written > checked.capacity ||
        checked.capacity > kMaxRunBlocks) {
      return internal_error(where + "its bounds are wrong");
    }
    for (uint16_t offset = checked.begin; offset < checked.end; ++offset) {
      if (find(checked.ids[offset]) != BlockPlace{id, offset}) {
        return internal_error(where + "block " + std::to_string(offset) + " is not found by its identity");
      }
    }
    if (find_head(checked.ids[checked.begin]).run != id) return internal_error(where + "lookups do not find it");
    const bool first = checked.sibling_before == UINT32_MAX;
    if (first ? first_child(seen->parent()) != id
              : slot(checked.sibling_before).sibling_after != id ||
                    view(checked.sibling_before)->parent() != seen->parent()) {
      return internal_error(where + "is not found by its parent");
    }
    lists += first;
    blocks += checked.end - static_cast<size_t>(checked.begin);
    if (!well_formed<HeldSpan>(seen->held(), checked.begin, checked.end) ||
        !well_formed<PlacedSpan>(seen->placed(), checked.begin, checked.end)) {
      return internal_error(where + "its spans are not sorted, maximal and inside the run");
    }
  }
  if (blocks != blocks_.size()) return internal_error("the table holds another number of blocks than the runs");
  if (runs != run_count() || runs != heads_.size() || lists != children_.size()) {
    return internal_error("a free run id is in use, or lost");
  }
  if (bytes != memory_.used_bytes()) return internal_error("some memory belongs to nobody, or to two");
  if (held != held_spans_ || placed != placed_spans_) return internal_error("the spans are not what was counted");
  return {};
}

}  // namespace warmpath
