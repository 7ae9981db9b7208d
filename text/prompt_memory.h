// PromptMemory: what recent conversations were rendered to and encoded to, so that a session's next turn pays only for
// what it adds. A conversation is found by its messages: the longest beginning that is remembered, compared message by
// message. Its rendering is where the next one starts from, and the new text is compared with the old, part by part: up
// to the last control token that no difference can reach, the token ids are taken over.
//
// Nothing is assumed of a template: one that rewrites earlier turns differs early and is encoded afresh from there
// (Stats::restarted counts it). A message or a part costs a pointer to be compared: texts of messages are shared
// buffers that the memory keeps alive; only those with buffers of their own are compared by bytes.
// Bounded in bytes, least recently used out first. Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/hash128.h"
#include "base/token.h"
#include "text/chat_template.h"
#include "text/lru_cache.h"
#include "text/marked_text.h"
#include "text/value.h"

namespace warmpath {

// A place right behind a control token: what was encoded before it, and where in the text encoding goes on.
struct PromptCheckpoint {
  uint32_t group_begin = 0;  // the parts [group_begin, group_end) were searched for control tokens together
  uint32_t group_end = 0;
  uint32_t offset = 0;      // behind the token, in the group's bytes
  uint32_t tokens = 0;      // ids before this place
  bool skip_white = false;  // the token takes the white space behind it
};

class PromptMemory {
 public:
  struct Session {
    Value messages;  // a frozen list
    Rendering rendering;
    std::vector<PromptCheckpoint> checkpoints;
    std::vector<std::shared_ptr<const std::vector<TokenId>>> ids;  // joined
  };
  // Where a conversation is looked for: keys[i] is of its first i messages.
  struct Known {
    std::vector<Hash128> keys;
    std::shared_ptr<const Session> session;  // null: none begins like it
  };
  // What is known of a prompt's beginning.
  struct Prefix {
    PromptCheckpoint at;
    std::vector<PromptCheckpoint> checkpoints;                     // up to `at`
    std::vector<std::shared_ptr<const std::vector<TokenId>>> ids;  // joined: at least at.tokens
  };

  explicit PromptMemory(size_t max_bytes) : sessions_(max_bytes) {}

  // The session that shares the longest beginning with these messages.
  Known find(const Value& messages);
  // The longest beginning of `text` that the session has too, its ids appended to `tokens`; empty when there is none.
  Prefix recall(const Known& known, const MarkedText& text, std::vector<TokenId>& tokens);
  // Remembers a session (whose text's parts must own their bytes) whose ids are `tokens`; `known` and `prefix` are what
  // was found for it, its ids are filled in here.
  void remember(const Known& known, Prefix prefix, Session session, const std::vector<TokenId>& tokens);

  struct Stats {
    uint64_t extended = 0;   // prompts that begin as an earlier one nearly to its end
    uint64_t restarted = 0;  // that leave an earlier one before that: its beginning was rewritten, or a session forked
    uint64_t fresh = 0;      // that begin like none
  };
  Stats stats() const {
    return {extended_.load(std::memory_order_relaxed), restarted_.load(std::memory_order_relaxed),
            fresh_.load(std::memory_order_relaxed)};
  }
  size_t bytes() const { return sessions_.bytes(); }

 private:
  LruCache<std::shared_ptr<const Session>> sessions_;
  std::atomic<uint64_t> extended_{0};
  std::atomic<uint64_t> restarted_{0};
  std::atomic<uint64_t> fresh_{0};
};

}  // namespace warmpath
