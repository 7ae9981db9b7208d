#include "radix_index/snapshot_bytes.h"

#include <xxhash.h>

#include "proto/kv_event.h"

namespace warmpath::snapshot {

namespace {

// A count that the bytes left cannot hold is refused before anything is allocated for it.
template <typename Item, typename Read>
bool read_list(In& in, size_t item_bytes, std::vector<Item>& items, Read read) {
  const auto count = in.number<uint32_t>();
  items.clear();
  if (in.failed() || count > in.left() / item_bytes) return false;
  items.reserve(count);
  for (uint32_t n = 0; n < count; ++n) items.push_back(read());
  return true;
}

}  // namespace

uint64_t piece_checksum(std::string_view payload, PieceKind kind, uint32_t number) {
  // A piece in another place, or taken for another kind, fails too.
  return XXH3_64bits_withSeed(payload.data(), payload.size(), uint64_t{number} << 32 | static_cast<uint32_t>(kind));
}

void seal_piece(std::string& bytes, size_t payload_at, PieceKind kind, uint32_t number) {
  const std::string_view payload = std::string_view(bytes).substr(payload_at);
  std::string head;
  Out out(head);
  out.number(static_cast<uint32_t>(kind));
  out.number(static_cast<uint32_t>(payload.size()));
  out.number(piece_checksum(payload, kind, number));
  bytes.replace(payload_at - kPieceHeadBytes, kPieceHeadBytes, head);
}

void write_run(Out& out, const Run& run) {
  out.identity(run.parent);
  out.number(static_cast<uint16_t>(run.blocks.size()));
  for (const Hash128& block : run.blocks) out.identity(block);
  out.number(static_cast<uint32_t>(run.held.size()));
  for (const Held& held : run.held) {
    out.number(held.replica);
    out.number(held.tier);
    out.number(held.begin);
    out.number(held.end);
  }
  out.number(static_cast<uint32_t>(run.placed.size()));
  for (const Placed& placed : run.placed) {
    out.number(placed.replica);
    out.number(placed.begin);
    out.number(placed.end);
    out.number(placed.left_ms);
  }
  out.number(static_cast<uint32_t>(run.copies.size()));
  for (const Copies& copies : run.copies) {
    out.number(copies.replica);
    out.number(copies.tier);
    out.number(copies.offset);
    out.number(copies.extra);
  }
}

bool read_run(In& in, size_t replicas, Run& run) {
  run.parent = in.identity();
  const auto blocks = in.number<uint16_t>();
  if (in.failed() || blocks == 0 || blocks > kMaxRunBlocks) return false;
  run.blocks.clear();
  for (uint16_t n = 0; n < blocks; ++n) run.blocks.push_back(in.identity());

  bool valid = true;
  const auto check_span = [&](uint16_t replica, uint16_t begin, uint16_t end) {
    valid = valid && replica < replicas && begin < end && end <= blocks;
  };
  const auto read_held = [&] {
    Held held;
    held.replica = in.number<uint16_t>();
    held.tier = in.number<uint8_t>();
    held.begin = in.number<uint16_t>();
    held.end = in.number<uint16_t>();
    check_span(held.replica, held.begin, held.end);
    valid = valid && held.tier < kTiers;
    return held;
  };
  const auto read_placed = [&] {
    Placed placed;
    placed.replica = in.number<uint16_t>();
    placed.begin = in.number<uint16_t>();
    placed.end = in.number<uint16_t>();
    placed.left_ms = in.number<uint32_t>();
    check_span(placed.replica, placed.begin, placed.end);
    return placed;
  };
  const auto read_copies = [&] {
    Copies copies;
    copies.replica = in.number<uint16_t>();
    copies.tier = in.number<uint8_t>();
    copies.offset = in.number<uint16_t>();
    copies.extra = in.number<uint32_t>();
    valid = valid && copies.replica < replicas && copies.tier < kTiers && copies.offset < blocks && copies.extra > 0;
    return copies;
  };
  return read_list(in, 7, run.held, read_held) && read_list(in, 10, run.placed, read_placed) &&
         read_list(in, 9, run.copies, read_copies) && valid && !in.failed();
}

}  // namespace warmpath::snapshot
