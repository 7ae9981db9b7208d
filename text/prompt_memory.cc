#include "text/prompt_memory.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "text/secret_hash.h"

namespace warmpath {
namespace {

// A conversation is remembered at its last messages and at ever fewer of the earlier ones.
constexpr size_t kLastPlaces = 3;
// Prompts below this are as quickly encoded run by run.
constexpr size_t kMinBytes = 4096;
// Ids of one turn after the other, joined when there are so many.
constexpr size_t kMaxSegments = 64;

bool same_part(const MarkedText::Part& left, const MarkedText::Part& right) {
  return left.origin == right.origin && left.bytes.size() == right.bytes.size() &&
         (left.bytes.data() == right.bytes.data() ||
          std::memcmp(left.bytes.data(), right.bytes.data(), left.bytes.size()) == 0);
}

// A quick hash of what a message begins and ends with, under a secret of this process. What is found by it is compared
// whole, so it need not be a strong one.
class Fingerprint {
 public:
  Fingerprint() {
    static const Hash128 secret = secret_hash(std::string_view("PromptMemory"));
    secret_ = secret;
  }
  void add(uint64_t word) {
    const auto product = static_cast<unsigned __int128>(state_ ^ secret_.hi) * (word ^ secret_.lo);
    state_ += static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  void add(const MarkedText& text) {
    add(text.size());
    const auto parts = text.parts();
    if (parts.empty()) return;
    const std::string_view first = parts.front().bytes;
    const std::string_view last = parts.back().bytes;
    add(word_at(first, 0));
    add(word_at(first, first.size() / 2));
    add(word_at(last, last.size() - std::min<size_t>(last.size(), 8)));
  }
  void add(const Value& value) {
    add(static_cast<uint64_t>(value.kind()));
    if (value.is_string()) return add(value.as_text());
    if (value.is_int()) return add(static_cast<uint64_t>(value.as_int()));
    if (value.is_list()) {
      for (const Value& item : value.as_list().items) add(item);
    } else if (value.is_dict()) {
      for (const auto& [key, item] : value.as_dict().entries) {
        if (key.is_string()) add(key.as_text().size());
        add(item);
      }
    }
  }
  Hash128 key() const {
    Fingerprint other = *this;
    other.add(1);
    return {state_, other.state_};
  }

 private:
  static uint64_t word_at(std::string_view bytes, size_t at) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<size_t>(bytes.size() - at, sizeof(word)));
    return word;
  }

  Hash128 secret_;
  uint64_t state_ = 0;
};

bool begins_with(const PromptMemory::Session& session, const std::vector<Value>& messages, size_t count) {
  const auto& before = session.messages.as_list().items;
  const auto end = before.begin() + static_cast<std::ptrdiff_t>(count);
  return before.size() >= count && std::equal(before.begin(), end, messages.begin(), values_identical);
}

}  // namespace

PromptMemory::Known PromptMemory::find(const Value& messages) {
  Known known;
  const auto& items = messages.as_list().items;
  known.keys.reserve(items.size() + 1);
  known.keys.emplace_back();
  Fingerprint fingerprint;
  for (const Value& message : items) {
    fingerprint.add(message);
    known.keys.push_back(fingerprint.key());
  }
  for (size_t count = items.size(); count > 0; --count) {
    auto found = sessions_.find(known.keys[count]);
    if (!found || !begins_with(**found, items, count)) continue;
    known.session = *std::move(found);
    break;
  }
  return known;
}

PromptMemory::Prefix PromptMemory::recall(const Known& known, const MarkedText& text, std::vector<TokenId>& tokens) {
  Prefix prefix;
  if (text.size() < kMinBytes) return prefix;
  const Session* session = known.session.get();
  size_t kept = 0;
  if (session != nullptr) {
    const auto before = session->rendering.text.parts();
    const auto now = text.parts();
    const auto differs = std::mismatch(before.begin(), before.end(), now.begin(), now.end(), same_part);
    const auto same = static_cast<size_t>(differs.first - before.begin());
    kept = session->checkpoints.size();
    while (kept > 0 && session->checkpoints[kept - 1].group_end >= same) --kept;
  }
  if (kept == 0) {
    fresh_.fetch_add(1, std::memory_order_relaxed);
    return prefix;
  }
  const bool extends = kept + kLastPlaces >= session->checkpoints.size();
  (extends ? extended_ : restarted_).fetch_add(1, std::memory_order_relaxed);
  prefix.checkpoints.assign(session->checkpoints.begin(),
                            session->checkpoints.begin() + static_cast<std::ptrdiff_t>(kept));
  prefix.at = prefix.checkpoints.back();
  size_t wanted = prefix.at.tokens;
  for (const auto& segment : session->ids) {
    if (wanted == 0) break;
    const size_t count = std::min(wanted, segment->size());
    const auto end = segment->begin() + static_cast<std::ptrdiff_t>(count);
    tokens.insert(tokens.end(), segment->begin(), end);
    wanted -= count;
    prefix.ids.push_back(
        count == segment->size() ? segment : std::make_shared<const std::vector<TokenId>>(segment->begin(), end));
  }
  return prefix;
}

void PromptMemory::remember(const Known& known, Prefix prefix, Session session, const std::vector<TokenId>& tokens) {
  if (session.rendering.text.size() < kMinBytes || session.checkpoints.empty()) return;
  const size_t total = session.checkpoints.back().tokens;
  session.ids = std::move(prefix.ids);
  size_t from = prefix.at.tokens;
  if (session.ids.size() >= kMaxSegments) {
    session.ids.clear();
    from = 0;
  }
  const auto at = [&tokens](size_t index) { return tokens.begin() + static_cast<std::ptrdiff_t>(index); };
  if (total > from) session.ids.push_back(std::make_shared<const std::vector<TokenId>>(at(from), at(total)));
  const size_t bytes =
      session.rendering.bytes() + total * sizeof(TokenId) + session.checkpoints.size() * sizeof(PromptCheckpoint);
  const auto shared = std::make_shared<const Session>(std::move(session));
  const size_t count = known.keys.size() - 1;
  size_t shares = 0;  // of the bytes, among the last places
  for (size_t back = 0, step = 1; back < count; back += step) {
    sessions_.replace(known.keys[count - back], shared, shares < kLastPlaces ? bytes / kLastPlaces : 0);
    if (++shares >= kLastPlaces) step = std::max<size_t>(1, back / 2);
  }
}

}  // namespace warmpath
