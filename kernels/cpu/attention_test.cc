// rope_store() and attention(): against a double-precision softmax, across instruction sets bit for bit, and
// independent of chunking, batch, block table and threads, in caches whose unused slots are NaN.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/cpu/kernel_testing.h"

namespace warmpath {
namespace {

using testing::difference;
using testing::Difference;
using testing::PagedCache;
using testing::random_floats;
using testing::same_bits;

struct Shape {
  int32_t heads;
  int32_t kv_heads;
  int32_t dim;
  KvType type;
  int32_t width() const { return (heads + 2 * kv_heads) * dim; }
};

// A step: for each sequence, how many new tokens.
struct Sequence {
  std::vector<float> qkv;  // [tokens][width]
  std::vector<int32_t> table;
  int32_t done = 0;
};

constexpr float kScale = 0.125f;

class Stepper {
 public:
  Stepper(Isa isa, int32_t threads, Shape shape, uint64_t cache_seed)
      : pool_(threads),
        ops_(isa, pool_),
        shape_(shape),
        cache_(KvLayout{2, shape.kv_heads, shape.dim, shape.type}, 400, cache_seed) {}

  void add(int32_t tokens, uint64_t seed) {
    sequences_.push_back({random_floats(static_cast<size_t>(tokens) * shape_.width(), seed), cache_.table(tokens), 0});
    outputs_.emplace_back(static_cast<size_t>(tokens) * shape_.heads * shape_.dim);
  }

  // counts[i] new tokens of sequence i; 0 leaves it out.
  void step(const std::vector<int32_t>& counts) {
    const int32_t width = shape_.width();
    const int32_t half = shape_.dim / 2;
    const int32_t q_width = shape_.heads * shape_.dim;
    std::vector<float> qkv;
    std::vector<int32_t> positions;
    std::vector<SequenceRows> rows;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      Sequence& s = sequences_[i];
      rows.push_back({static_cast<int32_t>(positions.size()), counts[i], s.done, s.table.data()});
      qkv.insert(qkv.end(), s.qkv.begin() + int64_t{s.done} * width,
                 s.qkv.begin() + int64_t{s.done + counts[i]} * width);
      for (int32_t t = 0; t < counts[i]; ++t) positions.push_back(s.done + t);
    }
    const auto m = static_cast<int32_t>(positions.size());
    std::vector<float> inv_freq;
    for (int32_t i = 0; i < half; ++i) inv_freq.push_back(std::pow(10000.0f, -static_cast<float>(i) / half));
    std::vector<float> cos(static_cast<size_t>(m * half));
    std::vector<float> sin(cos.size());
    ops_.rope_angles({positions.data(), inv_freq.data(), half, m, 1.0f, cos.data(), sin.data()});
    RopeStoreArgs store;
    store.qkv = qkv.data();
    store.qkv_stride = width;
    store.heads = shape_.heads;
    store.cos = cos.data();
    store.sin = sin.data();
    store.half = half;
    store.sequences = rows.data();
    store.sequence_count = static_cast<int32_t>(rows.size());
    store.kv = cache_.arena();
    store.layer = 1;
    ops_.rope_store(store);
    std::vector<float> y(static_cast<size_t>(m * q_width));
    ops_.attention({qkv.data(), width, y.data(), q_width, shape_.heads, kScale, rows.data(), store.sequence_count,
                    cache_.arena(), 1});
    const float* from = y.data();
    for (size_t i = 0; i < counts.size(); ++i) {
      std::copy_n(from, int64_t{counts[i]} * q_width, outputs_[i].data() + int64_t{sequences_[i].done} * q_width);
      from += int64_t{counts[i]} * q_width;
      sequences_[i].done += counts[i];
    }
  }

  const std::vector<float>& output(size_t sequence) const { return outputs_[sequence]; }
  const std::vector<float>& qkv(size_t sequence) const { return sequences_[sequence].qkv; }

 private:
  ThreadPool pool_;
  CpuOps ops_;
  Shape shape_;
  PagedCache cache_;
  std::vector<Sequence> sequences_;
  std::vector<std::vector<float>> outputs_;
};

// Rotation and attention as the papers write them.
std::vector<double> reference(const Shape& shape, const std::vector<float>& qkv) {
  const auto tokens = static_cast<int32_t>(qkv.size()) / shape.width();
  const int32_t half = shape.dim / 2;
  std::vector<double> x(qkv.begin(), qkv.end());
  for (int32_t t = 0; t < tokens; ++t) {
    for (int32_t h = 0; h < shape.heads + shape.kv_heads; ++h) {
      for (int32_t i = 0; i < half; ++i) {
        double* pair = &x[static_cast<size_t>(t) * shape.width() + h * shape.dim + 2 * i];
        const double angle = t * std::pow(10000.0, -static_cast<double>(i) / half);
        const double a = pair[0];
        const double b = pair[1];
        pair[0] = a * std::cos(angle) - b * std::sin(angle);
        pair[1] = a * std::sin(angle) + b * std::cos(angle);
      }
    }
  }
  std::vector<double> y(static_cast<size_t>(tokens) * shape.heads * shape.dim);
  for (int32_t t = 0; t < tokens; ++t) {
    for (int32_t h = 0; h < shape.heads; ++h) {
      const int32_t kv = h / (shape.heads / shape.kv_heads);
      const double* q = &x[static_cast<size_t>(t) * shape.width() + h * shape.dim];
      std::vector<double> p;
      double total = 0;
      for (int32_t s = 0; s <= t; ++s) {
        const double* k = &x[static_cast<size_t>(s) * shape.width() + (shape.heads + kv) * shape.dim];
        double score = 0;
        for (int32_t d = 0; d < shape.dim; ++d) score += q[d] * k[d];
        p.push_back(std::exp(score * kScale));
        total += p.back();
      }
      for (int32_t s = 0; s <= t; ++s) {
        const double* v = &x[static_cast<size_t>(s) * shape.width() + (shape.heads + shape.kv_heads + kv) * shape.dim];
        for (int32_t d = 0; d < shape.dim; ++d) {
          y[(static_cast<size_t>(t) * shape.heads + h) * shape.dim + d] += p[static_cast<size_t>(s)] / total * v[d];
        }
      }
    }
  }
  return y;
}

TEST(Attention, AgreesWithTheObviousSoftmaxOnEveryPath) {
  struct Row {
    Shape shape;
    double tolerance;
  };
  // f16 keys and values: 2^-11 relative each.
  const Row rows[] = {{{9, 3, 64, KvType::kF32}, 2e-5},   {{9, 3, 64, KvType::kF16}, 2e-3},
                      {{4, 4, 80, KvType::kF32}, 2e-5},   {{8, 1, 16, KvType::kF16}, 2e-3},
                      {{9, 3, 64, KvType::kInt16}, 1e-3}, {{8, 1, 16, KvType::kInt16}, 1e-3},
                      {{5, 1, 80, KvType::kInt16}, 1e-3}};
  for (const Row& row : rows) {
    std::vector<float> scalar;
    for (Isa isa : supported_isas()) {
      Stepper run(isa, 2, row.shape, 5);
      run.add(333, 6);
      run.step({333});
      const Difference d = difference(run.output(0), reference(row.shape, run.qkv(0)));
      EXPECT_LT(d.absolute, row.tolerance) << isa_name(isa);
      std::printf("attention %d/%d heads of %d, %s, %-6s max error %.2e\n", row.shape.heads, row.shape.kv_heads,
                  row.shape.dim, kv_type_name(row.shape.type), std::string(isa_name(isa)).c_str(), d.absolute);
      if (isa == Isa::kScalar) scalar = run.output(0);
      EXPECT_TRUE(same_bits(run.output(0), scalar)) << isa_name(isa) << " differs from its scalar twin";
    }
  }
}

TEST(Attention, ChunksBatchesTablesAndThreadsDoNotChangeABit) {
  constexpr int32_t kTokens = 600;
  for (Isa isa : supported_isas()) {
    for (KvType type : {KvType::kInt16, KvType::kF16, KvType::kF32}) {
      if (isa == Isa::kScalar && type == KvType::kF32) continue;  // slow, and the same code
      const Shape shape{6, 2, 32, type};
      Stepper whole(isa, 1, shape, 1);
      whole.add(kTokens, 77);
      whole.step({kTokens});

      // The same sequence, beside others, in ragged chunks that end in single tokens, on more threads.
      Stepper ragged(isa, 3, shape, 2);
      ragged.add(300, 78);
      ragged.add(kTokens, 77);
      ragged.add(40, 79);
      std::mt19937_64 random(9);
      int32_t done = 0;
      int32_t others = 0;
      while (done < kTokens) {
        const int32_t n = done >= 560 ? 1 : std::min<int32_t>(560 - done, 1 + static_cast<int32_t>(random() % 61));
        const int32_t other = others < 300 ? std::min<int32_t>(300 - others, static_cast<int32_t>(random() % 9)) : 0;
        ragged.step({other, n, done >= 560 ? 1 : 0});
        done += n;
        others += other;
      }
      EXPECT_TRUE(same_bits(whole.output(0), ragged.output(1))) << isa_name(isa);
    }
  }
}

// Eight sequences decode together exactly as each does alone.
TEST(Attention, DecodingInABatchIsDecodingAlone) {
  const Shape shape{6, 3, 16, KvType::kInt16};
  for (Isa isa : supported_isas()) {
    Stepper batch(isa, 2, shape, 3);
    std::vector<int32_t> prompts;
    std::vector<int32_t> ones(8, 1);
    for (int32_t i = 0; i < 8; ++i) {
      prompts.push_back(1 + 40 * i);
      batch.add(prompts.back() + 3, 100 + static_cast<uint64_t>(i));
    }
    batch.step(prompts);
    for (int i = 0; i < 3; ++i) batch.step(ones);
    for (int32_t i = 0; i < 8; ++i) {
      Stepper alone(isa, 2, shape, 4);
      alone.add(prompts[static_cast<size_t>(i)] + 3, 100 + static_cast<uint64_t>(i));
      alone.step({prompts[static_cast<size_t>(i)]});
      for (int j = 0; j < 3; ++j) alone.step({1});
      EXPECT_TRUE(same_bits(batch.output(static_cast<size_t>(i)), alone.output(0))) << isa_name(isa) << " " << i;
    }
  }
}

}  // namespace
}  // namespace warmpath
