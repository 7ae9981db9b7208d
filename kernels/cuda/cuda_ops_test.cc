// The CUDA kernels, run on the CPU by the shim under several thread orders, against CpuOps' scalar path.
#include "kernels/cuda/cuda_ops.h"

#include <gtest/gtest.h>

#include "kernels/cpu/kernel_testing.h"
#include "kernels/cuda/shim/fiber_grid.h"

namespace warmpath {
namespace {

using testing::difference;
using testing::PagedCache;
using testing::random_floats;
using testing::same_bits;

constexpr uint64_t kSeeds[] = {0, 1, 2, 3};

class CudaOps : public ::testing::Test {
 protected:
  ~CudaOps() override { cuda_shim::options() = {}; }
  ThreadPool pool_{1};
  CpuOps cpu_{Isa::kScalar, pool_};
};

TEST_F(CudaOps, RmsNormAgreesWithTheCpu) {
  constexpr int32_t kRows = 5;
  for (int32_t width : {64, 576, 1000}) {
    const std::vector<float> x = random_floats(static_cast<size_t>(kRows * width), 1);
    const std::vector<float> weight = random_floats(static_cast<size_t>(width), 2);
    std::vector<float> expected(x.size());
    RmsNormArgs args{x.data(), width, weight.data(), 1e-5f, expected.data(), width, kRows, width};
    cpu_.rms_norm(args);
    for (uint64_t seed : kSeeds) {
      cuda_shim::options().seed = seed;
      std::vector<float> y(x.size());
      args.y = y.data();
      cuda_rms_norm(args, nullptr);
      EXPECT_LT(difference(y, expected).relative, 1e-6) << "width " << width << " seed " << seed;
    }
  }
}

struct Attention {
  int32_t heads;
  int32_t kv_heads;
  int32_t dim;
  KvType type;
};

// Two sequences: a prompt's chunk that crosses a split, and a decode step.
TEST_F(CudaOps, AttentionAgreesWithTheCpuAndNotWithTheThreadOrder) {
  for (const Attention& a :
       {Attention{6, 2, 32, KvType::kF32}, Attention{9, 3, 64, KvType::kF16}, Attention{8, 1, 16, KvType::kF16}}) {
    const KvLayout layout{2, a.kv_heads, a.dim, a.type};
    PagedCache cache(layout, 64, 3);
    const std::vector<int32_t> first = cache.table(300);
    const std::vector<int32_t> second = cache.table(40);
    const int32_t width = (a.heads + 2 * a.kv_heads) * a.dim;
    // Fill the cache without rotation, then attend from the last rows of each sequence.
    std::vector<float> cos(300 * 8, 1.0f);
    std::vector<float> sin(300 * 8, 0.0f);
    std::vector<float> qkv = random_floats(static_cast<size_t>(340 * width), 4);
    const SequenceRows filled[] = {{0, 300, 0, first.data()}, {300, 40, 0, second.data()}};
    cos.resize(340 * 8, 1.0f);
    sin.resize(340 * 8, 0.0f);
    cpu_.rope_store({.qkv = qkv.data(),
                     .qkv_stride = width,
                     .heads = a.heads,
                     .cos = cos.data(),
                     .sin = sin.data(),
                     .half = 8,
                     .sequences = filled,
                     .sequence_count = 2,
                     .kv = cache.arena(),
                     .layer = 1});

    constexpr int32_t kRows = 9;
    const SequenceRows asking[] = {{0, 8, 250, first.data()}, {8, 1, 39, second.data()}};
    const int32_t q_width = a.heads * a.dim;
    const std::vector<float> q = random_floats(static_cast<size_t>(kRows * q_width), 5);
    std::vector<float> expected(q.size());
    AttentionArgs args{q.data(), q_width, expected.data(), q_width, a.heads, 0.125f, asking, 2, cache.arena(), 1};
    cpu_.attention(args);
    std::vector<float> in_order;
    for (uint64_t seed : kSeeds) {
      cuda_shim::options().seed = seed;
      cuda_shim::options().os_threads = seed == 3 ? 2 : 1;
      std::vector<float> y(q.size());
      std::vector<float> workspace(cuda_attention_workspace_bytes(args, kRows, 258) / sizeof(float), NAN);
      args.y = y.data();
      cuda_attention(args, kRows, 258, workspace.data(), nullptr);
      EXPECT_LT(difference(y, expected).absolute, 1e-5) << a.heads << "/" << a.kv_heads << " seed " << seed;
      if (seed == 0) in_order = y;
      EXPECT_TRUE(same_bits(y, in_order)) << "the order of threads shows in the result, seed " << seed;
    }
  }
}

}  // namespace
}  // namespace warmpath
