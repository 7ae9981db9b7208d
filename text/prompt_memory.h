// PromptMemory: what recent prompts were rendered to and encoded to, so that a session's next turn pays only for what
// it adds. A new rendering is compared with the one before, part by part; up to where both are the same bytes, and no
// further than the last control token that the difference cannot reach, the token ids are taken over.
//
// Nothing is assumed of a template: one that rewrites earlier turns differs early and is encoded afresh from there
// (Stats::restarted counts it). A part costs a look at its ends to be found and a pointer to be compared: texts of
// messages are shared buffers that the memory keeps alive; only parts with buffers of their own are compared by bytes.
// Bounded in bytes, least recently used out first. Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/hash128.h"
#include "base/token.h"
#include "text/lru_cache.h"
#include "text/marked_text.h"

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
  // What is known of a prompt's beginning.
  struct Prefix {
    PromptCheckpoint at;
    std::vector<PromptCheckpoint> checkpoints;                     // up to `at`
    std::vector<std::shared_ptr<const std::vector<TokenId>>> ids;  // joined: at least at.tokens
  };

  explicit PromptMemory(size_t max_bytes) : sessions_(max_bytes) {}

  // The longest known beginning of `text`, its ids appended to `tokens`; an empty prefix when there is none.
  Prefix recall(const MarkedText& text, std::vector<TokenId>& tokens);
  // Remembers `text` (whose parts must own their bytes), whose ids are `tokens`; `prefix` is what recall() gave for it,
  // `checkpoints` all of its places.
  void remember(const MarkedText& text, Prefix prefix, std::vector<PromptCheckpoint> checkpoints,
                const std::vector<TokenId>& tokens, size_t first_token);

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
  struct Session {
    MarkedText text;
    std::vector<PromptCheckpoint> checkpoints;
    std::vector<std::shared_ptr<const std::vector<TokenId>>> ids;
  };
  // The ids up to the first `kept` checkpoints of a session.
  static void take(const Session& session, size_t kept, Prefix& prefix, std::vector<TokenId>& tokens);

  LruCache<std::shared_ptr<const Session>> sessions_;
  std::atomic<uint64_t> extended_{0};
  std::atomic<uint64_t> restarted_{0};
  std::atomic<uint64_t> fresh_{0};
};

}  // namespace warmpath
