// The bytes of an index snapshot, one layer below index_snapshot.h: numbers, pieces with checksums, and runs.
// Everything is little-endian. Private to this room. Thread safety: values.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash128.h"
#include "base/status.h"

namespace warmpath::snapshot {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::string_view kMagic = "wp-index";
inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kHeadBytes = 12;
inline constexpr size_t kPieceHeadBytes = 16;
inline constexpr size_t kMaxPieceBytes = size_t{64} << 20;
inline constexpr size_t kMaxReplicas = 4096;
inline constexpr uint16_t kMaxRunBlocks = 256;
inline constexpr size_t kMaxNameBytes = 4096;

enum class PieceKind : uint32_t { kReplicas = 1, kRuns = 2, kEnd = 3 };

class Out {
 public:
  explicit Out(std::string& bytes) : bytes_(bytes) {}
  template <typename Number>
  void number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void identity(Hash128 value) {
    number(value.hi);
    number(value.lo);
  }
  void text(std::string_view value) {
    number(static_cast<uint16_t>(value.size()));
    bytes_.append(value);
  }

 private:
  std::string& bytes_;
};

// Reads past the end give zeros and are remembered.
class In {
 public:
  explicit In(std::string_view bytes) : rest_(bytes) {}
  template <typename Number>
  Number number() {
    Number value{};
    const std::string_view raw = take(sizeof value);
    if (!raw.empty()) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  Hash128 identity() {
    const auto hi = number<uint64_t>();
    return {hi, number<uint64_t>()};
  }
  std::string_view text() { return take(number<uint16_t>()); }
  std::string_view take(size_t bytes) {
    if (bytes > rest_.size()) {
      failed_ = true;
      rest_ = {};
    }
    if (failed_) return {};
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  bool at_end() const { return rest_.empty(); }
  bool failed() const { return failed_; }
  size_t left() const { return rest_.size(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

// Offsets count from the run's first block.
struct Held {
  uint16_t replica = 0;  // its position in the list of replicas
  uint8_t tier = 0;
  uint16_t begin = 0;
  uint16_t end = 0;
};
struct Placed {
  uint16_t replica = 0;
  uint16_t begin = 0;
  uint16_t end = 0;
  uint32_t left_ms = 0;
};
// Copies beyond the first.
struct Copies {
  uint16_t replica = 0;
  uint8_t tier = 0;
  uint16_t offset = 0;
  uint32_t extra = 0;
};
struct Run {
  Hash128 parent;
  std::vector<Hash128> blocks;
  std::vector<Held> held;
  std::vector<Placed> placed;
  std::vector<Copies> copies;
};

// Appends head and checksum of a piece whose payload starts at `payload_at` of `bytes`, where room for the head was
// left before it.
void seal_piece(std::string& bytes, size_t payload_at, PieceKind kind, uint32_t number);
// `number` counts the pieces of a file from 0.
uint64_t piece_checksum(std::string_view payload, PieceKind kind, uint32_t number);

void write_run(Out& out, const Run& run);
// False when it is not a valid run of an index with `replicas` replicas. `run` is reused to save allocations.
bool read_run(In& in, size_t replicas, Run& run);

}  // namespace warmpath::snapshot
