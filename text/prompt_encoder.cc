#include "text/prompt_encoder.h"

#include <atomic>
#include <deque>

#include "base/log.h"
#include "text/default_rendering.h"
#include "text/lru_cache.h"
#include "text/prompt_memory.h"
#include "text/secret_hash.h"

namespace warmpath {
namespace {

// Runs below this are encoded afresh: that is as quick as looking them up.
constexpr size_t kMinCachedBytes = 16;
// Runs beyond this are remembered in parts of at least kPartBytes, cut where cutting changes nothing.
constexpr size_t kMaxWholeBytes = 16 << 10;
constexpr size_t kPartBytes = 4 << 10;

// One in so many continued renderings is compared with the whole one.
constexpr uint64_t kSampled = 256;

using Ids = std::shared_ptr<const std::vector<TokenId>>;

}  // namespace

struct PromptEncoder::Impl {
  Impl(std::shared_ptr<const Tokenizer> a_tokenizer, std::shared_ptr<const ChatTemplate> a_template, Options options)
      : tokenizer(std::move(a_tokenizer)),
        chat_template(std::move(a_template)),
        message_specials(options.message_specials),
        runs(options.cache_bytes / 2),
        memory(options.cache_bytes / 2),
        messages(options.message_cache_bytes) {}

  const std::shared_ptr<const Tokenizer> tokenizer;
  const std::shared_ptr<const ChatTemplate> chat_template;
  const SpecialTokens message_specials;
  LruCache<Ids> runs;
  PromptMemory memory;
  MessageCache messages;
  std::atomic<uint64_t> hit_bytes{0};
  std::atomic<uint64_t> miss_bytes{0};
  std::atomic<uint64_t> reused_messages{0};
  std::atomic<uint64_t> rendered_messages{0};
  std::atomic<uint64_t> whole_renderings{0};
  std::atomic<uint64_t> wrong_renderings{0};
  std::atomic<uint64_t> resumed{0};

  // Goes on from the session's last rendering where the template allows it.
  Result<Rendering> render(const PromptMemory::Known& known, const Conversation& conversation) {
    const bool resumes = known.session != nullptr && wrong_renderings.load(std::memory_order_relaxed) == 0;
    Result<Rendering> rendering =
        chat_template->render_after(resumes ? &known.session->rendering : nullptr, conversation);
    if (!rendering.ok()) return rendering;
    if (rendering->reused_messages > 0 && resumed.fetch_add(1, std::memory_order_relaxed) % kSampled == 0) {
      Result<Rendering> whole = chat_template->render_after(nullptr, conversation);
      if (!whole.ok() || !(whole->text == rendering->text)) {
        wrong_renderings.fetch_add(1, std::memory_order_relaxed);
        // Neither the text nor the template's name: a prompt may hold anything.
        log_error("continued_rendering_differs", {{"template_bytes", chat_template->source().size()},
                                                  {"consequence", "every prompt of this model is rendered whole"}});
        rendering = std::move(whole);
        if (!rendering.ok()) return rendering;
      }
    }
    reused_messages.fetch_add(rendering->reused_messages, std::memory_order_relaxed);
    rendered_messages.fetch_add(rendering->new_messages, std::memory_order_relaxed);
    if (known.session != nullptr && rendering->reused_messages == 0) {
      whole_renderings.fetch_add(1, std::memory_order_relaxed);
    }
    return rendering;
  }

  Hash128 key_of(std::span<const std::string_view> pieces, TextBegins begins) const {
    Hash128 key = secret_hash(pieces);
    if (tokenizer->depends_on_begin()) key.hi += static_cast<uint64_t>(begins);
    return key;
  }
  // Appends the ids of a run of plain text, from the cache where it holds them.
  Status encode_cached(std::string_view text, TextBegins begins, EncodedPrompt& out) {
    const Hash128 key = key_of({&text, 1}, begins);
    const auto found = runs.find(key);
    if (!found) return encode_new(text, begins, key, out);
    take(**found, text.size(), out);
    return {};
  }
  void take(const std::vector<TokenId>& ids, size_t bytes, EncodedPrompt& out) {
    out.tokens.insert(out.tokens.end(), ids.begin(), ids.end());
    hit_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  Status encode_new(std::string_view text, TextBegins begins, Hash128 key, EncodedPrompt& out) {
    auto ids = std::make_shared<std::vector<TokenId>>();
    ids->reserve(text.size() / 3 + 1);
    WARMPATH_RETURN_IF_ERROR(tokenizer->encode(text, SpecialTokens::kText, *ids, begins));
    ids->shrink_to_fit();
    out.tokens.insert(out.tokens.end(), ids->begin(), ids->end());
    out.encoded_bytes += text.size();
    miss_bytes.fetch_add(text.size(), std::memory_order_relaxed);
    const size_t bytes = ids->size() * sizeof(TokenId);
    runs.insert(key, std::move(ids), bytes);
    return {};
  }

  // Encodes `text` behind `prefix`, whose checkpoints it completes.
  Status encode_parts(const MarkedText& text, PromptMemory::Prefix& prefix, EncodedPrompt& out);

  // Appends the ids of the pieces joined together, which hold no control token.
  Status encode_run(std::span<const std::string_view> pieces, TextBegins begins, EncodedPrompt& out) {
    size_t size = 0;
    for (const std::string_view piece : pieces) size += piece.size();
    if (size == 0) return {};
    std::string joined;
    const auto whole = [&]() -> std::string_view {
      if (pieces.size() == 1) return pieces[0];
      joined.clear();
      joined.reserve(size);
      for (const std::string_view piece : pieces) joined.append(piece);
      return joined;
    };
    if (size < kMinCachedBytes) {
      out.encoded_bytes += size;
      return tokenizer->encode(whole(), SpecialTokens::kText, out.tokens, begins);
    }
    if (size <= kMaxWholeBytes) {
      const Hash128 key = key_of(pieces, begins);
      const auto found = runs.find(key);
      if (!found) return encode_new(whole(), begins, key, out);
      take(**found, size, out);
      return {};
    }
    const std::string_view text = whole();
    for (size_t from = 0; from < text.size();) {
      const size_t cut =
          from + kPartBytes < text.size() ? tokenizer->next_safe_cut(text, from + kPartBytes) : text.size();
      WARMPATH_RETURN_IF_ERROR(
          encode_cached(text.substr(from, cut - from), from == 0 ? begins : TextBegins::kInside, out));
      from = cut;
    }
    return {};
  }
};

namespace {

// The plain text since the last control token, as the template and the messages wrote it.
class Run {
 public:
  void push(std::string_view text) {
    if (skip_white_) text.remove_prefix(white_space_end(text, 0));
    if (text.empty()) return;
    skip_white_ = false;
    pieces_.push_back(text);
  }
  // The white space at its end belongs to the token that follows.
  void strip_end() {
    while (!pieces_.empty()) {
      std::string_view& last = pieces_.back();
      last = last.substr(0, white_space_begin(last, 0, last.size()));
      if (!last.empty()) break;
      pieces_.pop_back();
    }
  }
  // Starts anew behind a control token, which may take the white space that follows.
  void restart(bool skip_white) {
    pieces_.clear();
    begins_ = TextBegins::kRun;
    skip_white_ = skip_white;
  }
  std::span<const std::string_view> pieces() const { return {pieces_.data(), pieces_.size()}; }
  TextBegins begins() const { return begins_; }

 private:
  boost::container::small_vector<std::string_view, 8> pieces_;
  TextBegins begins_ = TextBegins::kPrompt;
  bool skip_white_ = false;
};

}  // namespace

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
  const Value& messages = adapted->conversation.messages;
  messages.as_list().frozen = true;  // remembered from here on
  const PromptMemory::Known known = impl_->memory.find(messages);
  Result<Rendering> rendering = impl_->render(known, adapted->conversation);
  if (!rendering.ok()) return rendering.status();
  EncodedPrompt prompt;
  prompt.default_tools = adapted->default_tools;
  const MarkedText& text = rendering->text;
  prompt.tokens.reserve(text.size() / 3 + 16);
  PromptMemory::Prefix prefix = impl_->memory.recall(known, text, prompt.tokens);
  const PromptCheckpoint begin = prefix.at;
  WARMPATH_RETURN_IF_ERROR(impl_->encode_parts(text, prefix, prompt));
  PromptMemory::Session session{messages, *std::move(rendering), std::move(prefix.checkpoints), {}};
  prefix.at = begin;
  impl_->memory.remember(known, std::move(prefix), std::move(session), prompt.tokens);
  return prompt;
}

Status PromptEncoder::Impl::encode_parts(const MarkedText& text, PromptMemory::Prefix& prefix, EncodedPrompt& out) {
  out.text_bytes += text.size();
  const size_t first_token = out.tokens.size() - prefix.at.tokens;
  std::vector<PromptCheckpoint>& checkpoints = prefix.checkpoints;
  const size_t known = checkpoints.size();
  Run run;
  std::deque<std::string> joined;  // what `run` may view beyond the text itself
  const auto parses = [this](const MarkedText::Part& part) {
    return part.origin == Origin::kTemplate || message_specials == SpecialTokens::kParse;
  };
  const auto parts = text.parts();
  size_t from = 0;  // in the group at hand
  if (known > 0) {
    run.restart(prefix.at.skip_white);
    from = prefix.at.offset;
    for (size_t index = 0; index < prefix.at.group_begin; ++index) {
      hit_bytes.fetch_add(parts[index].bytes.size(), std::memory_order_relaxed);
    }
  }
  for (size_t index = known > 0 ? prefix.at.group_begin : 0; index < parts.size();) {
    if (!parses(parts[index])) {
      run.push(parts[index++].bytes);
      continue;
    }
    // Neighbouring parts are one text to a tokenizer: a control token may straddle them.
    PromptCheckpoint place;
    place.group_begin = static_cast<uint32_t>(index);
    std::string_view together = parts[index].bytes;
    size_t end = index + 1;
    while (end < parts.size() && parses(parts[end])) ++end;
    if (end > index + 1) {
      std::string& bytes = joined.emplace_back();
      for (size_t at = index; at < end; ++at) bytes.append(parts[at].bytes);
      together = bytes;
    }
    index = end;
    place.group_end = static_cast<uint32_t>(end);
    bool found = false;
    while (const auto match = tokenizer->find_special(together, from, SpecialTokens::kParse)) {
      if (match->begin > from) run.push(together.substr(from, match->begin - from));
      if (match->strip_left) run.strip_end();
      WARMPATH_RETURN_IF_ERROR(encode_run(run.pieces(), run.begins(), out));
      run.restart(match->strip_right);
      out.tokens.push_back(match->id);
      from = match->end;
      place.offset = static_cast<uint32_t>(match->end);
      place.tokens = static_cast<uint32_t>(out.tokens.size() - first_token);
      place.skip_white = match->strip_right;
      found = true;
    }
    if (found) checkpoints.push_back(place);
    if (from < together.size()) run.push(together.substr(from));
    from = 0;
  }
  WARMPATH_RETURN_IF_ERROR(encode_run(run.pieces(), run.begins(), out));
  return {};
}

Result<EncodedPrompt> PromptEncoder::encode_completion(std::string_view prompt, SpecialTokens mode) {
  EncodedPrompt out;
  const Vocabulary& vocabulary = impl_->tokenizer->vocabulary();
  out.tokens = vocabulary.prompt_prefix;
  const Origin origin = mode == SpecialTokens::kParse ? Origin::kTemplate : Origin::kMessage;
  out.tokens.reserve(prompt.size() / 3 + 16);
  PromptMemory::Prefix prefix;
  WARMPATH_RETURN_IF_ERROR(impl_->encode_parts(MarkedText::from_static(prompt, origin), prefix, out));
  out.tokens.insert(out.tokens.end(), vocabulary.prompt_suffix.begin(), vocabulary.prompt_suffix.end());
  return out;
}

const Tokenizer& PromptEncoder::tokenizer() const { return *impl_->tokenizer; }
const ChatTemplate* PromptEncoder::chat_template() const { return impl_->chat_template.get(); }
MessageCache& PromptEncoder::messages() { return impl_->messages; }

PromptEncoder::Stats PromptEncoder::stats() const {
  const auto read = [](const std::atomic<uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
  const PromptMemory::Stats prompts = impl_->memory.stats();
  Stats stats;
  stats.hit_bytes = read(impl_->hit_bytes);
  stats.miss_bytes = read(impl_->miss_bytes);
  stats.cache_bytes = impl_->runs.bytes() + impl_->memory.bytes();
  stats.extended_prompts = prompts.extended;
  stats.restarted_prompts = prompts.restarted;
  stats.fresh_prompts = prompts.fresh;
  stats.reused_messages = read(impl_->reused_messages);
  stats.rendered_messages = read(impl_->rendered_messages);
  stats.whole_renderings = read(impl_->whole_renderings);
  stats.wrong_renderings = read(impl_->wrong_renderings);
  return stats;
}

}  // namespace warmpath
