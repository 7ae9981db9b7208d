#include "engine/block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/block_chain.h"

namespace warmpath {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Hash128 kRoot{1, 2};

// Block `index` of a chain whose blocks hold the tokens `first + index` sixteen times.
std::vector<BlockContent> chain(TokenId first, int blocks, Hash128 root = kRoot) {
  std::vector<BlockContent> contents(static_cast<size_t>(blocks));
  Hash128 parent = root;
  for (int index = 0; index < blocks; ++index) {
    BlockContent& content = contents[static_cast<size_t>(index)];
    content.tokens.fill(first + index);
    content.parent = parent;
    parent = content.identity = chain_next(parent, content.tokens);
  }
  return contents;
}

class RecordingListener final : public BlockListener {
 public:
  void on_stored(Hash128, Hash128 identity) override { stored.push_back(identity); }
  void on_removed(Hash128 identity) override { removed.push_back(identity); }
  std::vector<Hash128> stored, removed;
};

struct BlockPoolTest : testing::Test {
  // Acquires, commits and returns blocks holding `contents`.
  std::vector<BlockId> store(BlockPool& pool, const std::vector<BlockContent>& contents) {
    std::vector<BlockId> table;
    EXPECT_TRUE(pool.acquire(static_cast<int64_t>(contents.size()), table));
    for (size_t index = 0; index < contents.size(); ++index) {
      pool.commit(table[index], index == 0 ? kNoBlock : table[index - 1], contents[index]);
      pool.check_integrity();
    }
    return table;
  }
  std::vector<BlockId> hit(BlockPool& pool, const std::vector<BlockContent>& contents) {
    std::vector<BlockId> table;
    for (const BlockContent& content : contents) {
      const BlockId block = pool.find(table.empty() ? kNoBlock : table.back(), content);
      if (block == kNoBlock) break;
      table.push_back(block);
    }
    return table;
  }
  RecordingListener listener;
};

TEST_F(BlockPoolTest, ReleasedBlocksAreFoundAgainUntilTheyAreNeeded) {
  BlockPool pool(4, &listener);
  const auto contents = chain(10, 3);
  const std::vector<BlockId> table = store(pool, contents);
  pool.release(table);
  pool.check_integrity();
  EXPECT_EQ(pool.available(), 4);
  EXPECT_EQ(pool.cached(), 3);
  EXPECT_EQ(hit(pool, contents), table);
  std::vector<BlockId> other;
  ASSERT_TRUE(pool.acquire(2, other));  // one empty block, and the leaf
  EXPECT_THAT(listener.removed, ElementsAre(contents[2].identity));
  EXPECT_EQ(hit(pool, contents).size(), 2u);
  EXPECT_FALSE(pool.acquire(3, other)) << "two are available";
  EXPECT_EQ(other.size(), 2u) << "a refused acquire takes nothing";
  EXPECT_EQ(pool.evicted(), 1);
}

TEST_F(BlockPoolTest, AHitIsSafeFromEvictionAndCountsAsUse) {
  BlockPool pool(4, &listener);
  const auto old_chain = chain(10, 2), new_chain = chain(20, 2);
  const auto old_table = store(pool, old_chain);
  pool.release(old_table);
  pool.release(store(pool, new_chain));
  for (const BlockId block : hit(pool, old_chain)) pool.reference(block);
  std::vector<BlockId> fresh;
  ASSERT_TRUE(pool.acquire(2, fresh));
  EXPECT_THAT(hit(pool, new_chain), IsEmpty());
  EXPECT_EQ(hit(pool, old_chain), old_table);
  pool.release(fresh);
  pool.release(old_table);
  pool.check_integrity();
}

TEST_F(BlockPoolTest, DuplicatesAreCountedOneByOneAndTheSpareGoesAtOnce) {
  BlockPool pool(6, &listener);
  const auto contents = chain(10, 2);
  const auto first = store(pool, contents), second = store(pool, contents);
  EXPECT_EQ(listener.stored.size(), 4u);
  // A child of either copy is a child of both: equal histories have one lineage.
  std::vector<BlockContent> longer = chain(10, 3);
  std::vector<BlockId> third;
  ASSERT_TRUE(pool.acquire(1, third));
  pool.commit(third[0], second[1], longer[2]);
  EXPECT_EQ(pool.find(first[1], longer[2]), third[0]);
  pool.release(first);
  EXPECT_THAT(listener.removed, ElementsAre(contents[1].identity, contents[0].identity));
  EXPECT_EQ(pool.empty(), 3);
  pool.release(second);
  EXPECT_EQ(listener.removed.size(), 2u) << "the last copy stays";
  EXPECT_EQ(hit(pool, contents), second);
  pool.check_integrity();
}

TEST_F(BlockPoolTest, ACollisionOfIdentitiesIsNotAHit) {
  BlockPool pool(8, &listener);
  std::vector<BlockContent> truth = chain(10, 2), forged = chain(20, 2);
  // The forged chain has the same hashes and other tokens; its second block even has the same tokens.
  for (size_t index = 0; index < 2; ++index) {
    forged[index].identity = truth[index].identity;
    forged[index].parent = truth[index].parent;
  }
  forged[1].tokens = truth[1].tokens;
  const auto truth_table = store(pool, truth);
  EXPECT_THAT(hit(pool, forged), IsEmpty());
  const auto forged_table = store(pool, forged);
  EXPECT_EQ(hit(pool, truth), truth_table);
  EXPECT_EQ(hit(pool, forged), forged_table) << "each history finds its own second block";
  pool.release(truth_table);
  EXPECT_THAT(listener.removed, IsEmpty()) << "the other one is no spare copy of it";
  pool.release(forged_table);
  EXPECT_EQ(hit(pool, truth), truth_table);
  EXPECT_EQ(hit(pool, forged), forged_table);
  pool.check_integrity();
}

TEST_F(BlockPoolTest, PinnedBlocksGoLastAndPinsEnd) {
  BlockPool pool(4, &listener);
  const auto pinned = chain(10, 2), other = chain(20, 2);
  pool.release(store(pool, pinned));
  pool.release(store(pool, other));
  pool.advance_clock(1);
  // Naming the leaf pins its ancestors.
  EXPECT_EQ(pool.pin({{pinned[1].identity, Hash128{9, 9}}}, 1'000'000'000), 1);
  pool.check_integrity();
  std::vector<BlockId> fresh;
  ASSERT_TRUE(pool.acquire(2, fresh));
  EXPECT_EQ(hit(pool, pinned).size(), 2u);
  pool.release(fresh);
  pool.release(store(pool, other));
  pool.advance_clock(1'200'000'000);
  pool.check_integrity();
  // Behind `other` in the order now, leaf first.
  EXPECT_THAT(pool.next_to_go(9),
              ElementsAre(other[1].identity, other[0].identity, pinned[1].identity, pinned[0].identity));
}

TEST_F(BlockPoolTest, APinNeverStopsARequest) {
  BlockPool pool(2, &listener);
  const auto pinned = chain(10, 2);
  pool.release(store(pool, pinned));
  pool.pin({{pinned[0].identity, pinned[1].identity}}, 1'000'000'000);
  std::vector<BlockId> fresh;
  EXPECT_TRUE(pool.acquire(2, fresh));
  pool.check_integrity();
}

TEST_F(BlockPoolTest, DemotedBlocksGoNextLastFirst) {
  BlockPool pool(4, &listener);
  const auto older = chain(20, 2), demoted = chain(10, 2);
  pool.release(store(pool, older));
  pool.release(store(pool, demoted));
  EXPECT_EQ(pool.demote({{demoted[0].identity, demoted[1].identity}}), 2);
  EXPECT_THAT(pool.next_to_go(2), ElementsAre(demoted[1].identity, demoted[0].identity));
  pool.check_integrity();
}

TEST_F(BlockPoolTest, WithoutKeepingReleasedBlocksAreForgotten) {
  BlockPool pool(4, &listener, /*keep_released=*/false);
  const auto contents = chain(10, 2);
  const auto table = store(pool, contents);
  EXPECT_EQ(hit(pool, contents), table) << "shared while referenced";
  pool.release(table);
  EXPECT_THAT(hit(pool, contents), IsEmpty());
  EXPECT_EQ(pool.empty(), 4);
  pool.check_integrity();
}

TEST_F(BlockPoolTest, ForgottenContentIsGoneWhoeverHoldsIt) {
  BlockPool pool(4, &listener);
  const auto contents = chain(10, 2);
  const auto table = store(pool, contents);
  pool.forget(table[0]);
  EXPECT_THAT(hit(pool, contents), IsEmpty());
  pool.check_integrity();
  pool.release(table);
  pool.forget(table[1]);
  pool.check_integrity();
  EXPECT_EQ(pool.empty(), 4);
}

// A block that begins with `tokens` after `parent`.
BlockContent beginning(const BlockContent* parent, std::vector<TokenId> tokens) {
  BlockContent content;
  content.parent = parent == nullptr ? kRoot : parent->identity;
  content.count = static_cast<int32_t>(tokens.size());
  std::copy(tokens.begin(), tokens.end(), content.tokens.begin());
  return content;
}

TEST_F(BlockPoolTest, TheLongestBeginningIsFoundInWholeAndUnfilledBlocks) {
  BlockPool pool(8, &listener);
  const auto contents = chain(10, 2);
  const auto table = store(pool, contents);
  std::vector<BlockId> other;
  ASSERT_TRUE(pool.acquire(3, other));
  pool.commit(other[0], table[0], beginning(&contents[0], {11, 11, 7}));
  pool.commit(other[1], table[0], beginning(&contents[0], {11, 11, 7, 8}));
  pool.commit(other[2], kNoBlock, beginning(nullptr, {11, 11, 11, 11, 11, 11}));
  pool.check_integrity();
  const auto find = [&](std::vector<TokenId> tokens) {
    const auto found = pool.find_beginning(table[0], beginning(&contents[0], std::move(tokens)));
    return std::pair(found.block, found.tokens);
  };
  EXPECT_EQ(find({11, 11, 7, 8, 9}), std::pair(other[1], 4));
  EXPECT_EQ(find({11, 11, 11, 11, 5}), std::pair(table[1], 4)) << "a whole block's beginning, not another parent's";
  EXPECT_EQ(find({11}).second, 1);
  EXPECT_EQ(find({12, 11}), std::pair(kNoBlock, 0));
  // It grows where it is.
  pool.commit(other[0], table[0], beginning(&contents[0], {11, 11, 7, 8, 9, 10}));
  pool.check_integrity();
  EXPECT_EQ(find({11, 11, 7, 8, 9}), std::pair(other[0], 5));
  EXPECT_EQ(listener.stored.size(), 2u) << "only whole blocks are announced";
}

TEST_F(BlockPoolTest, AnUnfilledBlockIsKeptUntilItIsNeededOrCovered) {
  BlockPool pool(4, &listener);
  const auto contents = chain(10, 1);
  auto table = store(pool, contents);
  const BlockContent less = beginning(&contents[0], {1, 2}), more = beginning(&contents[0], {1, 2, 3});
  ASSERT_TRUE(pool.acquire(2, table));
  pool.commit(table[1], table[0], less);
  pool.commit(table[2], table[0], more);
  pool.release({{table[0], table[1]}});
  pool.check_integrity();
  EXPECT_EQ(pool.empty(), 2) << "the other one holds all of it";
  pool.release({{table[2]}});
  EXPECT_EQ(pool.cached(), 2);
  EXPECT_EQ(pool.find_beginning(table[0], more).block, table[2]);
  // A longer one that nobody holds any more makes it needless.
  std::vector<BlockId> longer;
  ASSERT_TRUE(pool.acquire(1, longer));
  pool.commit(longer[0], table[0], beginning(&contents[0], {1, 2, 3, 4}));
  pool.release(longer);
  pool.check_integrity();
  EXPECT_EQ(pool.cached(), 2);
  EXPECT_EQ(pool.find_beginning(table[0], more).block, longer[0]);
  // It goes in its turn, unannounced.
  EXPECT_THAT(pool.next_to_go(9), ElementsAre(contents[0].identity));
  std::vector<BlockId> fresh;
  ASSERT_TRUE(pool.acquire(4, fresh));
  pool.check_integrity();
  EXPECT_THAT(listener.removed, ElementsAre(contents[0].identity));
  EXPECT_EQ(pool.evicted(), 1);
}

TEST_F(BlockPoolTest, ManyBeginningsAlikeBoundTheSearch) {
  constexpr int kBlocks = 3 * BlockPool::kMostSiblings;
  BlockPool pool(kBlocks, &listener);
  std::vector<BlockId> table;
  ASSERT_TRUE(pool.acquire(kBlocks, table));
  for (int index = 0; index < kBlocks; ++index) {
    pool.commit(table[static_cast<size_t>(index)], kNoBlock, beginning(nullptr, {1, index, index}));
  }
  EXPECT_EQ(pool.find_beginning(kNoBlock, beginning(nullptr, {1, kBlocks - 1, 7})).tokens, 2);
  EXPECT_EQ(pool.find_beginning(kNoBlock, beginning(nullptr, {1, 0, 7})).tokens, 1) << "too old to be looked at";
  pool.release(table);
  pool.check_integrity();
}

// 20,000 random operations; the residency that the events describe is the pool's, and no invariant breaks.
TEST_F(BlockPoolTest, RandomUseKeepsEveryInvariant) {
  std::mt19937 random(7);
  BlockPool pool(40, &listener);
  std::vector<std::vector<BlockId>> held;
  MonotonicNs now = 0;
  for (int operation = 0; operation < 20'000; ++operation) {
    const auto contents = chain(static_cast<TokenId>(random() % 12) * 5, 1 + static_cast<int>(random() % 6));
    switch (random() % 8) {
      case 0:
      case 1:
      case 2: {  // what a sequence does: hit, then compute the rest
        std::vector<BlockId> table = hit(pool, contents);
        for (const BlockId block : table) pool.reference(block);
        const size_t found = table.size();
        if (!pool.acquire(static_cast<int64_t>(contents.size() - found), table)) {
          pool.release(table);
          break;
        }
        for (size_t index = found; index < contents.size(); ++index) {
          // Filled in two or three parts, the last block perhaps not to the end.
          for (int part = 0; part < 3; ++part) {
            BlockContent content = contents[index];
            content.count = std::min(kBlockTokens, pool.filled(table[index]) + 1 + static_cast<int32_t>(random() % 12));
            if (part == 2 && (index + 1 < contents.size() || random() % 2 == 0)) content.count = kBlockTokens;
            if (content.count < kBlockTokens) content.identity = {};
            pool.commit(table[index], index == 0 ? kNoBlock : table[index - 1], content);
            if (content.count == kBlockTokens) break;
          }
        }
        held.push_back(std::move(table));
        break;
      }
      case 3:
      case 4:
        if (held.empty()) break;
        std::swap(held[random() % held.size()], held.back());
        pool.release(held.back());
        held.pop_back();
        break;
      case 5:
        pool.pin({{contents.back().identity}}, now + static_cast<MonotonicNs>(random() % 1'000'000'000));
        break;
      case 6:
        pool.demote({{contents.back().identity}});
        break;
      case 7:
        pool.advance_clock(now += static_cast<MonotonicNs>(random() % 50'000'000));
        break;
    }
    pool.check_integrity();
  }
  std::vector<Hash128> resident;
  pool.for_each_resident([&](Hash128, Hash128 identity) { resident.push_back(identity); });
  for (const Hash128& identity : listener.removed) {
    const auto where = std::find(listener.stored.begin(), listener.stored.end(), identity);
    ASSERT_NE(where, listener.stored.end());
    *where = listener.stored.back();
    listener.stored.pop_back();
  }
  EXPECT_THAT(listener.stored, testing::UnorderedElementsAreArray(resident));
  EXPECT_GT(pool.evicted(), 100);
}

}  // namespace
}  // namespace warmpath
