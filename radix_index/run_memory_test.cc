#include "radix_index/run_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace warmpath {
namespace {

TEST(RunMemory, PiecesOfEverySizeDoNotOverlapAndAreCounted) {
  RunMemory memory(size_t{64} << 20);
  std::mt19937_64 random(1);
  struct Piece {
    unsigned char* at;
    size_t bytes;
    unsigned char mark;
  };
  std::vector<Piece> pieces;
  std::map<const unsigned char*, size_t> taken;
  size_t used = 0;
  for (int round = 0; round < 20'000; ++round) {
    if (pieces.empty() || random() % 5 < 3) {
      // Small ones mostly, and some of each kind: in slabs, from the heap, from the system.
      const size_t bytes = 1 + random() % (random() % 100 == 0 ? 300'000 : 5'000);
      auto* at = static_cast<unsigned char*>(memory.allocate(bytes));
      const auto next = taken.lower_bound(at);
      if (next != taken.end()) {
        ASSERT_LE(at + bytes, next->first);
      }
      if (next != taken.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, at);
      }
      taken[at] = bytes;
      const auto mark = static_cast<unsigned char>(random());
      std::memset(at, mark, bytes);
      pieces.push_back({at, bytes, mark});
      used += RunMemory::piece_bytes(bytes);
      ASSERT_GE(RunMemory::piece_bytes(bytes), bytes);
    } else {
      std::swap(pieces[random() % pieces.size()], pieces.back());
      const Piece gone = pieces.back();
      pieces.pop_back();
      ASSERT_EQ(gone.at[0], gone.mark);
      ASSERT_EQ(gone.at[gone.bytes - 1], gone.mark);
      memory.release(gone.at, gone.bytes);
      taken.erase(gone.at);
      used -= RunMemory::piece_bytes(gone.bytes);
    }
    ASSERT_EQ(memory.used_bytes(), used);
    ASSERT_GE(memory.taken_bytes(), used);
  }
  for (const Piece& piece : pieces) memory.release(piece.at, piece.bytes);
  EXPECT_EQ(memory.used_bytes(), 0u);
}

TEST(RunMemory, SlabsServeAnotherSizeOnceTheyAreEmpty) {
  RunMemory memory(size_t{64} << 20);
  constexpr size_t kTotal = size_t{16} << 20;
  size_t most = 0;
  for (const size_t bytes : {32, 1568, 256, 4096, 48, 2000}) {
    std::vector<void*> pieces;
    for (size_t n = 0; n < kTotal / RunMemory::piece_bytes(bytes); ++n) pieces.push_back(memory.allocate(bytes));
    most = std::max(most, memory.taken_bytes());
    for (void* piece : pieces) memory.release(piece, bytes);
  }
  EXPECT_LT(most, kTotal + kTotal / 20) << "each size began in the slabs of the one before";
  EXPECT_LT(memory.taken_bytes(), kTotal / 4) << "what stood empty went back to the system";
}

TEST(RunMemory, WholeCacheLinesBeginOnOne) {
  RunMemory memory(size_t{1} << 20);
  for (const size_t bytes : {64, 256, 1024, 1600, 4096}) {
    for (int n = 0; n < 100; ++n) EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.allocate(bytes)) % 64, 0u);
  }
}

}  // namespace
}  // namespace warmpath
