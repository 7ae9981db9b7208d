#include "text/stop_matcher.h"

#include <fmt/format.h>

#include <algorithm>

namespace warmpath {

Result<std::shared_ptr<const StopStrings>> StopStrings::create(std::vector<std::string> stops) {
  std::erase_if(stops, [](const std::string& stop) { return stop.empty(); });
  size_t total = 0;
  for (const std::string& stop : stops) total += stop.size();
  if (stops.size() > kMaxStrings || total > kMaxTotalBytes) {
    return invalid_argument(fmt::format("stop: {} strings of {} bytes in all; at most {} strings of {} bytes in all",
                                        stops.size(), total, kMaxStrings, kMaxTotalBytes));
  }
  auto built = std::make_shared<StopStrings>();
  auto& nodes = built->nodes_;
  nodes.emplace_back();
  for (size_t index = 0; index < stops.size(); ++index) {
    uint32_t node = 0;
    built->starts_[static_cast<uint8_t>(stops[index][0])] = true;
    for (const char character : stops[index]) {
      const auto byte = static_cast<uint8_t>(character);
      auto& next = nodes[node].next;
      auto place = std::lower_bound(next.begin(), next.end(), std::pair<uint8_t, uint32_t>(byte, 0));
      if (place == next.end() || place->first != byte) {
        const auto child = static_cast<uint32_t>(nodes.size());
        next.insert(place, {byte, child});
        const uint32_t depth = nodes[node].depth + 1;
        nodes.emplace_back();
        nodes.back().depth = depth;
        node = child;
      } else {
        node = place->second;
      }
    }
    if (nodes[node].match < 0) nodes[node].match = static_cast<int32_t>(index);
  }
  // Breadth first, so that a node's fallback is finished before the node.
  std::vector<uint32_t> order = {0};
  for (size_t at = 0; at < order.size(); ++at) {
    const uint32_t parent = order[at];
    for (const auto& [byte, child] : nodes[parent].next) {
      nodes[child].fail = parent == 0 ? 0 : built->step(nodes[parent].fail, byte);
      if (nodes[child].match < 0) nodes[child].match = nodes[nodes[child].fail].match;
      order.push_back(child);
    }
  }
  built->strings_ = std::move(stops);
  return std::shared_ptr<const StopStrings>(std::move(built));
}

uint32_t StopStrings::step(uint32_t node, uint8_t byte) const {
  while (true) {
    const auto& next = nodes_[node].next;
    const auto place = std::lower_bound(next.begin(), next.end(), std::pair<uint8_t, uint32_t>(byte, 0));
    if (place != next.end() && place->first == byte) return place->second;
    if (node == 0) return 0;
    node = nodes_[node].fail;
  }
}

bool StopMatcher::push(std::string_view text, std::string& out) {
  if (stopped()) return true;
  if (!stops_ || stops_->strings().empty()) {
    out.append(text);
    return false;
  }
  for (size_t at = 0; at < text.size(); ++at) {
    if (node_ == 0 && !stops_->starts_[static_cast<uint8_t>(text[at])]) continue;
    node_ = stops_->step(node_, static_cast<uint8_t>(text[at]));
    const int32_t match = stops_->nodes_[node_].match;
    if (match < 0) continue;
    // All text up to here, less the stop string: it may begin inside what is held.
    const size_t seen = held_.size() + at + 1;
    const size_t kept = seen - stops_->strings()[static_cast<size_t>(match)].size();
    out.append(held_, 0, std::min(kept, held_.size()));
    if (kept > held_.size()) out.append(text.substr(0, kept - held_.size()));
    held_.clear();
    matched_ = match;
    return true;
  }
  const size_t hold = stops_->nodes_[node_].depth;
  const size_t emit = held_.size() + text.size() - hold;
  if (emit >= held_.size()) {
    out.append(held_).append(text.substr(0, emit - held_.size()));
    held_.assign(text.substr(emit - held_.size()));
  } else {
    out.append(held_, 0, emit);
    held_.erase(0, emit).append(text);
  }
  return false;
}

void StopMatcher::finish(std::string& out) {
  if (!stopped()) out.append(held_);
  held_.clear();
  node_ = 0;
}

}  // namespace warmpath
