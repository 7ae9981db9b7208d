// The contract's plain values <-> protobuf messages.
//
// encode() overwrites a fresh (or cleared) message. decode() takes whatever a peer sent: it never throws, allocates in
// proportion to the message, and either fills `value` completely or says which field is wrong. Values are left
// unspecified after an error. Fields that a newer minor version added are ignored; fields that are reserved are refused
// with kUnimplemented and their name.
//
// Protobuf's headers are heavy: this one only declares the messages. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash128.h"
#include "base/status.h"
#include "proto/describe.h"
#include "proto/generate.h"
#include "proto/kv_event.h"

namespace warmpath::v1 {
class DescribeReply;
class DescribeRequest;
class GenerateRequest;
class GenerateUpdate;
class Grammar;
class HintRequest;
class KvEventBatch;
class StatsReply;
}  // namespace warmpath::v1

namespace warmpath {

// The largest message either side accepts; a prompt of 1,000,000 tokens fits. Larger ones end with kResourceExhausted.
inline constexpr int kMaxMessageBytes = 16 * 1024 * 1024;
inline constexpr size_t kMaxRequestIdBytes = 256;
inline constexpr size_t kMaxSaltBytes = 256;

void encode(const GenerateRequest& value, v1::GenerateRequest& message);
void encode(const GenerateUpdate& value, v1::GenerateUpdate& message);
void encode(const ReplicaDescription& value, v1::DescribeReply& message);
void encode(const ReplicaStats& value, v1::StatsReply& message);
void encode(const KvEventBatch& value, v1::KvEventBatch& message);

// Ranges that need no model are checked (validate() in proto/sampling.h too); whether tokens are in the vocabulary and
// the prompt fits the context is the engine's to check.
Status decode(const v1::GenerateRequest& message, GenerateRequest& value);
Status decode(const v1::GenerateUpdate& message, GenerateUpdate& value);
// Refuses another major version by name.
Status decode(const v1::DescribeReply& message, ReplicaDescription& value);
Status decode(const v1::StatsReply& message, ReplicaStats& value);
Status decode(const v1::KvEventBatch& message, KvEventBatch& value);

struct HintCommand {
  enum class Kind { kPin, kRelease } kind = Kind::kPin;
  std::vector<Hash128> blocks;
  double ttl_s = 0;
};
void encode(const HintCommand& value, v1::HintRequest& message);
Status decode(const v1::HintRequest& message, HintCommand& value);

// `peer` is "gateway" or "replica": who speaks the version that is asked about.
Status check_protocol(std::string_view peer, int32_t major, int32_t minor);

// Checked as validate() in proto/grammar.h does, but for the vocabulary.
void encode(const Grammar& value, v1::Grammar& message);
Status decode(const v1::Grammar& message, Grammar& value);

// Identities on the wire: 16 bytes each, high half first, big-endian, concatenated.
void append_hash(std::string& bytes, Hash128 hash);
std::string pack_hashes(std::span<const Hash128> hashes);
Status unpack_hash(std::string_view field, std::string_view bytes, Hash128& hash);
Status unpack_hashes(std::string_view field, std::string_view bytes, std::vector<Hash128>& hashes);

}  // namespace warmpath
