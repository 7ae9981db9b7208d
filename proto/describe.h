// Describe: what a replica says of itself, and the load figures it reports. Plain values; proto/codec.h maps them to
// protobuf.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/hash128.h"
#include "base/token.h"

namespace warmpath {

// A peer with another major version is refused by name; a newer minor version only adds optional fields.
inline constexpr int32_t kProtocolMajor = 2;
inline constexpr int32_t kProtocolMinor = 1;

struct ReplicaDescription {
  int32_t protocol_major = kProtocolMajor;
  int32_t protocol_minor = kProtocolMinor;
  std::string software;     // "warmpath-engine 0.1.0" or "warmpath mock-replica 0.1.0"
  uint64_t boot_epoch = 0;  // random, new at every start: a restarted replica is another one
  std::string model;        // served model name
  std::string model_path;   // for people; empty where there is no file
  bool synthetic = false;   // random weights or canned output: never to be mistaken for a model
  Hash128 fingerprint;      // weights, tokenizer and KV layout: the root of every block identity
  Hash128 tokenizer_hash;   // of the bytes that FetchTokenizer returns
  int32_t vocabulary = 0;
  int32_t context_tokens = 0;  // prompt + output of one sequence
  int32_t block_tokens = kBlockTokens;
  int64_t device_blocks = 0;  // KV capacity
  int64_t host_blocks = 0;
  int64_t disk_blocks = 0;
  int64_t kv_bytes_per_token = 0;
  int32_t max_running = 0;  // sequences in one step
  int32_t max_queued = 0;
  std::vector<TokenId> end_tokens;  // the model's own end-of-generation tokens
  std::string device;               // "cpu avx512 x2"
  bool structured_output = false;   // GenerateRequest::grammar is obeyed; others refuse it
};

// A gauge snapshot; also carried by heartbeats.
struct ReplicaStats {
  uint64_t boot_epoch = 0;
  bool draining = false;
  int32_t running = 0;  // sequences with a slot
  int32_t queued = 0;
  int64_t queued_tokens = 0;  // uncached prompt tokens that wait
  int64_t free_blocks = 0;    // neither referenced nor holding a cached block
  int64_t cached_blocks = 0;  // reusable, unreferenced
  int64_t used_blocks = 0;    // referenced by running sequences
  int64_t requests = 0;       // counters since boot
  int64_t cancelled = 0;
  int64_t preemptions = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of those, found as whole blocks
  int64_t tail_tokens = 0;    // of those, copied from a block that only begins alike
  int64_t generated_tokens = 0;
  int64_t evicted_blocks = 0;
  int64_t steps = 0;
};

}  // namespace warmpath
