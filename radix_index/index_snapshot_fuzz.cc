// Any bytes as a snapshot: parsing must survive them; what is accepted must leave an index whole. So that mutation gets
// past the checksums, the first byte says whether they are put right before parsing.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "radix_index/radix_index.h"
#include "radix_index/snapshot_bytes.h"

namespace {

void put_checksums_right(std::string& bytes) {
  using namespace warmpath::snapshot;
  size_t at = kHeadBytes;
  for (uint32_t number = 0; at + kPieceHeadBytes <= bytes.size(); ++number) {
    In head(std::string_view(bytes).substr(at, 8));
    const auto kind = static_cast<PieceKind>(head.number<uint32_t>());
    const auto size = head.number<uint32_t>();
    at += kPieceHeadBytes;
    if (size > bytes.size() - at) return;
    const uint64_t checksum = piece_checksum(std::string_view(bytes).substr(at, size), kind, number);
    bytes.replace(at - 8, 8, reinterpret_cast<const char*>(&checksum), 8);
    at += size;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) put_checksums_right(bytes);
  const auto parsed = warmpath::IndexSnapshot::parse(bytes);
  if (!parsed.ok()) {
    if (parsed.status().message().empty()) std::abort();
    return 0;
  }
  warmpath::RadixIndex index({.max_bytes = size_t{4} << 20, .max_replicas = 8});
  std::vector<warmpath::SnapshotReplica> replicas;
  for (const auto& replica : parsed->replicas()) {
    const auto id = index.add_replica();
    if (id.ok()) replicas.push_back({std::string(replica.name), *id});
  }
  index.restore(*parsed, replicas, 1, 1'000'000'000);
  if (!index.check_integrity().ok()) std::abort();
  return 0;
}
