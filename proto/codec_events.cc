// KV events, hints, identities and the protocol version. The other messages: codec_generate.cc, codec_describe.cc.
#include <bit>
#include <cstring>

#include "proto/codec.h"
#include "proto/codec_checks.h"
#include "proto/engine.pb.h"

namespace warmpath {

namespace {

constexpr size_t kHashBytes = 16;

uint64_t big_endian(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return __builtin_bswap64(word);
}

static_assert(std::endian::native == std::endian::little, "warmpath runs on x86-64");

Hash128 read_hash(const char* bytes) { return {big_endian(bytes), big_endian(bytes + 8)}; }

v1::Tier wire_tier(Tier tier) { return static_cast<v1::Tier>(static_cast<int>(tier)); }

Status decode_tier(v1::Tier from, Tier& tier) {
  const int number = from;
  if (number < 0 || number >= kTiers) {
    return invalid_argument(fmt::format("tier is {}; this version knows 0 to {}", number, kTiers - 1));
  }
  tier = static_cast<Tier>(number);
  return {};
}

struct EventEncoder {
  v1::KvEvent& message;

  void operator()(const BlocksStored& event) const {
    v1::BlocksStored& stored = *message.mutable_stored();
    stored.set_tier(wire_tier(event.tier));
    append_hash(*stored.mutable_parent(), event.parent);
    stored.set_blocks(pack_hashes(event.blocks));
  }
  void operator()(const BlocksRemoved& event) const {
    message.mutable_removed()->set_tier(wire_tier(event.tier));
    message.mutable_removed()->set_blocks(pack_hashes(event.blocks));
  }
  void operator()(const BlocksCleared&) const { message.mutable_cleared(); }
  void operator()(const Heartbeat& event) const {
    message.mutable_heartbeat()->set_resident_blocks(event.resident_blocks);
    message.mutable_heartbeat()->set_checksum(event.checksum);
  }
  void operator()(const EvictSoon& event) const {
    message.mutable_evict_soon()->set_tier(wire_tier(event.tier));
    message.mutable_evict_soon()->set_blocks(pack_hashes(event.blocks));
  }
};

Status decode_event(const v1::KvEvent& message, KvEvent& value) {
  switch (message.event_case()) {
    case v1::KvEvent::kStored: {
      BlocksStored& event = value.emplace<BlocksStored>();
      WARMPATH_RETURN_IF_ERROR(decode_tier(message.stored().tier(), event.tier));
      WARMPATH_RETURN_IF_ERROR(unpack_hash("stored.parent", message.stored().parent(), event.parent));
      return unpack_hashes("stored.blocks", message.stored().blocks(), event.blocks);
    }
    case v1::KvEvent::kRemoved: {
      BlocksRemoved& event = value.emplace<BlocksRemoved>();
      WARMPATH_RETURN_IF_ERROR(decode_tier(message.removed().tier(), event.tier));
      return unpack_hashes("removed.blocks", message.removed().blocks(), event.blocks);
    }
    case v1::KvEvent::kCleared:
      value.emplace<BlocksCleared>();
      return {};
    case v1::KvEvent::kHeartbeat: {
      Heartbeat& event = value.emplace<Heartbeat>();
      event.resident_blocks = message.heartbeat().resident_blocks();
      event.checksum = message.heartbeat().checksum();
      return codec::not_negative("heartbeat.resident_blocks", event.resident_blocks);
    }
    case v1::KvEvent::kEvictSoon: {
      EvictSoon& event = value.emplace<EvictSoon>();
      WARMPATH_RETURN_IF_ERROR(decode_tier(message.evict_soon().tier(), event.tier));
      return unpack_hashes("evict_soon.blocks", message.evict_soon().blocks(), event.blocks);
    }
    case v1::KvEvent::EVENT_NOT_SET:
      break;
  }
  // Skipping it would leave a receiver that believes something wrong.
  return unimplemented("a KV event is of a kind that this version does not know; run the same warmpath on both sides");
}

}  // namespace

void append_hash(std::string& bytes, Hash128 hash) {
  const uint64_t words[2] = {__builtin_bswap64(hash.hi), __builtin_bswap64(hash.lo)};
  bytes.append(reinterpret_cast<const char*>(words), sizeof words);
}

std::string pack_hashes(std::span<const Hash128> hashes) {
  std::string bytes;
  bytes.reserve(hashes.size() * kHashBytes);
  for (const Hash128 hash : hashes) append_hash(bytes, hash);
  return bytes;
}

Status unpack_hash(std::string_view field, std::string_view bytes, Hash128& hash) {
  if (bytes.size() != kHashBytes) {
    return invalid_argument(fmt::format("{} has {} bytes; an identity has {}", field, bytes.size(), kHashBytes));
  }
  hash = read_hash(bytes.data());
  return {};
}

Status unpack_hashes(std::string_view field, std::string_view bytes, std::vector<Hash128>& hashes) {
  if (bytes.size() % kHashBytes != 0) {
    return invalid_argument(fmt::format("{} has {} bytes; identities have {} each", field, bytes.size(), kHashBytes));
  }
  hashes.clear();
  hashes.reserve(bytes.size() / kHashBytes);
  for (size_t at = 0; at < bytes.size(); at += kHashBytes) hashes.push_back(read_hash(bytes.data() + at));
  return {};
}

void encode(const KvEventBatch& value, v1::KvEventBatch& message) {
  message.set_boot_epoch(value.boot_epoch);
  message.set_sequence(value.sequence);
  switch (value.kind) {
    case KvEventBatch::Kind::kSnapshotBegin:
      message.set_kind(v1::KV_BATCH_KIND_SNAPSHOT_BEGIN);
      break;
    case KvEventBatch::Kind::kSnapshotPart:
      message.set_kind(v1::KV_BATCH_KIND_SNAPSHOT_PART);
      break;
    case KvEventBatch::Kind::kSnapshotEnd:
      message.set_kind(v1::KV_BATCH_KIND_SNAPSHOT_END);
      break;
    case KvEventBatch::Kind::kLive:
      message.set_kind(v1::KV_BATCH_KIND_LIVE);
      break;
  }
  for (const KvEvent& event : value.events) std::visit(EventEncoder{*message.add_events()}, event);
}

Status decode(const v1::KvEventBatch& message, KvEventBatch& value) {
  value = {};
  value.boot_epoch = message.boot_epoch();
  value.sequence = message.sequence();
  switch (message.kind()) {
    case v1::KV_BATCH_KIND_LIVE:
      value.kind = KvEventBatch::Kind::kLive;
      break;
    case v1::KV_BATCH_KIND_SNAPSHOT_BEGIN:
      value.kind = KvEventBatch::Kind::kSnapshotBegin;
      break;
    case v1::KV_BATCH_KIND_SNAPSHOT_PART:
      value.kind = KvEventBatch::Kind::kSnapshotPart;
      break;
    case v1::KV_BATCH_KIND_SNAPSHOT_END:
      value.kind = KvEventBatch::Kind::kSnapshotEnd;
      break;
    default:
      return unimplemented(fmt::format("kind is {}; this version knows 0 to 3", static_cast<int>(message.kind())));
  }
  value.events.reserve(message.events_size());
  for (const v1::KvEvent& event : message.events()) {
    WARMPATH_RETURN_IF_ERROR(decode_event(event, value.events.emplace_back()));
    if (value.kind != KvEventBatch::Kind::kLive && !std::holds_alternative<BlocksStored>(value.events.back())) {
      return invalid_argument("a snapshot holds an event other than stored");
    }
  }
  return {};
}

void encode(const HintCommand& value, v1::HintRequest& message) {
  message.set_kind(value.kind == HintCommand::Kind::kPin ? v1::HintRequest::KIND_PIN : v1::HintRequest::KIND_RELEASE);
  message.set_blocks(pack_hashes(value.blocks));
  message.set_ttl_s(value.ttl_s);
}

Status decode(const v1::HintRequest& message, HintCommand& value) {
  switch (message.kind()) {
    case v1::HintRequest::KIND_PIN:
      value.kind = HintCommand::Kind::kPin;
      break;
    case v1::HintRequest::KIND_RELEASE:
      value.kind = HintCommand::Kind::kRelease;
      break;
    case v1::HintRequest::KIND_PREFETCH:
      return unimplemented("kind is PREFETCH, which is reserved for lower tiers and not built yet");
    default:
      return invalid_argument(fmt::format("kind is {}; use PIN (1) or RELEASE (3)", static_cast<int>(message.kind())));
  }
  WARMPATH_RETURN_IF_ERROR(codec::duration("ttl_s", message.ttl_s()));
  value.ttl_s = message.ttl_s();
  return unpack_hashes("blocks", message.blocks(), value.blocks);
}

Status check_protocol(std::string_view peer, int32_t major, int32_t minor) {
  if (major == kProtocolMajor) return {};
  return failed_precondition(
      fmt::format("the {} speaks warmpath protocol {}.{}, this side {}.{}: the major versions must be equal; run the "
                  "same warmpath release on both sides",
                  peer, major, minor, kProtocolMajor, kProtocolMinor));
}

}  // namespace warmpath
