// BaseFinder: how many leading tokens of a prompt are its base: system prompt and tools, up to the first user message's
// own text. Found by rendering the conversation once more without what follows; what that gave is remembered by the
// bytes it came from, since many sessions start with the same ones.
// Bounded: kMaxBytes of remembered tokens. Thread safety: any thread; one per model.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "text/lru_cache.h"
#include "text/prompt_encoder.h"

namespace warmpath {

class BaseFinder {
 public:
  BaseFinder() : known_(kMaxBytes) {}

  // Messages before the first of the user.
  static size_t leading_messages(const Conversation& conversation);

  // `tokens` are those of `conversation`. `source` are bytes of the request that its base was read from; equal bytes
  // should mean equal bases, which is checked. 0 when the template cannot render so little.
  int64_t count(PromptEncoder& encoder, std::span<const std::string_view> source, const Conversation& conversation,
                std::span<const TokenId> tokens);

 private:
  static constexpr size_t kMaxBytes = size_t{16} << 20;
  using Tokens = std::shared_ptr<const std::vector<TokenId>>;

  LruCache<Tokens> known_;
};

}  // namespace warmpath
