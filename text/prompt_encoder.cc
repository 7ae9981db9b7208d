#include "text/prompt_encoder.h"

#include <atomic>
#include <deque>

#include "text/default_rendering.h"
#include "text/lru_cache.h"
#include "text/secret_hash.h"

namespace warmpath {
namespace {

// Runs below this are encoded afresh: that is as quick as looking them up.
constexpr size_t kMinCachedBytes = 16;
// Runs beyond this are remembered in parts of at least kPartBytes, cut where cutting changes nothing.
constexpr size_t kMaxWholeBytes = 16 << 10;
constexpr size_t kPartBytes = 4 << 10;

using Ids = std::shared_ptr<const std::vector<TokenId>>;

}  // namespace

struct PromptEncoder::Impl {
  Impl(std::shared_ptr<const Tokenizer> a_tokenizer, std::shared_ptr<const ChatTemplate> a_template, Options options)
      : tokenizer(std::move(a_tokenizer)),
        chat_template(std::move(a_template)),
        message_specials(options.message_specials),
        runs(options.cache_bytes),
        messages(options.message_cache_bytes) {}

  const std::shared_ptr<const Tokenizer> tokenizer;
  const std::shared_ptr<const ChatTemplate> chat_template;
  const SpecialTokens message_specials;
  LruCache<Ids> runs;
  MessageCache messages;
  std::atomic<uint64_t> hit_bytes{0};
  std::atomic<uint64_t> miss_bytes{0};

  // Appends the ids of a run of plain text, from the cache where it holds them.
  void encode_cached(std::string_view text, Hash128 key, EncodedPrompt& out) {
    if (const auto found = runs.find(key)) {
      out.tokens.insert(out.tokens.end(), (*found)->begin(), (*found)->end());
      hit_bytes.fetch_add(text.size(), std::memory_order_relaxed);
      return;
    }
    encode_new(text, key, out);
  }
  void encode_new(std::string_view text, Hash128 key, EncodedPrompt& out) {
    auto ids = std::make_shared<std::vector<TokenId>>();
    ids->reserve(text.size() / 3 + 1);
    tokenizer->encode(text, SpecialTokens::kText, *ids);
    ids->shrink_to_fit();
    out.tokens.insert(out.tokens.end(), ids->begin(), ids->end());
    out.encoded_bytes += text.size();
    miss_bytes.fetch_add(text.size(), std::memory_order_relaxed);
    const size_t bytes = ids->size() * sizeof(TokenId);
    runs.insert(key, std::move(ids), bytes);
  }

  // Appends the ids of the pieces joined together, which hold no control token.
  void encode_run(std::span<const std::string_view> pieces, EncodedPrompt& out) {
    size_t size = 0;
    for (const std::string_view piece : pieces) size += piece.size();
    if (size == 0) return;
    std::string joined;
    const auto whole = [&]() -> std::string_view {
      if (pieces.size() == 1) return pieces[0];
      joined.clear();
      joined.reserve(size);
      for (const std::string_view piece : pieces) joined.append(piece);
      return joined;
    };
    if (size < kMinCachedBytes) {
      tokenizer->encode(whole(), SpecialTokens::kText, out.tokens);
      out.encoded_bytes += size;
      return;
    }
    if (size <= kMaxWholeBytes) {
      const Hash128 key = secret_hash(pieces);
      const auto found = runs.find(key);
      if (!found) return encode_new(whole(), key, out);
      out.tokens.insert(out.tokens.end(), (*found)->begin(), (*found)->end());
      hit_bytes.fetch_add(size, std::memory_order_relaxed);
      return;
    }
    const std::string_view text = whole();
    for (size_t from = 0; from < text.size();) {
      const size_t cut =
          from + kPartBytes < text.size() ? tokenizer->next_safe_cut(text, from + kPartBytes) : text.size();
      const std::string_view part = text.substr(from, cut - from);
      encode_cached(part, secret_hash(part), out);
      from = cut;
    }
  }
};

PromptEncoder::PromptEncoder(std::shared_ptr<const Tokenizer> tokenizer,
                             std::shared_ptr<const ChatTemplate> chat_template, Options options)
    : impl_(std::make_unique<Impl>(std::move(tokenizer), std::move(chat_template), options)) {}
PromptEncoder::~PromptEncoder() = default;

Result<EncodedPrompt> PromptEncoder::encode_conversation(const Conversation& conversation) {
  if (!impl_->chat_template) {
    return failed_precondition("this model has no chat template: use /v1/completions, or give the model a template");
  }
  const Result<AdaptedConversation> adapted = adapt_conversation(impl_->chat_template->abilities(), conversation);
  if (!adapted.ok()) return adapted.status();
  const Result<MarkedText> text = impl_->chat_template->render(adapted->conversation);
  if (!text.ok()) return text.status();
  EncodedPrompt prompt;
  prompt.default_tools = adapted->default_tools;
  encode_rendered(*text, prompt);
  return prompt;
}

void PromptEncoder::encode_rendered(const MarkedText& text, EncodedPrompt& out) {
  out.text_bytes += text.size();
  out.tokens.reserve(out.tokens.size() + text.size() / 4 + 16);
  boost::container::small_vector<std::string_view, 8> run;  // plain text since the last control token
  std::deque<std::string> joined;                           // what `run` may view beyond the text itself
  const auto flush = [&] {
    impl_->encode_run({run.data(), run.size()}, out);
    run.clear();
  };
  const auto parses = [this](const MarkedText::Part& part) {
    return part.origin == Origin::kTemplate || impl_->message_specials == SpecialTokens::kParse;
  };
  const auto parts = text.parts();
  for (size_t index = 0; index < parts.size();) {
    if (!parses(parts[index])) {
      run.push_back(parts[index++].bytes);
      continue;
    }
    // Neighbouring parts are one text to a tokenizer: a control token may straddle them.
    std::string_view together = parts[index].bytes;
    size_t end = index + 1;
    while (end < parts.size() && parses(parts[end])) ++end;
    if (end > index + 1) {
      std::string& bytes = joined.emplace_back();
      for (size_t at = index; at < end; ++at) bytes.append(parts[at].bytes);
      together = bytes;
    }
    index = end;
    size_t from = 0;
    while (const auto match = impl_->tokenizer->find_special(together, from, SpecialTokens::kParse)) {
      if (match->offset > from) run.push_back(together.substr(from, match->offset - from));
      flush();
      out.tokens.push_back(match->id);
      from = match->offset + match->size;
    }
    if (from < together.size()) run.push_back(together.substr(from));
  }
  flush();
}

EncodedPrompt PromptEncoder::encode_completion(std::string_view prompt, SpecialTokens mode) {
  EncodedPrompt out;
  const Vocabulary& vocabulary = impl_->tokenizer->vocabulary();
  if (vocabulary.add_bos && vocabulary.bos) out.tokens.push_back(*vocabulary.bos);
  encode_rendered(MarkedText::from_static(prompt, mode == SpecialTokens::kParse ? Origin::kTemplate : Origin::kMessage),
                  out);
  return out;
}

const Tokenizer& PromptEncoder::tokenizer() const { return *impl_->tokenizer; }
const ChatTemplate* PromptEncoder::chat_template() const { return impl_->chat_template.get(); }
MessageCache& PromptEncoder::messages() { return impl_->messages; }

PromptEncoder::Stats PromptEncoder::stats() const {
  return {impl_->hit_bytes.load(std::memory_order_relaxed), impl_->miss_bytes.load(std::memory_order_relaxed),
          impl_->runs.bytes()};
}

}  // namespace warmpath
