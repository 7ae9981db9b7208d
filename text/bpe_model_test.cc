// BPE inside a piece: both fast ways against the definition, on merge lists as training makes them and on hostile ones.
#include "text/bpe_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace warmpath {
namespace {

struct Lists {
  std::array<TokenId, 256> byte_ids{};
  std::vector<BpeModel::Merge> merges;
  std::vector<std::string> tokens;
};

enum class Order {
  kTrained,
  kShuffled,  // breaks the order that training guarantees: a join can make a pair that stands earlier in the list
  kShared,    // shuffled, and several merges share a rank, as tokens of equal score do
};

// A vocabulary over a few letters.
Lists random_lists(std::mt19937& random, int letters, int merges, Order order) {
  const bool shuffled = order != Order::kTrained;
  Lists lists;
  lists.byte_ids.fill(-1);
  for (int letter = 0; letter < letters; ++letter) {
    lists.byte_ids[static_cast<size_t>('a' + letter)] = letter;
    lists.tokens.push_back(std::string(1, static_cast<char>('a' + letter)));
  }
  std::map<std::string, TokenId> ids;
  for (size_t id = 0; id < lists.tokens.size(); ++id) ids[lists.tokens[id]] = static_cast<TokenId>(id);
  std::map<std::pair<TokenId, TokenId>, bool> seen;
  for (int attempt = 0; attempt < merges * 4 && static_cast<int>(lists.merges.size()) < merges; ++attempt) {
    const auto pick = [&] { return static_cast<TokenId>(random() % lists.tokens.size()); };
    const TokenId left = pick();
    const TokenId right = pick();
    const std::string text = lists.tokens[static_cast<size_t>(left)] + lists.tokens[static_cast<size_t>(right)];
    if (text.size() > 12 || !seen.emplace(std::pair(left, right), true).second) continue;
    // One way to make a token when the list must stay ordered; any number when it need not.
    if (ids.contains(text) && !shuffled) continue;
    const auto [found, added] = ids.emplace(text, static_cast<TokenId>(lists.tokens.size()));
    if (added) lists.tokens.push_back(text);
    lists.merges.push_back({left, right, found->second, 0});
  }
  if (shuffled) std::shuffle(lists.merges.begin(), lists.merges.end(), random);
  for (size_t at = 0; at < lists.merges.size(); ++at) {
    lists.merges[at].rank = static_cast<uint32_t>(order == Order::kShared ? at / 3 : at);
  }
  return lists;
}

// The definition: join the leftmost of the pairs of lowest rank, until none is left.
std::vector<TokenId> slow_encode(const Lists& lists, std::string_view piece) {
  std::vector<TokenId> ids;
  for (const char c : piece) {
    if (lists.byte_ids[static_cast<uint8_t>(c)] >= 0) ids.push_back(lists.byte_ids[static_cast<uint8_t>(c)]);
  }
  while (true) {
    const BpeModel::Merge* best = nullptr;
    size_t best_at = 0;
    for (size_t at = 0; at + 1 < ids.size(); ++at) {
      for (const BpeModel::Merge& merge : lists.merges) {
        if (merge.left != ids[at] || merge.right != ids[at + 1]) continue;
        if (best == nullptr || merge.rank < best->rank) {
          best = &merge;
          best_at = at;
        }
      }
    }
    if (best == nullptr) return ids;
    ids[best_at] = best->joined;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

TEST(BpeModel, BothWaysEqualTheDefinition) {
  std::mt19937 random(20250214);
  size_t compared = 0;
  for (int round = 0; round < 300; ++round) {
    const Lists lists = random_lists(random, 1 + static_cast<int>(random() % 4), 1 + static_cast<int>(random() % 60),
                                     static_cast<Order>(round % 3));
    const BpeModel model(lists.byte_ids, lists.merges);
    BpeScratch scratch;
    for (int text = 0; text < 20; ++text) {
      std::string piece;
      const size_t size = random() % 60;
      for (size_t at = 0; at < size; ++at) piece.push_back(static_cast<char>('a' + random() % 5));  // e has no token
      const std::vector<TokenId> expected = slow_encode(lists, piece);
      std::vector<TokenId> scanned;
      model.encode_by_scanning(piece, scratch, scanned);
      ASSERT_EQ(scanned, expected) << "scanning, round " << round << ", piece " << piece;
      std::vector<TokenId> bucketed;
      model.encode_by_buckets(piece, scratch, bucketed);
      ASSERT_EQ(bucketed, expected) << "buckets, round " << round << ", piece " << piece;
      scratch.initial.clear();
      for (const char c : piece) {
        if (c != 'e' && lists.byte_ids[static_cast<uint8_t>(c)] >= 0) scratch.initial.push_back(c - 'a');
      }
      std::vector<TokenId> merged;
      model.merge(scratch, merged);
      ASSERT_EQ(merged, expected) << "merge, round " << round << ", piece " << piece;
      ++compared;
    }
  }
  std::cout << compared << " pieces equal to the definition, two thirds of them under unordered merge lists\n";
}

}  // namespace
}  // namespace warmpath
