// MessageCache: raw JSON of one message -> its Value, so that a turn of a long session parses only the messages it
// adds. Keys are 128-bit hashes under a secret of this process; values are frozen and shared by reference. Bounded: at
// most `max_bytes` of strings and nodes, least recently used out first. Thread safety: any thread, sharded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "text/value.h"

namespace warmpath {

class MessageCache {
 public:
  explicit MessageCache(size_t max_bytes = size_t{64} << 20);
  ~MessageCache();

  // The message that `raw_json` (one JSON object) spells, tool-call arguments parsed (with_parsed_tool_arguments).
  // What it takes in memory comes off `budget`; resource_exhausted when that is not enough.
  Result<Value> read(std::string_view raw_json, size_t& budget);
  // With a budget of its own: budget_for(raw_json.size()).
  Result<Value> read(std::string_view raw_json);
  // The same, but translated; what is remembered is the translation (a frozen value, of any type). `kind` tells
  // translations of equal bytes apart.
  using Translate = Result<Value> (*)(const Value& object);
  Result<Value> read(std::string_view raw_json, std::string_view kind, Translate translate, size_t& budget);

  // Memory for messages of so many bytes of JSON together: ample for any conversation, and a bound for JSON made of
  // millions of empty objects.
  static size_t budget_for(size_t json_bytes) { return (size_t{16} << 20) + 6 * json_bytes; }

  struct Stats {
    uint64_t hits = 0;
    uint64_t misses = 0;
    size_t bytes = 0;
  };
  Stats stats() const;

 private:
  struct Shards;
  std::unique_ptr<Shards> shards_;
};

}  // namespace warmpath
