#include "kernels/cpu/isa_trial.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/log.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/huge_buffer.h"

namespace warmpath {
namespace {

constexpr int32_t kRows = 48;
constexpr int32_t kColumns = 2048;
constexpr int32_t kPanels = 8;
constexpr int kRounds = 8;

}  // namespace

IsaTrial try_tables(const CpuKernels& amx, const CpuKernels& avx512, int rounds) {
  constexpr int64_t kBlocks = kColumns / 32;
  constexpr int64_t kPanelBytes = kColumns / kPanelQ4K.columns() * int64_t{kPanelQ4K.group_bytes()};
  // Zeros take as long as any other numbers.
  const HugeBuffer weights = HugeBuffer::allocate(kPanels * kPanelBytes);
  const std::vector<int8_t> q(size_t{kRows} * kColumns);
  const std::vector<float> scale(size_t{kRows} * kBlocks);
  const std::vector<int32_t> q_sum(size_t{kRows} * 2 * kBlocks);
  std::vector<float> y(size_t{kRows} * kPanels * 16);
  PanelProduct product;
  product.panel = weights.data();
  product.panel_bytes = kPanelBytes;
  product.panels = kPanels;
  product.columns = kColumns;
  product.rows = kRows;
  product.x8 = {q.data(), kColumns, scale.data(), scale.data(), q_sum.data()};
  product.y = y.data();
  product.y_stride = kPanels * 16;
  product.valid = kPanels * 16;
  const auto seconds = [&product](const CpuKernels& kernels) {
    const auto start = std::chrono::steady_clock::now();
    kernels.product[static_cast<size_t>(PanelKind::kQ4K)](product);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  constexpr double kNever = std::numeric_limits<double>::max();
  IsaTrial trial{kNever, kNever};
  if (weights.data() == nullptr) return trial;
  for (int round = 0; round < rounds; ++round) {
    trial.avx512_seconds = std::min(trial.avx512_seconds, seconds(avx512));
    trial.amx_seconds = std::min(trial.amx_seconds, seconds(amx));
  }
  return trial;
}

const IsaTrial& amx_trial() {
  static const IsaTrial trial = [] {
    const IsaTrial measured = try_tables(kernels_of(Isa::kAmx), kernels_of(Isa::kAvx512), kRounds);
    log_info("amx_trial", {{"speedup_over_avx512", measured.speedup()},
                           {"chosen", isa_name(measured.amx_wins() ? Isa::kAmx : Isa::kAvx512)}});
    return measured;
  }();
  return trial;
}

}  // namespace warmpath
