#include "router/base_finder.h"

#include <algorithm>
#include <string_view>

#include "text/secret_hash.h"

namespace warmpath {

namespace {

// A base that ends this much before what is remembered of it was rendered otherwise (a template may write the date).
constexpr int64_t kSlackTokens = 8;

bool is_user(const Value& message) {
  const Value* role = message.find("role");
  return role != nullptr && role->is_string() && role->as_text() == std::string_view("user");
}

int64_t common_tokens(std::span<const TokenId> left, std::span<const TokenId> right) {
  return std::mismatch(left.begin(), left.end(), right.begin(), right.end()).first - left.begin();
}

}  // namespace

size_t BaseFinder::leading_messages(const Conversation& conversation) {
  const auto& messages = conversation.messages.as_list().items;
  return static_cast<size_t>(std::find_if(messages.begin(), messages.end(), is_user) - messages.begin());
}

int64_t BaseFinder::count(PromptEncoder& encoder, std::span<const std::string_view> source,
                          const Conversation& conversation, std::span<const TokenId> tokens) {
  if (tokens.size() < 2 * kBlockTokens) return 0;  // no block lies before or behind it
  const auto& messages = conversation.messages.as_list().items;
  const size_t leading = leading_messages(conversation);
  const Hash128 key = secret_hash(source);
  if (const auto known = known_.find(key)) {
    const int64_t common = common_tokens(tokens, **known);
    if (common + kSlackTokens >= static_cast<int64_t>((*known)->size())) return common;
  }

  Conversation base;
  base.tools = conversation.tools;
  base.kwargs = conversation.kwargs;
  base.add_generation_prompt = false;
  for (size_t n = 0; n < leading; ++n) base.add_message(messages[n]);
  if (leading < messages.size()) base.add_message("user", "");
  Result<EncodedPrompt> encoded = encoder.encode_conversation(base);
  if (!encoded.ok()) return 0;
  const int64_t common = common_tokens(tokens, encoded->tokens);
  const size_t bytes = encoded->tokens.size() * sizeof(TokenId);
  known_.insert(key, std::make_shared<const std::vector<TokenId>>(std::move(encoded->tokens)), bytes);
  return common;
}

}  // namespace warmpath
