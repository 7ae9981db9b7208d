#include "radix_index/run_store.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace warmpath {

BlockPlace RunStore::add_block(Hash128 parent, BlockPlace after, Hash128 identity, uint32_t expected, uint32_t mark) {
  uint32_t id;
  const bool extends = after.exists() && run(after.run).end == after.offset + 1 && run(after.run).end < kMaxRunBlocks;
  if (extends) {
    id = after.run;
    BlockRun& extended = mutable_run(id);
    if (extended.end == extended.capacity) {
      const uint32_t growth = std::max<uint32_t>({expected, extended.capacity / 4u, 4u});
      reserve(extended, std::min(kMaxRunBlocks, extended.capacity + growth));
    }
  } else {
    id = new_run(parent, std::clamp<uint32_t>(expected, 1, kMaxRunBlocks));
  }
  BlockRun& target = mutable_run(id);
  const BlockPlace place{id, target.end};
  target.ids[target.end++] = identity;
  target.touch(mark);
  table_.insert(identity, id);
  return place;
}

void RunStore::drop_blocks(uint32_t id, uint16_t begin, uint16_t end) {
  BlockRun& shrunk = mutable_run(id);
  for (uint16_t offset = begin; offset < end; ++offset) table_.erase(shrunk.ids[offset], id);
  if (begin == shrunk.begin) {
    shrunk.begin = end;
  } else {
    if (end != shrunk.end) split(id, end);
    shrunk.end = begin;
  }
  if (shrunk.size() == 0) {
    free_run(id);
  } else {
    compact(id);
  }
}

void RunStore::settle(uint32_t id) {
  // From the back: the tail that a split cuts off is covered throughout, and what is before `begin` keeps its offsets
  // unless it is moved to the run's front.
  uint32_t end = run(id).end;
  while (end > run(id).begin) {
    if (run(id).covers(static_cast<uint16_t>(end - 1))) {
      --end;
      continue;
    }
    uint32_t begin = end - 1;
    while (begin > run(id).begin && !run(id).covers(static_cast<uint16_t>(begin - 1))) --begin;
    const uint32_t kept = begin - run(id).begin;
    drop_blocks(id, static_cast<uint16_t>(begin), static_cast<uint16_t>(end));
    if (kept == 0 || !in_use(id)) return;
    end = run(id).begin + kept;
  }
}

bool RunStore::join(uint32_t left, uint32_t right) {
  if (left == right) return false;
  BlockRun& into = mutable_run(left);
  BlockRun& from = mutable_run(right);
  if (into.size() + from.size() > kMaxRunBlocks || from.parent() != into.ids[into.end - 1]) return false;
  if (into.end + from.size() > kMaxRunBlocks) return false;
  if (into.end + from.size() > into.capacity) reserve(into, into.end + from.size());
  const auto shift = static_cast<uint16_t>(into.end - from.begin);
  for (uint16_t offset = from.begin; offset < from.end; ++offset) {
    table_.move(from.ids[offset], right, left);
    into.ids[into.end++] = from.ids[offset];
  }
  bytes_ -= into.heap_size();
  into.held.append(from.held, shift);
  if (from.placed) {
    if (!into.placed) into.placed = std::make_unique<SpanList<PlacedSpan>>();
    into.placed->append(*from.placed, shift);
  }
  bytes_ += into.heap_size();
  into.touch(from.last_used);
  free_run(right);
  return true;
}

void RunStore::drop_run(uint32_t id) {
  const BlockRun& dropped = run(id);
  for (uint16_t offset = dropped.begin; offset < dropped.end; ++offset) {
    table_.erase(dropped.ids[offset], id);
  }
  free_run(id);
}

size_t RunStore::bytes() const {
  return bytes_ + table_.bytes() + chunks_.size() * heap_bytes(kChunkRuns * sizeof(BlockRun)) +
         heap_bytes(chunks_.capacity() * sizeof(void*)) + heap_bytes(free_ids_.capacity() * sizeof(uint32_t));
}

uint32_t RunStore::new_run(Hash128 parent, uint32_t capacity) {
  uint32_t id;
  if (!free_ids_.empty()) {
    id = free_ids_.back();
    free_ids_.pop_back();
  } else {
    WARMPATH_CHECK(id_end_ < kMaxRuns, "the owner must evict before the run ids are used up");
    id = id_end_++;
    if ((id & (kChunkRuns - 1)) == 0) chunks_.push_back(std::make_unique<BlockRun[]>(kChunkRuns));
  }
  BlockRun& made = mutable_run(id);
  made.first_parent = parent;
  reserve(made, capacity);
  return id;
}

void RunStore::free_run(uint32_t id) {
  BlockRun& freed = mutable_run(id);
  bytes_ -= freed.heap_size();
  freed = BlockRun{};
  free_ids_.push_back(id);
}

void RunStore::reserve(BlockRun& grown, uint32_t capacity) {
  bytes_ -= grown.heap_size();
  auto ids = std::make_unique<Hash128[]>(capacity);
  std::copy(grown.ids.get(), grown.ids.get() + grown.end, ids.get());
  grown.ids = std::move(ids);
  grown.capacity = static_cast<uint16_t>(capacity);
  bytes_ += grown.heap_size();
}

void RunStore::split(uint32_t id, uint16_t at) {
  const uint32_t tail_id = new_run(run(id).ids[at - 1], static_cast<uint32_t>(run(id).end - at));
  BlockRun& head = mutable_run(id);
  BlockRun& tail = mutable_run(tail_id);
  for (uint16_t offset = at; offset < head.end; ++offset) {
    table_.move(head.ids[offset], id, tail_id);
    tail.ids[tail.end++] = head.ids[offset];
  }
  tail.last_used = head.last_used;
  bytes_ -= head.heap_size() + tail.heap_size();
  head.held.split(at, tail.held);
  if (head.placed) {
    tail.placed = std::make_unique<SpanList<PlacedSpan>>();
    head.placed->split(at, *tail.placed);
    if (tail.placed->empty()) tail.placed.reset();
    if (head.placed->empty()) head.placed.reset();
  }
  head.end = at;
  bytes_ += head.heap_size() + tail.heap_size();
}

void RunStore::compact(uint32_t id) {
  BlockRun& loose = mutable_run(id);
  if (loose.size() * 4 > loose.capacity || loose.capacity <= 8) return;
  const uint16_t begin = loose.begin;
  const uint32_t size = loose.size();
  bytes_ -= loose.heap_size();
  auto ids = std::make_unique<Hash128[]>(size);
  std::copy(loose.ids.get() + begin, loose.ids.get() + loose.end, ids.get());
  loose.first_parent = loose.parent();
  loose.ids = std::move(ids);
  loose.begin = 0;
  loose.end = static_cast<uint16_t>(size);
  loose.capacity = static_cast<uint16_t>(size);
  if (begin > 0) {
    loose.held.shift_down(begin);
    if (loose.placed) loose.placed->shift_down(begin);
  }
  bytes_ += loose.heap_size();
}

Status RunStore::check_integrity() const {
  size_t blocks = 0;
  size_t heap = 0;
  uint32_t runs = 0;
  for (uint32_t id = 0; id < id_end_; ++id) {
    if (!in_use(id)) continue;
    const BlockRun& checked = run(id);
    const std::string where = "run " + std::to_string(id) + ": ";
    ++runs;
    heap += checked.heap_size();
    if (checked.size() == 0 || checked.end > checked.capacity || checked.capacity > kMaxRunBlocks) {
      return internal_error(where + "its bounds are wrong");
    }
    for (uint16_t offset = checked.begin; offset < checked.end; ++offset) {
      if (find(checked.ids[offset]) != BlockPlace{id, offset}) {
        return internal_error(where + "block " + std::to_string(offset) + " is not found by its identity");
      }
    }
    blocks += checked.size();
    if (!checked.held.well_formed(checked.begin, checked.end) ||
        (checked.placed && !checked.placed->well_formed(checked.begin, checked.end))) {
      return internal_error(where + "its spans are not sorted, maximal and inside the run");
    }
    if (checked.placed && checked.placed->empty()) return internal_error(where + "keeps an empty placement list");
  }
  if (blocks != table_.size()) return internal_error("the table holds another number of blocks than the runs");
  if (runs != run_count()) return internal_error("a free run id is in use, or lost");
  if (heap != bytes_) return internal_error("the runs' bytes are not what was counted");
  return {};
}

}  // namespace warmpath
