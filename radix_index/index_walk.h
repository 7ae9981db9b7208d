// RadixIndex::Impl::walk: along a chain for the writer, run by run, adding what is missing. Private to this room.
#pragma once

#include <algorithm>

#include "radix_index/index_impl.h"

namespace warmpath {

template <typename Cover>
void RadixIndex::Impl::walk(Hash128 parent, std::span<const Hash128> blocks, MonotonicNs now, Cover cover) {
  constexpr size_t kAhead = 32;
  for (size_t n = 0; n < std::min(blocks.size(), kAhead); ++n) store_.prefetch(blocks[n]);
  const auto find_parent = [&] { return parent.is_zero() ? BlockPlace{} : store_.find(parent); };
  BlockPlace last = find_parent();
  if (last.exists()) touch_ancestors(last.run, RunStore::used_mark(now, 0));
  uint32_t runs_seen = 0;
  for (size_t n = 0; n < blocks.size(); ++runs_seen) {
    const uint32_t mark = RunStore::used_mark(now, runs_seen);
    const size_t first = n;
    const BlockPlace place = store_.find_next(last, blocks[n]);
    uint16_t begin;
    if (place.exists()) {
      // A stretch of blocks that are there already, in one run.
      begin = static_cast<uint16_t>(place.offset);
      uint32_t run = place.run;
      if (last.exists() && last.run != run && last.offset + 1u == store_.end(last.run) && begin == store_.begin(run) &&
          !has_dead_span(*store_.view(run)) && store_.join(last.run, run)) {
        begin = static_cast<uint16_t>(last.offset + 1);
        run = last.run;
      }
      store_.touch(run, mark);
      const Hash128* ids = store_.ids(run);
      const uint32_t end = store_.end(run);
      uint32_t offset = begin + 1u;
      while (++n < blocks.size() && offset < end && ids[offset] == blocks[n]) ++offset;
      last = {run, offset - 1};
    } else {
      // A stretch of new ones, up to the next one that is there already.
      const RunStore::Stretch added = store_.append(parent, last, blocks.subspan(first), mark);
      n = first + static_cast<size_t>(added.end - added.begin);
      if (n == first) {
        // Some replica has named another parent for this block. Once a run begins with it, both chains find it.
        if (const BlockPlace elsewhere = store_.find(blocks[n]); elsewhere.exists()) sweep_run(elsewhere.run, 0);
        if (const BlockPlace elsewhere = store_.find(blocks[n]); elsewhere.exists()) store_.split(elsewhere);
        last = find_parent();
        continue;
      }
      begin = added.begin;
      last = {added.run, added.end - 1u};
    }
    parent = blocks[n - 1];
    cover(last.run, begin, static_cast<uint16_t>(last.offset + 1));
  }
}

}  // namespace warmpath
