// PieceCache: short pieces of text -> their token ids, so that a word seen before costs one look-up instead of merges.
// Direct-mapped and of fixed size (1 MiB); a collision just forgets. Thread safety: one thread at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/token.h"

namespace warmpath {

class PieceCache {
 public:
  static constexpr size_t kMaxPieceBytes = 24;
  static constexpr size_t kMaxIds = 8;

  struct Key {
    uint64_t words[3];
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    uint32_t size;   // bytes of the piece; 0: empty
    uint32_t count;  // ids
    TokenId ids[kMaxIds];
  };

  PieceCache() : entries_(kEntries) {}

  // REQUIRES 0 < piece.size() <= kMaxPieceBytes. `readable`: bytes that may be read from piece.data() on.
  static Key key_of(std::string_view piece, size_t readable) {
    Key key{};
    if (readable >= kMaxPieceBytes) {
      std::memcpy(key.words, piece.data(), kMaxPieceBytes);
      for (size_t word = 0; word < 3; ++word) {
        const size_t begin = word * 8;
        const size_t kept = piece.size() <= begin ? 0 : piece.size() - begin;
        if (kept < 8) key.words[word] &= (uint64_t{1} << (kept * 8)) - 1;
      }
    } else {
      std::memcpy(key.words, piece.data(), piece.size());
    }
    return key;
  }

  // The slot of a piece: a hit when matches() says so, else the place to fill.
  Entry& slot_of(const Key& key) {
    uint64_t mixed = key.words[0] * 0x9E3779B97F4A7C15ull;  // odd constants of MurmurHash3 and the golden ratio
    mixed = std::rotl(mixed ^ key.words[1] * 0xFF51AFD7ED558CCDull, 31) * 0xC4CEB9FE1A85EC53ull;
    mixed ^= key.words[2] * 0x9E3779B97F4A7C15ull;
    return entries_[(mixed ^ mixed >> 29) >> (64 - kEntryBits)];
  }
  static bool matches(const Entry& entry, const Key& key, size_t size) {
    return entry.size == size && entry.key == key;
  }

 private:
  static constexpr int kEntryBits = 14;
  static constexpr size_t kEntries = size_t{1} << kEntryBits;
  std::vector<Entry> entries_;
};
static_assert(sizeof(PieceCache::Entry) == 64);

}  // namespace warmpath
