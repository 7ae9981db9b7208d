#include "text/message_cache.h"

#include <atomic>

#include "text/conversation.h"
#include "text/json_value.h"
#include "text/lru_cache.h"
#include "text/secret_hash.h"

namespace warmpath {
namespace {

// What a value holds in memory, about: nodes of 64 to 100 bytes each and the strings' own bytes.
size_t bytes_of(const Value& value) {
  constexpr size_t kNode = 112;
  size_t bytes = kNode;
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
  LruCache<Value> cache;
  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> misses{0};
};

MessageCache::MessageCache(size_t max_bytes) : shards_(std::make_unique<Shards>(max_bytes)) {}
MessageCache::~MessageCache() = default;

Result<Value> MessageCache::read(std::string_view raw_json) {
  const Hash128 key = secret_hash(raw_json);
  if (auto found = shards_->cache.find(key)) {
    shards_->hits.fetch_add(1, std::memory_order_relaxed);
    return *std::move(found);
  }
  shards_->misses.fetch_add(1, std::memory_order_relaxed);
  Result<Value> parsed = value_from_json(raw_json);
  if (!parsed.ok()) return parsed;
  if (!parsed->is_dict()) return invalid_argument("a message must be a JSON object");
  Value message = with_parsed_tool_arguments(*parsed);
  shards_->cache.insert(key, message, bytes_of(message));
  return message;
}

MessageCache::Stats MessageCache::stats() const {
  return {shards_->hits.load(std::memory_order_relaxed), shards_->misses.load(std::memory_order_relaxed),
          shards_->cache.bytes()};
}

}  // namespace warmpath
