#include "text/prompt_memory.h"

#include <algorithm>
#include <cstring>

#include "text/secret_hash.h"

namespace warmpath {
namespace {

// Bytes at both ends of a part by which a prompt is looked for; what is found is compared whole.
constexpr size_t kEndBytes = 64;
// A prompt is remembered at its last places and at ever fewer of the earlier ones.
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

}  // namespace

namespace {

// keys[i]: of the first i parts.
std::vector<Hash128> keys_of(const MarkedText& text) {
  std::vector<Hash128> keys(1);
  keys.reserve(text.parts().size() + 1);
  for (const MarkedText::Part& part : text.parts()) {
    const std::string_view bytes = part.bytes;
    const Hash128 before = keys.back();
    const uint64_t size = bytes.size();
    const std::string_view pieces[] = {{reinterpret_cast<const char*>(&before), sizeof(before)},
                                       {reinterpret_cast<const char*>(&size), sizeof(size)},
                                       bytes.substr(0, kEndBytes),
                                       bytes.substr(bytes.size() - std::min(bytes.size(), kEndBytes))};
    keys.push_back(secret_hash(pieces));
  }
  return keys;
}

}  // namespace

PromptMemory::Prefix PromptMemory::recall(const MarkedText& text, std::vector<TokenId>& tokens) {
  Prefix prefix;
  if (text.size() < kMinBytes) return prefix;
  const std::vector<Hash128> keys = keys_of(text);
  const auto now = text.parts();
  for (size_t same = now.size(); same > 1; --same) {
    // A place ends where a message follows the template.
    if (now[same - 1].origin != Origin::kMessage || now[same - 2].origin != Origin::kTemplate) continue;
    const auto found = sessions_.find(keys[same]);
    if (!found) continue;
    const Session& session = **found;
    const auto before = session.text.parts();
    size_t kept = session.checkpoints.size();
    while (kept > 0 && session.checkpoints[kept - 1].group_end >= same) --kept;
    if (kept == 0 || before.size() < same ||
        !std::equal(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(same), now.begin(), same_part))
      continue;
    const bool extends = kept + kLastPlaces >= session.checkpoints.size();
    (extends ? extended_ : restarted_).fetch_add(1, std::memory_order_relaxed);
    take(session, kept, prefix, tokens);
    return prefix;
  }
  fresh_.fetch_add(1, std::memory_order_relaxed);
  return prefix;
}

void PromptMemory::take(const Session& session, size_t kept, Prefix& prefix, std::vector<TokenId>& tokens) {
  prefix.checkpoints.assign(session.checkpoints.begin(),
                            session.checkpoints.begin() + static_cast<std::ptrdiff_t>(kept));
  prefix.at = prefix.checkpoints.back();
  size_t wanted = prefix.at.tokens;
  for (const auto& segment : session.ids) {
    if (wanted == 0) break;
    const size_t count = std::min(wanted, segment->size());
    tokens.insert(tokens.end(), segment->begin(), segment->begin() + static_cast<std::ptrdiff_t>(count));
    wanted -= count;
    prefix.ids.push_back(count == segment->size()
                             ? segment
                             : std::make_shared<const std::vector<TokenId>>(
                                   segment->begin(), segment->begin() + static_cast<std::ptrdiff_t>(count)));
  }
}

void PromptMemory::remember(const MarkedText& text, Prefix prefix, std::vector<PromptCheckpoint> checkpoints,
                            const std::vector<TokenId>& tokens, size_t first_token) {
  if (text.size() < kMinBytes || checkpoints.empty()) return;
  auto session = std::make_shared<Session>();
  session->text = text;
  const size_t total = checkpoints.back().tokens;
  const auto at = [&](size_t index) { return tokens.begin() + static_cast<std::ptrdiff_t>(first_token + index); };
  session->ids = std::move(prefix.ids);
  size_t known = prefix.at.tokens;
  if (session->ids.size() >= kMaxSegments) {
    session->ids.clear();
    known = 0;
  }
  if (total > known) session->ids.push_back(std::make_shared<const std::vector<TokenId>>(at(known), at(total)));
  session->checkpoints = std::move(checkpoints);
  const size_t bytes = text.size() + total * sizeof(TokenId) + session->checkpoints.size() * sizeof(PromptCheckpoint) +
                       text.parts().size() * sizeof(MarkedText::Part);
  const std::vector<Hash128> keys = keys_of(text);
  const std::shared_ptr<const Session> shared = std::move(session);
  const auto& places = shared->checkpoints;
  size_t shares = 0;  // of the bytes, among the last places
  for (size_t back = 1, step = 1; back <= places.size(); back += step) {
    const PromptCheckpoint& place = places[places.size() - back];
    if (place.group_end < text.parts().size()) {
      sessions_.replace(keys[place.group_end + 1], shared, shares < kLastPlaces ? bytes / kLastPlaces : 0);
      ++shares;
    }
    if (shares >= kLastPlaces) step = std::max<size_t>(1, back / 2);
  }
}

}  // namespace warmpath
