// bench_kernels: the kernels of this machine at the default model's shapes, per instruction set and number of threads.
//
//   bench_kernels [--json] [--quick] [--only TEXT]
//
// Fields: OP_ISA_THREADSt_gops (2 operations a multiply-add) for compute-bound shapes, ..._gbs (bytes of weights or KV
// read a second) for memory-bound ones. Every figure is the best of interleaved rounds, so that neighbours on the
// machine disturb all alike; on one thread it is of CPU seconds, which they do not lengthen by running in between.
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/kernel_testing.h"

namespace warmpath {
namespace {

using testing::random_floats;
using testing::random_matrix;

constexpr int32_t kWidth = 576;
constexpr int32_t kFfn = 1536;
constexpr int32_t kHeads = 9;
constexpr KvLayout kLayout{30, 3, 64, KvType::kInt16};
constexpr int32_t kContext = 4096;

// A matrix as wide as those of an 8B model, in each kind of weights; enough of them that a decode reads memory.
constexpr int32_t kWide = 4096;
constexpr int32_t kWideRows = 1024;
constexpr int32_t kWideCopies = 16;
constexpr std::pair<TensorType, const char*> kWideTypes[] = {
    {TensorType::kQ4_0, "q4_0"}, {TensorType::kQ4_1, "q4_1"}, {TensorType::kQ5_0, "q5_0"}, {TensorType::kQ5_1, "q5_1"},
    {TensorType::kQ8_0, "q8_0"}, {TensorType::kQ4_K, "q4_k"}, {TensorType::kQ5_K, "q5_k"}, {TensorType::kQ6_K, "q6_k"},
    {TensorType::kF16, "f16"},   {TensorType::kBF16, "bf16"}, {TensorType::kF32, "f32"}};

// One thing to measure: `work` operations or bytes a call.
struct Measure {
  std::string name;
  std::string unit;  // "gops" or "gbs"
  double work = 0;
  std::function<void(CpuOps&)> body;
};

class Fixture {
 public:
  Fixture()
      : gate_up_(random_matrix(TensorType::kQ4_1, 2 * kFfn, kWidth, Precision::kQuantized, 1)),
        down_(random_matrix(TensorType::kQ4_1, kWidth, kFfn, Precision::kQuantized, 2)),
        head_(random_matrix(TensorType::kQ8_0, 49152, kWidth, Precision::kQuantized, 3)),
        gate_up_f32_(random_matrix(TensorType::kQ4_1, 2 * kFfn, kWidth, Precision::kFloat, 4)),
        cache_(kLayout, kContext / 16, 5),
        table_(cache_.table(kContext)),
        x_(random_floats(512 * kWide, 6)),
        y_(512 * kWide),
        logits_(49152) {
    // Weights of several layers, so that a decode reads them from where a whole model lies.
    for (uint64_t layer = 0; layer < 40; ++layer) {
      layers_.push_back(random_matrix(TensorType::kQ4_1, 2 * kFfn, kWidth, Precision::kQuantized, 10 + layer));
    }
    std::vector<uint16_t> finite(static_cast<size_t>(kLayout.block_bytes() / 2));
    for (size_t i = 0; i < finite.size(); ++i) finite[i] = float_to_half(x_[i % x_.size()]);
    for (int32_t block : table_) {
      std::memcpy(cache_.arena().base + block * kLayout.block_bytes(), finite.data(), finite.size() * 2);
    }
  }

  void linear(CpuOps& ops, const PackedMatrix& w, int32_t rows, RowTransform transform, float* y) {
    LinearArgs args;
    args.weight = &w;
    args.x = x_.data();
    args.x_stride = transform == RowTransform::kSwiGlu ? 2 * w.columns() : w.columns();
    args.y = y;
    args.y_stride = w.rows();
    args.rows = rows;
    args.transform = transform;
    args.norm_weight = x_.data();
    args.norm_eps = 1e-5f;
    ops.linear(args);
  }

  // The copies of one kind, made at their first use.
  const std::vector<PackedMatrix>& wide(size_t kind) {
    std::vector<PackedMatrix>& matrices = wide_[kind];
    if (!matrices.empty()) return matrices;
    const TensorType type = kWideTypes[kind].first;
    const std::vector<std::byte> weights = testing::random_weights(type, kWideRows, kWide, kind);
    for (int32_t copy = 0; copy < kWideCopies; ++copy) {
      matrices.push_back(
          std::move(PackedMatrix::pack({type, weights, kWideRows}, kWide, Precision::kQuantized).value()));
    }
    return matrices;
  }

  void attention(CpuOps& ops, int32_t position, int32_t rows, int32_t layer) {
    const SequenceRows sequence{0, rows, position, table_.data()};
    const int32_t q_width = kHeads * kLayout.head_dim;
    ops.attention({x_.data(), q_width, y_.data(), q_width, kHeads, 0.125f, &sequence, 1, cache_.arena(), layer});
  }

  std::vector<Measure> measures() {
    const double gate_up_macs = 2.0 * kFfn * kWidth;
    const double pair_macs = 2.0 * kHeads * kLayout.head_dim;  // of one query and one token: score and value
    const double mean_context = kContext - 256 / 2.0;
    std::vector<Measure> all = {
        {"prefill_gate_up_m256", "gops", 2 * gate_up_macs * 256,
         [this](CpuOps& ops) { linear(ops, gate_up_, 256, RowTransform::kRmsNorm, y_.data()); }},
        {"prefill_down_m256", "gops", gate_up_macs * 256,
         [this](CpuOps& ops) { linear(ops, down_, 256, RowTransform::kSwiGlu, y_.data()); }},
        {"batch16_gate_up", "gops", 2 * gate_up_macs * 16,
         [this](CpuOps& ops) { linear(ops, gate_up_, 16, RowTransform::kRmsNorm, y_.data()); }},
        {"float_gate_up_m64", "gops", 2 * gate_up_macs * 64,
         [this](CpuOps& ops) { linear(ops, gate_up_f32_, 64, RowTransform::kRmsNorm, y_.data()); }},
        {"decode_gate_up", "gbs", static_cast<double>(gate_up_.bytes()) * static_cast<double>(layers_.size()),
         [this](CpuOps& ops) {
           for (const PackedMatrix& layer : layers_) linear(ops, layer, 1, RowTransform::kRmsNorm, y_.data());
         }},
        {"decode_head", "gbs", static_cast<double>(head_.bytes()),
         [this](CpuOps& ops) { linear(ops, head_, 1, RowTransform::kNone, logits_.data()); }},
        {"prefill_attention_4096", "gops", 2 * pair_macs * 256 * mean_context,
         [this](CpuOps& ops) { attention(ops, kContext - 256, 256, 7); }},
        {"decode_attention_4096", "gbs", static_cast<double>(kLayout.layer_bytes() / 16 * kContext) * kLayout.layers,
         [this](CpuOps& ops) {
           for (int32_t layer = 0; layer < kLayout.layers; ++layer) attention(ops, kContext - 1, 1, layer);
         }},
    };
    for (size_t kind = 0; kind < std::size(kWideTypes); ++kind) {
      const std::string name = kWideTypes[kind].second;
      for (const int32_t rows : {16, 64, 512}) {
        all.push_back(
            {"prefill_" + name + "_m" + std::to_string(rows), "gops", 2.0 * kWide * kWideRows * rows,
             [this, kind, rows](CpuOps& ops) { linear(ops, wide(kind)[0], rows, RowTransform::kRmsNorm, y_.data()); }});
      }
      const int64_t bytes = PackedMatrix::bytes_of(
          PackedMatrix::panel_kind(kWideTypes[kind].first, Precision::kQuantized), kWideRows, kWide);
      all.push_back({"decode_" + name, "gbs", static_cast<double>(bytes) * kWideCopies, [this, kind](CpuOps& ops) {
                       for (const PackedMatrix& w : wide(kind)) linear(ops, w, 1, RowTransform::kRmsNorm, y_.data());
                     }});
    }
    return all;
  }

 private:
  PackedMatrix gate_up_, down_, head_, gate_up_f32_;
  std::vector<PackedMatrix> layers_;
  std::array<std::vector<PackedMatrix>, std::size(kWideTypes)> wide_;
  testing::PagedCache cache_;
  std::vector<int32_t> table_;
  std::vector<float> x_, y_, logits_;
};

double now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

int run(bool json, int rounds, const std::string& only) {
  Fixture fixture;
  std::vector<Measure> measures = fixture.measures();
  std::erase_if(measures, [&](const Measure& measure) { return measure.name.find(only) == std::string::npos; });
  const int32_t cores = std::max(1, static_cast<int32_t>(std::thread::hardware_concurrency()));
  std::map<std::string, double> best;  // seconds a call
  std::map<std::string, const Measure*> of;
  for (int round = 0; round < rounds; ++round) {
    for (int32_t threads : cores > 1 ? std::vector<int32_t>{1, cores} : std::vector<int32_t>{1}) {
      ThreadPool pool(threads);
      const clockid_t clock = threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
      for (Isa isa : supported_isas()) {
        if (isa == Isa::kScalar) continue;
        CpuOps ops(isa, pool);
        for (const Measure& measure : measures) {
          const std::string key =
              measure.name + "_" + std::string(isa_name(isa)) + "_" + std::to_string(threads) + "t_" + measure.unit;
          of[key] = &measure;
          double& fastest = best.try_emplace(key, 1e30).first->second;
          double spent = 0;
          for (int i = 0; i < 50 && (i < 2 || spent < 0.04); ++i) {
            const double start = now(clock);
            measure.body(ops);
            const double s = now(clock) - start;
            spent += s;
            fastest = std::min(fastest, s);
          }
        }
      }
    }
  }
  std::string line = "{";
  for (const auto& [key, s] : best) {
    const double rate = of[key]->work / s / 1e9;
    std::printf("%-48s %9.1f   (%.1f us)\n", key.c_str(), rate, s * 1e6);
    char field[128];
    std::snprintf(field, sizeof field, "%s\"%s\": %.2f", line.size() > 1 ? ", " : "", key.c_str(), rate);
    line += field;
  }
  if (json) std::printf("%s}\n", line.c_str());
  return 0;
}

}  // namespace
}  // namespace warmpath

int main(int argc, char** argv) {
  bool json = false;
  int rounds = 5;
  std::string only;  // measures whose name holds this
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) {
      json = true;
    } else if (std::strcmp(argv[i], "--quick") == 0) {
      rounds = 2;
    } else if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
      only = argv[++i];
    } else {
      std::fprintf(stderr, "usage: bench_kernels [--json] [--quick] [--only TEXT]\n");
      return 2;
    }
  }
  return warmpath::run(json, rounds, only);
}
