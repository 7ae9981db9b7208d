// Sequence: one choice's tokens and the KV blocks that hold them, as the scheduler sees it.
//
//   tokens   |<------------- prompt ------------->|<--- output --->|          length()
//   KV       |<------- computed ------->|<------ pending() ------->|
//   blocks   |  b0  |  b1  |  b2  |  b3  | ...                                kBlockTokens each
//
// Thread safety: none; the engine's loop thread owns it. Invariant: a sequence that is not running has no blocks and
// computed == 0: its KV, if any is left, is the cache's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/block_chain.h"
#include "engine/block_pool.h"

namespace warmpath {

// The choices of a request share one prompt. Immutable.
struct Prompt {
  Prompt(std::vector<TokenId> prompt_tokens, Hash128 chain_root)
      : tokens(std::move(prompt_tokens)), root(chain_root), chain(chain_of(chain_root, tokens)) {}

  const std::vector<TokenId> tokens;
  const Hash128 root;
  const std::vector<Hash128> chain;  // identities of its whole blocks
  int32_t length() const { return static_cast<int32_t>(tokens.size()); }
};

class Sequence {
 public:
  enum class State : uint8_t { kNew, kWaiting, kRunning, kDone };

  // `arrival` orders requests, `choice` the sequences of one. `prompt` must outlive the sequence.
  Sequence(const Prompt& prompt, int32_t priority, uint64_t arrival, int32_t choice, std::vector<TokenId> output = {})
      : output_(std::move(output)), prompt_(prompt), arrival_(arrival), priority_(priority), choice_(choice) {}
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  const Prompt& prompt() const { return prompt_; }
  const std::vector<TokenId>& output() const { return output_; }
  int32_t choice() const { return choice_; }
  int32_t length() const { return prompt_.length() + static_cast<int32_t>(output_.size()); }
  int32_t computed() const { return computed_; }
  int32_t pending() const { return length() - computed_; }
  State state() const { return state_; }
  int32_t preemptions() const { return preemptions_; }
  // Tokens of whole blocks found in the cache when the sequence first got a slot; -1 before that.
  int32_t cached_tokens() const { return cached_tokens_; }
  // Tokens after those whose KV was copied from a block that begins alike.
  int32_t tail_tokens() const { return tail_tokens_; }
  const std::vector<BlockId>& blocks() const { return blocks_; }

  void append(TokenId token) { output_.push_back(token); }

  // Whether this sequence runs before `other`: higher priority, then earlier arrival, then lower choice.
  bool before(const Sequence& other) const {
    if (priority_ != other.priority_) return priority_ > other.priority_;
    if (arrival_ != other.arrival_) return arrival_ < other.arrival_;
    return choice_ < other.choice_;
  }

  // Appends tokens [begin, end) to `out`.
  void copy_tokens(int32_t begin, int32_t end, std::vector<TokenId>& out) const {
    const int32_t split = std::clamp(prompt_.length(), begin, end);
    out.insert(out.end(), prompt_.tokens.begin() + begin, prompt_.tokens.begin() + split);
    const int32_t offset = prompt_.length();
    if (split < end) out.insert(out.end(), output_.begin() + (split - offset), output_.begin() + (end - offset));
  }
  TokenId token(int32_t position) const {
    return position < prompt_.length() ? prompt_.tokens[static_cast<size_t>(position)]
                                       : output_[static_cast<size_t>(position - prompt_.length())];
  }

  // What block `index` holds of the tokens before `end`. REQUIRES index * kBlockTokens < end <= length().
  BlockContent content(int32_t index, int32_t end) {
    BlockContent content;
    const int32_t first = index * kBlockTokens;
    content.count = std::min(kBlockTokens, end - first);
    for (int32_t slot = 0; slot < content.count; ++slot)
      content.tokens[static_cast<size_t>(slot)] = token(first + slot);
    content.parent = index == 0 ? prompt_.root : identity(index - 1);
    if (content.count == kBlockTokens) content.identity = identity(index);
    return content;
  }
  // The whole block's. REQUIRES (index + 1) * kBlockTokens <= length().
  BlockContent content(int32_t index) { return content(index, (index + 1) * kBlockTokens); }
  // The identity of block `index`, under the same condition.
  Hash128 identity(int32_t index) {
    const auto in_prompt = static_cast<int32_t>(prompt_.chain.size());
    if (index < in_prompt) return prompt_.chain[static_cast<size_t>(index)];
    while (in_prompt + static_cast<int32_t>(output_chain_.size()) <= index) extend_chain();
    return output_chain_[static_cast<size_t>(index - in_prompt)];
  }

 private:
  friend class Scheduler;

  void extend_chain() {
    const auto index = static_cast<int32_t>(prompt_.chain.size() + output_chain_.size());
    std::array<TokenId, kBlockTokens> tokens;
    for (int32_t slot = 0; slot < kBlockTokens; ++slot) {
      tokens[static_cast<size_t>(slot)] = token(index * kBlockTokens + slot);
    }
    output_chain_.push_back(chain_next(index == 0 ? prompt_.root : identity(index - 1), tokens));
  }

  // The scheduler's.
  std::vector<BlockId> blocks_;
  int32_t computed_ = 0;
  int32_t chunk_ = 0;             // tokens in the step being planned or run
  BlockId copy_from_ = kNoBlock;  // its beginning is copied in the step being planned or run; holds a reference
  Hash128 waits_for_;             // a block that a running sequence is computing; zero = none
  State state_ = State::kNew;
  int32_t preemptions_ = 0;
  int32_t cached_tokens_ = -1;
  int32_t tail_tokens_ = 0;
  int32_t expected_uncached_ = 0;  // while waiting: the estimate that queued_tokens() sums

  std::vector<TokenId> output_;
  std::vector<Hash128> output_chain_;  // identities of the whole blocks after the prompt's
  const Prompt& prompt_;
  const uint64_t arrival_;
  const int32_t priority_;
  const int32_t choice_;
};

}  // namespace warmpath
