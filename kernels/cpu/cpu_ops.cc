#include "kernels/cpu/cpu_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/cpu_scratch.h"
#include "kernels/packed_matrix.h"

namespace warmpath {
namespace {

// Below this many elements a loop over rows is not worth waking anyone.
constexpr int64_t kInlineElements = 8192;

// body(row, thread) for every row, in parallel when there is enough to do. Rows are handed out in runs.
template <typename Body>
void for_rows(ThreadPool& pool, int32_t rows, int64_t width, Body&& body) {
  if (rows * width <= kInlineElements || pool.threads() == 1) {
    for (int32_t row = 0; row < rows; ++row) body(row, 0);
    return;
  }
  const int32_t tasks = std::min(rows, 4 * pool.threads());
  pool.run(tasks, [&](int32_t task, int32_t thread) {
    const auto first = static_cast<int32_t>(int64_t{rows} * task / tasks);
    const auto end = static_cast<int32_t>(int64_t{rows} * (task + 1) / tasks);
    for (int32_t row = first; row < end; ++row) body(row, thread);
  });
}

// The sequence that owns `row`; sequences lie one after the other.
const SequenceRows& sequence_of(const SequenceRows* sequences, int32_t count, int32_t row) {
  const SequenceRows* end = sequences + count;
  const SequenceRows* after =
      std::upper_bound(sequences, end, row, [](int32_t r, const SequenceRows& s) { return r < s.first_row; });
  return after[-1];
}

// Bytes between rows of 8-bit numbers: an odd number of cache lines, or neighbouring rows of a wide matrix would
// compete for the same cache sets.
int64_t byte_stride(int64_t columns) { return ((columns + 63) / 64 | 1) * 64; }

// y (+)= the products of two neighbouring rows, a row's two digits, + bias.
void add_digits(const PanelProduct& pairs, const float* bias, bool accumulate, float* y, int64_t y_stride) {
  for (int32_t row = 0; 2 * row < pairs.rows; ++row, y += y_stride) {
    const float* high = pairs.y + 2 * row * pairs.y_stride;
    const float* low = high + pairs.y_stride;
    for (int32_t k = 0; k < pairs.valid; ++k) {
      const float both = high[k] + low[k] + (bias == nullptr ? 0.0f : bias[k]);
      y[k] = accumulate ? y[k] + both : both;
    }
  }
}

}  // namespace

CpuOps::CpuOps(Isa isa, ThreadPool& pool)
    : isa_(isa), pool_(pool), kernels_(kernels_of(isa)), scratch_(std::make_unique<Scratch>(pool.threads())) {
  WARMPATH_CHECK(isa_supported(isa), "this machine cannot run these kernels; see choose_isa()");
}

CpuOps::~CpuOps() = default;

void CpuOps::embedding(const EmbeddingArgs& args) {
  for_rows(pool_, args.rows, args.table->columns(), [&](int32_t row, int32_t) {
    float* y = args.y + row * args.y_stride;
    args.table->read_row(args.token_ids[row], y);
    if (args.scale != 1.0f) kernels_.scale_row(y, args.scale, static_cast<int32_t>(args.table->columns()), y);
  });
}

void CpuOps::rms_norm(const RmsNormArgs& args) {
  for_rows(pool_, args.rows, args.width, [&](int32_t row, int32_t) {
    kernels_.rms_norm_row(args.x + row * args.x_stride, args.weight, args.eps, args.width,
                          args.y + row * args.y_stride);
  });
}

void CpuOps::swiglu(const SwiGluArgs& args) {
  for_rows(pool_, args.rows, args.width, [&](int32_t row, int32_t) {
    kernels_.swiglu_row(args.gate + row * args.x_stride, args.up + row * args.x_stride, args.width,
                        args.y + row * args.y_stride);
  });
}

void CpuOps::add(const AddArgs& args) {
  for_rows(pool_, args.rows, args.width, [&](int32_t row, int32_t) {
    kernels_.add_row(args.x + row * args.x_stride, args.width, args.y + row * args.y_stride);
  });
}

void CpuOps::rope_angles(const RopeAnglesArgs& args) {
  for_rows(pool_, args.rows, int64_t{args.half} * 32, [&](int32_t row, int32_t) {
    const auto position = static_cast<float>(args.positions[row]);
    for (int32_t i = 0; i < args.half; ++i) {
      // The product is rounded to f32 as the reference implementations do; its sine and cosine are then exact to f32.
      const double angle = position * args.inv_freq[i];
      args.cos[row * int64_t{args.half} + i] = static_cast<float>(std::cos(angle)) * args.scale;
      args.sin[row * int64_t{args.half} + i] = static_cast<float>(std::sin(angle)) * args.scale;
    }
  });
}

void CpuOps::rope_store(const RopeStoreArgs& args) {
  const KvLayout& layout = args.kv.layout;
  const int32_t dim = layout.head_dim;
  const int32_t width = (args.heads + 2 * layout.kv_heads) * dim;
  int32_t rows = 0;
  for (int32_t s = 0; s < args.sequence_count; ++s) rows += args.sequences[s].rows;
  const int32_t first_row = args.sequence_count == 0 ? 0 : args.sequences[0].first_row;
  const auto rotate = args.style == RopeStyle::kAdjacent ? kernels_.rope_adjacent : kernels_.rope_halves;

  for_rows(pool_, rows, width, [&](int32_t index, int32_t thread) {
    const int32_t row = first_row + index;
    float* qkv = args.qkv + row * args.qkv_stride;
    for (int32_t head = 0; head < args.heads + layout.kv_heads; ++head) {
      const float* norm = head < args.heads ? args.q_norm : args.k_norm;
      if (norm != nullptr) kernels_.rms_norm_row(qkv + head * dim, norm, args.norm_eps, dim, qkv + head * dim);
      rotate(qkv + head * dim, args.cos + row * int64_t{args.half}, args.sin + row * int64_t{args.half}, args.half);
    }
    const SequenceRows& sequence = sequence_of(args.sequences, args.sequence_count, row);
    const int32_t position = sequence.position + row - sequence.first_row;
    const int32_t slot = position % KvLayout::kTokens;
    uint8_t* block = args.kv.base + sequence.block_table[position / KvLayout::kTokens] * layout.block_bytes();
    const float* keys = qkv + args.heads * dim;
    const float* values = keys + layout.kv_heads * dim;
    uint16_t* halves = scratch_->thread(thread).halves.reserve(static_cast<size_t>(dim) + 16);
    for (int32_t head = 0; head < layout.kv_heads; ++head) {
      uint8_t* k = block + layout.k_offset(args.layer, head);
      uint8_t* v = block + layout.v_offset(args.layer, head);
      switch (layout.type) {
        case KvType::kF32: {
          auto* k32 = reinterpret_cast<float*>(k);
          for (int32_t d = 0; d < dim; ++d) k32[d * KvLayout::kTokens + slot] = keys[head * dim + d];
          std::copy_n(values + head * dim, dim, reinterpret_cast<float*>(v) + slot * dim);
          break;
        }
        case KvType::kF16: {
          auto* k16 = reinterpret_cast<uint16_t*>(k);
          kernels_.to_f16(keys + head * dim, dim, halves);
          for (int32_t d = 0; d < dim; ++d) k16[d * KvLayout::kTokens + slot] = halves[d];
          kernels_.to_f16(values + head * dim, dim, reinterpret_cast<uint16_t*>(v) + slot * dim);
          break;
        }
        case KvType::kInt16: {
          auto* integers = reinterpret_cast<int16_t*>(halves);
          auto* k16 = reinterpret_cast<int16_t*>(k + layout.scale_bytes());
          kernels_.quantize16_by_length(keys + head * dim, dim, integers, reinterpret_cast<float*>(k) + slot);
          for (int32_t d = 0; d < dim; ++d) k16[d / 2 * 2 * KvLayout::kTokens + 2 * slot + d % 2] = integers[d];
          auto* v16 = reinterpret_cast<int16_t*>(v + layout.scale_bytes()) + slot / 2 * 2 * dim + slot % 2;
          kernels_.quantize16_by_largest(values + head * dim, dim, integers, reinterpret_cast<float*>(v) + slot);
          for (int32_t d = 0; d < dim; ++d) v16[2 * d] = integers[d];
          break;
        }
      }
    }
  });
}

void CpuOps::copy_blocks(const CopyBlocksArgs& args) {
  const KvLayout& layout = args.kv.layout;
  WARMPATH_CHECK(int64_t{args.count} * layout.layers <= ThreadPool::kMaxTasks, "too many copies for one step");
  pool_.run(args.count * layout.layers, [&](int32_t task, int32_t) {
    const int64_t offset = task % layout.layers * layout.layer_bytes();
    const auto at = [&](int32_t block) { return args.kv.base + block * layout.block_bytes() + offset; };
    std::memcpy(at(args.to[task / layout.layers]), at(args.from[task / layout.layers]),
                static_cast<size_t>(layout.layer_bytes()));
  });
}

void CpuOps::linear(const LinearArgs& args) {
  const PackedMatrix& weight = *args.weight;
  const auto columns = static_cast<int32_t>(weight.columns());
  const auto panels = static_cast<int32_t>(weight.panels());
  const bool quantized = !PackedMatrix::is_float(weight.kind());
  const int64_t blocks = columns / PackedMatrix::kQuantColumns;
  const int32_t digits = quantized && args.two_digits ? 2 : 1;
  const auto rows = static_cast<size_t>(args.rows * digits);
  if (args.rows <= 0) return;

  // First the rows of x, each once: gathered, transformed, rounded to 8 bits. The digits of a row are neighbours.
  const bool direct = !quantized && args.transform == RowTransform::kNone && args.row_ids == nullptr;
  float* floats = quantized || direct ? nullptr : scratch_->x.reserve(rows * static_cast<size_t>(columns));
  const int64_t q_stride = byte_stride(columns);
  int8_t* q = quantized ? scratch_->x_q.reserve(rows * static_cast<size_t>(q_stride)) : nullptr;
  float* scale = quantized ? scratch_->x_scale.reserve(rows * static_cast<size_t>(blocks)) : nullptr;
  float* sum = quantized ? scratch_->x_sum.reserve(rows * static_cast<size_t>(blocks)) : nullptr;
  int32_t* q_sum = quantized ? scratch_->x_q_sum.reserve(rows * static_cast<size_t>(2 * blocks)) : nullptr;
  const auto quantize = [&](const float* x, int64_t row) {
    kernels_.quantize_row(x, columns, q + row * q_stride, scale + row * blocks, sum + row * blocks,
                          q_sum + 2 * row * blocks);
  };
  if (!direct) {
    for_rows(pool_, args.rows, columns, [&](int32_t row, int32_t thread) {
      const float* x = args.x + (args.row_ids == nullptr ? row : args.row_ids[row]) * args.x_stride;
      float* y = quantized ? scratch_->thread(thread).row.reserve(static_cast<size_t>(columns))
                           : floats + int64_t{row} * columns;
      switch (args.transform) {
        case RowTransform::kRmsNorm:
          kernels_.rms_norm_row(x, args.norm_weight, args.norm_eps, columns, y);
          break;
        case RowTransform::kSwiGlu:
          kernels_.swiglu_row(x, x + columns, columns, y);
          break;
        case RowTransform::kNone:
          if (quantized && digits == 1) return quantize(x, row);
          std::copy_n(x, columns, y);
          break;
      }
      if (!quantized) return;
      const int64_t first = int64_t{row} * digits;
      quantize(y, first);
      if (digits == 1) return;
      for (int32_t k = 0; k < columns; ++k) {
        y[k] -= scale[first * blocks + k / PackedMatrix::kQuantColumns] * static_cast<float>(q[first * q_stride + k]);
      }
      quantize(y, first + 1);
    });
  }

  // Then the product, in tasks of rows x panels small enough that a panel stays in L1 while the rows pass by.
  constexpr int32_t kTaskRows = 48;
  constexpr int32_t kPairPanels = 16;  // two-digit rows: so many panels at a time, for their pairs to be added in L1
  const int32_t most_rows = kTaskRows / digits;
  const int32_t row_tasks = (args.rows + most_rows - 1) / most_rows;
  const int32_t wanted = pool_.threads() == 1 ? 1 : pool_.threads() * (row_tasks > 1 ? 8 : 4);
  const int32_t panel_tasks = std::clamp((wanted + row_tasks - 1) / row_tasks, 1, panels);
  const auto product_of = kernels_.product[static_cast<size_t>(weight.kind())];
  WARMPATH_CHECK(int64_t{row_tasks} * panel_tasks <= ThreadPool::kMaxTasks, "too many rows for one step");
  pool_.run(row_tasks * panel_tasks, [&](int32_t task, int32_t thread) {
    const int32_t first_row = task / panel_tasks * most_rows;
    const int32_t task_rows = std::min(most_rows, args.rows - first_row);
    const auto first_panel = static_cast<int32_t>(int64_t{panels} * (task % panel_tasks) / panel_tasks);
    const auto end_panel = static_cast<int32_t>(int64_t{panels} * (task % panel_tasks + 1) / panel_tasks);
    PanelProduct product;
    product.panel_bytes = weight.panel_bytes();
    product.columns = columns;
    product.rows = task_rows * digits;
    const int64_t x_row = int64_t{first_row} * digits;
    if (quantized) {
      product.x8 = {q + x_row * q_stride, q_stride, scale + x_row * blocks, sum + x_row * blocks,
                    q_sum + 2 * x_row * blocks};
    } else {
      product.x_stride = direct ? args.x_stride : columns;
      product.x = (direct ? args.x : floats) + first_row * product.x_stride;
    }
    for (int32_t panel = first_panel; panel < end_panel; panel += product.panels) {
      product.panel = weight.panel(panel);
      product.panels = digits == 1 ? end_panel - panel : std::min(kPairPanels, end_panel - panel);
      const int32_t column = panel * static_cast<int32_t>(PackedMatrix::kPanelRows);
      product.valid =
          static_cast<int32_t>(std::min<int64_t>(weight.rows() - column, product.panels * PackedMatrix::kPanelRows));
      float* const y = args.y + first_row * args.y_stride + column;
      const float* const bias = args.bias == nullptr ? nullptr : args.bias + column;
      if (digits == 1) {
        product.y = y;
        product.y_stride = args.y_stride;
        product.bias = bias;
        product.accumulate = args.accumulate;
        product_of(product);
        continue;
      }
      product.y_stride = kPairPanels * PackedMatrix::kPanelRows;
      product.y = scratch_->thread(thread).digits.reserve(static_cast<size_t>(kTaskRows * product.y_stride));
      product_of(product);
      add_digits(product, bias, args.accumulate, y, args.y_stride);
    }
  });
}

}  // namespace warmpath
