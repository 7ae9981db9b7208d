// ConversationHistory: how far each conversation's last prompt went, and by which block it ended, so that a receipt can
// tell what one boundless cache would have held of the next prompt, and whether that still begins the same way.
//
// A conversation is known by its session and the first block past its base; without either (no session named, base
// unknown) nothing is remembered of it. Bounded: the one unheard of for longest goes when there are kMaxConversations.
// Thread safety: any thread; one short mutex.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <span>
#include <unordered_map>

#include "base/hash128.h"
#include "policies/candidate.h"

namespace warmpath {

// What a prompt has in common with the one before it in its conversation.
struct Earlier {
  int64_t tokens = 0;      // in whole blocks of the prompt before; 0 when there is none, or this one is shorter
  bool rewritten = false;  // this prompt does not begin with them
};

class ConversationHistory {
 public:
  static constexpr size_t kMaxConversations = 65'536;

  // Compares `chain` with what is remembered of its conversation, and remembers it instead.
  Earlier follow(const RequestView& view, std::span<const Hash128> chain);
  size_t size() const;

 private:
  struct Entry {
    Hash128 conversation;
    Hash128 last_block;
    size_t blocks;
  };

  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recently heard of first
  std::unordered_map<Hash128, std::list<Entry>::iterator> by_conversation_;
};

}  // namespace warmpath
