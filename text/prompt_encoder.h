// PromptEncoder: a request's conversation (or completion prompt) to token ids, paying only for what earlier requests
// did not contain.
//
// The rendered text is split at control tokens that the template wrote; each run between two of them is encoded on its
// own (which is how the model's tokenizer sees it too) and its ids are remembered under a 128-bit hash of the run. Long
// runs are remembered in parts too, cut at line starts, so a growing completion prompt is also incremental. A turn that
// adds 700 tokens to a 100,000-token session hashes the text once and tokenizes about 700 tokens.
// A session's next turn does not even render or hash what came before: see text/prompt_memory.h.
// Bounded by Options::cache_bytes, least recently used out first. Thread safety: any thread; one per model, shared by
// all connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "text/chat_template.h"
#include "text/conversation.h"
#include "text/message_cache.h"
#include "text/tokenizer.h"

namespace warmpath {

struct EncodedPrompt {
  std::vector<TokenId> tokens;
  size_t text_bytes = 0;       // of the rendered prompt
  size_t encoded_bytes = 0;    // of those, not found in the cache and tokenized now
  bool default_tools = false;  // tools were written by the default rendering (text/default_rendering.h)
};

class PromptEncoder {
 public:
  struct Options {
    size_t cache_bytes = size_t{128} << 20;  // ids and their bookkeeping; 4 B an id
    size_t message_cache_bytes = size_t{128} << 20;
    SpecialTokens message_specials = SpecialTokens::kText;  // kParse for engines that parse control tokens in messages
  };

  // `chat_template` may be null: then only completions can be encoded.
  PromptEncoder(std::shared_ptr<const Tokenizer> tokenizer, std::shared_ptr<const ChatTemplate> chat_template,
                Options options);
  ~PromptEncoder();

  // Adapts (default_rendering.h), renders, tokenizes. Errors are the client's (400) unless the code says otherwise.
  Result<EncodedPrompt> encode_conversation(const Conversation& conversation);
  // A completion prompt: plain text, BOS first where the model wants it; control tokens in it as `mode` says.
  Result<EncodedPrompt> encode_completion(std::string_view prompt, SpecialTokens mode = SpecialTokens::kText);

  const Tokenizer& tokenizer() const;
  const ChatTemplate* chat_template() const;
  // For adapters: raw JSON of a message -> its Value, parsed once.
  MessageCache& messages();

  struct Stats {
    uint64_t hit_bytes = 0;   // prompt text found in the cache
    uint64_t miss_bytes = 0;  // prompt text tokenized
    size_t cache_bytes = 0;
    // Conversations' prompts, of some size, by what was known of their beginning (text/prompt_memory.h).
    uint64_t extended_prompts = 0;
    uint64_t restarted_prompts = 0;
    uint64_t fresh_prompts = 0;
    uint64_t reused_messages = 0;    // whose text was taken over from the session's last rendering
    uint64_t rendered_messages = 0;  // that the template was run for
    uint64_t whole_renderings = 0;   // of sessions that were known, and of which nothing could be taken over
    uint64_t wrong_renderings = 0;   // found by a sample: a fault of this program; then none is taken over any more
  };
  Stats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmpath
