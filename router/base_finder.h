// BaseFinder: how many leading tokens of a prompt are its base: system prompt and tools, up to the first user message's
// own text. Found by rendering the conversation once more without what follows; what that gave is remembered by the
// bytes it came from, since many sessions start with the same ones.
// Bounded: kMaxBytes of remembered tokens. Thread safety: any thread; one per model.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/token.h"
#include "router/wire/chat.h"
#include "text/lru_cache.h"
#include "text/prompt_encoder.h"

namespace warmpath {

class BaseFinder {
 public:
  BaseFinder() : known_(kMaxBytes) {}

  // `tokens` are those of `conversation`, which was read from `request`. 0 when the template cannot render so little.
  int64_t count(PromptEncoder& encoder, const ChatRequest& request, const Conversation& conversation,
                std::span<const TokenId> tokens);

 private:
  static constexpr size_t kMaxBytes = size_t{16} << 20;
  using Tokens = std::shared_ptr<const std::vector<TokenId>>;

  LruCache<Tokens> known_;
};

}  // namespace warmpath
