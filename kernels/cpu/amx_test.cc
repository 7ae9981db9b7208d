// The AMX table against its scalar twin, natively where the machine has AMX, on emulated instructions elsewhere: tiles
// of every height, odd numbers of blocks, every kind of weights. linear_test.cc runs it through linear() besides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "kernels/cpu/amx_emulator.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/isa_trial.h"
#include "kernels/cpu/kernel_testing.h"

namespace warmpath {
namespace {

using testing::random_floats;
using testing::random_matrix;
using testing::same_bits;

const bool kEmulated = testing::emulate_amx();

// Rows of x, rounded as linear() rounds them.
struct Rows {
  Rows(int32_t rows, int32_t columns)
      : q(static_cast<size_t>(rows * columns)), scale(q.size() / 32), sum(q.size() / 32), q_sum(q.size() / 16) {
    const std::vector<float> x = random_floats(q.size(), 7);
    scalar_kernels().quantize_row(x.data(), rows * columns, q.data(), scale.data(), sum.data(), q_sum.data());
  }
  std::vector<int8_t> q;
  std::vector<float> scale, sum;
  std::vector<int32_t> q_sum;
};

std::vector<float> product(const CpuKernels& kernels, const PackedMatrix& matrix, const Rows& x, int32_t rows) {
  PanelProduct product;
  product.panel = matrix.panel(0);
  product.panel_bytes = matrix.panel_bytes();
  product.panels = static_cast<int32_t>(matrix.panels());
  product.columns = static_cast<int32_t>(matrix.columns());
  product.rows = rows;
  product.x8 = {x.q.data(), matrix.columns(), x.scale.data(), x.sum.data(), x.q_sum.data()};
  std::vector<float> y(static_cast<size_t>(rows * matrix.rows()), 0.5f);
  product.y = y.data();
  product.y_stride = matrix.rows();
  product.valid = static_cast<int32_t>(matrix.rows());
  product.accumulate = true;
  kernels.product[static_cast<size_t>(matrix.kind())](product);
  return y;
}

class AmxTable : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!isa_supported(Isa::kAmx)) GTEST_SKIP() << "needs AVX-512 VNNI, and AMX to be real or emulated";
  }
};

TEST_F(AmxTable, GivesTheBitsOfItsScalarTwinAtEveryHeight) {
  std::printf("AMX instructions are %s\n", kEmulated ? "emulated" : "native");
  for (const TensorType type : {TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0, TensorType::kQ5_1,
                                TensorType::kQ8_0, TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K}) {
    const bool k_type = tensor_layout(type)->block_elements == 256;
    // One block and an odd number of them; more than a chunk. 23 rows: the last panel is partial.
    for (const int32_t columns : k_type ? std::vector<int32_t>{256, 512} : std::vector<int32_t>{32, 96, 288}) {
      const PackedMatrix matrix = random_matrix(type, 23, columns, Precision::kQuantized, 1);
      const Rows x(100, columns);
      for (const int32_t rows : {1, 15, 16, 17, 19, 21, 24, 27, 29, 31, 33, 48, 49, 50, 97, 100}) {
        EXPECT_TRUE(same_bits(product(amx_kernels(), matrix, x, rows), product(scalar_kernels(), matrix, x, rows)))
            << tensor_type_name(type) << ", " << rows << " rows of " << columns;
      }
    }
  }
}

TEST_F(AmxTable, IsExactAtTheExtremes) {
  // +-127 times quants of all bits set, over as many columns as a large model has.
  constexpr int32_t kColumns = 14336;
  for (const TensorType type : {TensorType::kQ5_0, TensorType::kQ8_0, TensorType::kQ6_K}) {
    const TensorLayout& layout = *tensor_layout(type);
    std::vector<std::byte> bytes(16 * kColumns / layout.block_elements * layout.block_bytes, std::byte{0xff});
    const uint16_t scale = float_to_half(1.0f);
    for (size_t at = 0; at < bytes.size(); at += layout.block_bytes) {
      std::memcpy(bytes.data() + at + (type == TensorType::kQ6_K ? 208 : 0), &scale, 2);
    }
    const PackedMatrix matrix =
        std::move(PackedMatrix::pack({type, bytes, 16}, kColumns, Precision::kQuantized).value());
    Rows x(16, kColumns);
    std::fill(x.q.begin(), x.q.end(), int8_t{-127});
    EXPECT_TRUE(same_bits(product(amx_kernels(), matrix, x, 16), product(scalar_kernels(), matrix, x, 16)))
        << tensor_type_name(type);
  }
}

TEST_F(AmxTable, IsTriedBeforeItIsChosen) {
  // A table against itself is no win; against one that takes three times as long it is, the other way round it is not.
  const CpuKernels& fast = avx512_kernels();
  CpuKernels slow = fast;
  slow.product[static_cast<size_t>(PanelKind::kQ4K)] = [](const PanelProduct& product) {
    for (int i = 0; i < 3; ++i) avx512_kernels().product[static_cast<size_t>(PanelKind::kQ4K)](product);
  };
  EXPECT_TRUE(try_tables(fast, slow, 9).amx_wins());
  EXPECT_FALSE(try_tables(slow, fast, 9).amx_wins());
  if (!kEmulated) GTEST_SKIP() << "native AMX may win";
  EXPECT_FALSE(amx_trial().amx_wins());
  if (std::getenv("WARMPATH_ISA") == nullptr) {
    EXPECT_EQ(choose_isa().value(), Isa::kAvx512);
  }
}

// What hardware refuses must not pass the tests of machines without it.
TEST_F(AmxTable, TheEmulatorFaultsWhereHardwareWould) {
  if (!kEmulated) GTEST_SKIP() << "this machine has AMX";
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(asm volatile("tilezero %%tmm0" ::), "a tile without a configuration");
  struct alignas(64) {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 32, 64};
    uint8_t rows[16] = {16, 16, 7};  // 8 rows would fit
  } config;
  EXPECT_DEATH(
      {
        asm volatile("ldtilecfg %0" ::"m"(config));
        asm volatile("tdpbssd %%tmm2, %%tmm1, %%tmm0" ::);
      },
      "shapes do not fit");
  EXPECT_EXIT(asm volatile("ud2" ::), ::testing::KilledBySignal(SIGILL), "");
}

}  // namespace
}  // namespace warmpath
