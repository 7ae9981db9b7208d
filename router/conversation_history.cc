#include "router/conversation_history.h"

#include <array>

namespace warmpath {

Earlier ConversationHistory::follow(const RequestView& view, std::span<const Hash128> chain) {
  if (chain.empty() || (view.session_key.is_zero() && view.base_tokens <= 0)) return {};
  const std::array<Hash128, 2> names{view.session_key, view.content_key};
  const Hash128 conversation = hash128(names.data(), sizeof names);
  const std::lock_guard lock(mutex_);
  const auto found = by_conversation_.find(conversation);
  Earlier earlier;
  if (found != by_conversation_.end()) {
    const Entry& last = *found->second;
    if (chain.size() >= last.blocks) {
      earlier.tokens = static_cast<int64_t>(last.blocks) * kBlockTokens;
      earlier.rewritten = chain[last.blocks - 1] != last.last_block;
    }
    entries_.splice(entries_.begin(), entries_, found->second);
  } else {
    if (entries_.size() == kMaxConversations) {
      by_conversation_.erase(entries_.back().conversation);
      entries_.pop_back();
    }
    entries_.push_front({conversation, {}, 0});
    by_conversation_[conversation] = entries_.begin();
  }
  entries_.front().last_block = chain.back();
  entries_.front().blocks = chain.size();
  return earlier;
}

size_t ConversationHistory::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace warmpath
