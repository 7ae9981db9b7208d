#include "text/jinja/loop_record.h"

#include <algorithm>

namespace warmpath::jinja {
namespace {

// The round of the first entry that `broken` holds of.
template <typename Entry, typename Broken>
uint32_t first_round(const std::vector<Entry>& entries, Broken broken) {
  const auto found = std::find_if(entries.begin(), entries.end(), broken);
  return found == entries.end() ? LoopInput::kNever : found->round;
}

template <typename Entry>
void drop_from(std::vector<Entry>& entries, uint32_t round) {
  while (!entries.empty() && entries.back().round >= round) entries.pop_back();
}

}  // namespace

size_t common_items(const std::vector<Value>& left, const std::vector<Value>& right) {
  const auto ends = std::mismatch(left.begin(), left.end(), right.begin(), right.end(), values_identical);
  return static_cast<size_t>(ends.first - left.begin());
}

uint32_t LoopInput::first_changed(const Snapshot& now) const {
  if (before.object != 0 || now.object != 0) {
    if (before.object == now.object && now.object != Snapshot::kUnknownObject) return kNever;
  } else if (values_identical(before.value, now.value)) {
    return kNever;
  }
  uint32_t first = whole_from;
  const Value& value = now.value;
  const bool lists = value.is_list() && before.value.is_list() && value.as_list().type == before.value.as_list().type &&
                     value.as_list().type != SequenceKind::kGenerator;
  const size_t common = lists ? common_items(before.value.as_list().items, value.as_list().items) : 0;
  first = std::min(first, first_round(leading, [common](const Leading& entry) { return entry.items > common; }));
  const bool measured = lists || (value.is_int() && before.value.is_int());
  const int64_t measure = lists ? static_cast<int64_t>(value.as_list().items.size()) : measured ? value.as_int() : 0;
  return std::min(first, first_round(bounds, [measured, measure](const Bounds& entry) {
                    return !measured || measure < entry.low || measure > entry.high;
                  }));
}

void LoopInput::depend_on_whole(uint32_t round) { whole_from = std::min(whole_from, round); }

void LoopInput::depend_on_leading(uint32_t round, size_t items) {
  if (leading.empty() || leading.back().items < items) leading.push_back({round, items});
}

void LoopInput::depend_on_bounds(uint32_t round, int64_t low, int64_t high) {
  if (!bounds.empty()) {
    if (bounds.back().low >= low && bounds.back().high <= high) return;
    low = std::max(low, bounds.back().low);
    high = std::min(high, bounds.back().high);
  }
  bounds.push_back({round, low, high});
}

bool LoopInput::forget_from(uint32_t round) {
  if (whole_from >= round) whole_from = kNever;
  drop_from(leading, round);
  drop_from(bounds, round);
  return whole_from != kNever || !leading.empty() || !bounds.empty();
}

LoopInput* LoopRecord::find(const Source& source) {
  const auto found =
      std::find_if(inputs.begin(), inputs.end(), [&source](const LoopInput& input) { return input.source == source; });
  return found == inputs.end() ? nullptr : &*found;
}

void LoopRecord::cut(uint32_t count) {
  marks.resize(size_t{count} + 1);
  std::erase_if(inputs, [count](LoopInput& input) { return !input.forget_from(count); });
  drop_from(writes, count);
}

size_t Recording::bytes() const {
  size_t bytes = sizeof(Recording);
  for (const LoopRecord& loop : loops) {
    bytes += sizeof(loop) + loop.items.as_list().items.size() * sizeof(Value) +
             loop.marks.size() * sizeof(LoopRecord::Mark) + loop.writes.size() * sizeof(LoopRecord::Write) +
             loop.inputs.size() * sizeof(LoopInput);
    for (const LoopInput& input : loop.inputs) {
      bytes += input.leading.size() * sizeof(LoopInput::Leading) + input.bounds.size() * sizeof(LoopInput::Bounds);
    }
  }
  return bytes;
}

}  // namespace warmpath::jinja
