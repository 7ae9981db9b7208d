#include "text/message_cache.h"

#include <atomic>

#include "text/conversation.h"
#include "text/json_value.h"
#include "text/lru_cache.h"
#include "text/secret_hash.h"

namespace warmpath {
namespace {

// What a value holds in memory, about.
size_t bytes_of(const Value& value) {
  size_t bytes = kValueBytes;
  if (value.is_string()) bytes += value.as_text().size();
  if (value.is_list()) {
    for (const Value& item : value.as_list().items) bytes += bytes_of(item);
  }
  if (value.is_dict()) {
    for (const auto& [key, item] : value.as_dict().entries) bytes += bytes_of(key) + bytes_of(item);
  }
  return bytes;
}

}  // namespace

struct MessageCache::Shards {
  explicit Shards(size_t max_bytes) : cache(max_bytes) {}
  struct Entry {
    Value message;
    size_t bytes = 0;
  };
  LruCache<Entry> cache;
  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> misses{0};
};

MessageCache::MessageCache(size_t max_bytes) : shards_(std::make_unique<Shards>(max_bytes)) {}
MessageCache::~MessageCache() = default;

Result<Value> MessageCache::read(std::string_view raw_json) {
  size_t budget = budget_for(raw_json.size());
  return read(raw_json, budget);
}

Result<Value> MessageCache::read(std::string_view raw_json, size_t& budget) {
  return read(
      raw_json, {}, [](const Value& message) { return Result<Value>(with_parsed_tool_arguments(message)); }, budget);
}

Result<Value> MessageCache::read(std::string_view raw_json, std::string_view kind, Translate translate,
                                 size_t& budget) {
  const auto over_budget = [] { return resource_exhausted("too many JSON values"); };
  const std::string_view pieces[] = {kind, raw_json};
  const Hash128 key = secret_hash(pieces);
  if (auto found = shards_->cache.find(key)) {
    shards_->hits.fetch_add(1, std::memory_order_relaxed);
    if (found->bytes > budget) return over_budget();
    budget -= found->bytes;
    return std::move(found->message);
  }
  shards_->misses.fetch_add(1, std::memory_order_relaxed);
  Result<Value> parsed = value_from_json(raw_json, Origin::kMessage, budget / kValueBytes);
  if (!parsed.ok()) return parsed;
  if (!parsed->is_dict()) return invalid_argument("a message must be a JSON object");
  Result<Value> message = translate(*parsed);
  if (!message.ok()) return message;
  const size_t bytes = bytes_of(*message);
  if (bytes > budget) return over_budget();
  budget -= bytes;
  shards_->cache.insert(key, {*message, bytes}, bytes);
  return message;
}

MessageCache::Stats MessageCache::stats() const {
  return {shards_->hits.load(std::memory_order_relaxed), shards_->misses.load(std::memory_order_relaxed),
          shards_->cache.bytes()};
}

}  // namespace warmpath
