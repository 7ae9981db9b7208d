// CpuOps::attention(): cuts the queries into tasks, and their context into splits of kAttentionSplit tokens.
//
// A task takes up to kTaskRows rows (queries x heads of the group), so that keys and values, once in L2, serve all of
// them. When there are too few tasks for the threads (decoding, short chunks), every split is a task of its own and the
// partial states are merged afterwards. Either way a row's result is the same merge of the same splits in the same
// order.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/cpu_scratch.h"

namespace warmpath {
namespace {

constexpr int32_t kTaskRows = 48;
// So few merges of a row are not worth waking anyone.
constexpr int64_t kInlineMerges = 1024;
constexpr float kLog2E = 1.44269504088896341f;
static_assert(kScoreStride >= kAttentionSplit);
constexpr int32_t kSplitBlocks = kAttentionSplit / KvLayout::kTokens;

// The partial softmax state of some rows.
struct PartialState {
  float* out;  // [rows][head_dim]
  float* max;  // [rows]
  float* sum;  // [rows]

  static size_t floats(int32_t rows, int32_t head_dim) { return static_cast<size_t>(rows) * (head_dim + 2); }
  static PartialState at(float* memory, int32_t rows, int32_t head_dim) {
    float* max = memory + int64_t{rows} * head_dim;
    return {memory, max, max + rows};
  }
};

int32_t splits_of(int32_t tokens) { return (tokens + kAttentionSplit - 1) / kAttentionSplit; }

}  // namespace

void CpuOps::attention(const AttentionArgs& args) {
  const KvLayout& layout = args.kv.layout;
  const int32_t dim = layout.head_dim;
  const int32_t group = args.heads / layout.kv_heads;
  WARMPATH_DCHECK(group * layout.kv_heads == args.heads && dim % 16 == 0, "heads do not fit the cache's layout");
  const int32_t tile_queries = std::max(1, kTaskRows / group);
  const int32_t tile_rows = tile_queries * group;

  // The last tiles of a prompt see the most context: they come first, so that no thread starts on one alone at the end.
  std::vector<AttentionTask>& tasks = scratch_->tasks;
  tasks.clear();
  for (int32_t s = 0; s < args.sequence_count; ++s) {
    const SequenceRows& sequence = args.sequences[s];
    for (int32_t tile = (sequence.rows + tile_queries - 1) / tile_queries - 1; tile >= 0; --tile) {
      const int32_t first = tile * tile_queries;
      const int32_t queries = std::min(tile_queries, sequence.rows - first);
      const int32_t splits = splits_of(sequence.position + first + queries);
      for (int32_t head = 0; head < layout.kv_heads; ++head) tasks.push_back({s, first, queries, head, 0, splits});
    }
  }
  const auto whole = static_cast<int32_t>(tasks.size());
  if (whole == 0) return;
  // Where whole tasks would leave more than a twentieth of the threads' time idle (9 tasks of two threads are 5 and 4),
  // every split is a task.
  const int32_t threads = pool_.threads();
  const int32_t idle = (whole + threads - 1) / threads * threads - whole;
  const bool parallel_splits = threads > 1 && (whole < 4 * threads || 20 * idle > whole);
  if (parallel_splits) {
    for (int32_t i = 0; i < whole; ++i) {
      AttentionTask task = tasks[static_cast<size_t>(i)];
      tasks[static_cast<size_t>(i)].first_partial = static_cast<int32_t>(tasks.size()) - whole;
      for (int32_t split = task.end_split - 1; split >= 0; --split) {
        task.first_split = split;
        task.end_split = split + 1;
        tasks.push_back(task);
      }
    }
  }

  // Of one thread: queries, scores, the merged state, the next split's state.
  const size_t partial_floats = PartialState::floats(tile_rows, dim);
  const size_t score_floats = static_cast<size_t>(tile_rows) * (dim + kScoreStride);
  const size_t thread_floats = score_floats + 2 * partial_floats;
  float* partials = parallel_splits
                        ? scratch_->partials.reserve((tasks.size() - static_cast<size_t>(whole)) * partial_floats)
                        : nullptr;

  const auto write_rows = [&](const AttentionTask& task, const PartialState& state) {
    const SequenceRows& sequence = args.sequences[task.sequence];
    for (int32_t i = 0; i < task.queries * group; ++i) {
      float* y = args.y + (sequence.first_row + task.first_query + i / group) * args.y_stride +
                 (task.kv_head * group + i % group) * dim;
      kernels_.scale_row(state.out + int64_t{i} * dim, 1.0f / state.sum[i], dim, y);
    }
  };

  // `state` becomes the merged state of the task's rows over its splits.
  const auto run = [&](const AttentionTask& task, const PartialState& state, int32_t thread) {
    const SequenceRows& sequence = args.sequences[task.sequence];
    const int32_t rows = task.queries * group;
    float* q = scratch_->thread(thread).attention.reserve(thread_floats);
    float* scores = q + int64_t{tile_rows} * dim;
    const PartialState next = PartialState::at(q + score_floats + partial_floats, tile_rows, dim);
    const bool integers = layout.type == KvType::kInt16;
    int16_t* q16 = scratch_->thread(thread).q16.reserve(integers ? static_cast<size_t>(tile_rows) * dim : 0);
    float* q16_scale = scratch_->thread(thread).q16_scale.reserve(integers ? static_cast<size_t>(tile_rows) : 0);
    for (int32_t i = 0; i < rows; ++i) {
      kernels_.scale_row(args.q + (sequence.first_row + task.first_query + i / group) * args.q_stride +
                             (task.kv_head * group + i % group) * dim,
                         args.scale * kLog2E, dim, q + int64_t{i} * dim);
      if (integers) kernels_.quantize16_by_length(q + int64_t{i} * dim, dim, q16 + int64_t{i} * dim, q16_scale + i);
    }
    const uint8_t* k[kSplitBlocks];
    const uint8_t* v[kSplitBlocks];
    int32_t* valid = scratch_->thread(thread).valid.reserve(static_cast<size_t>(tile_rows));
    for (int32_t index = task.first_split; index < task.end_split; ++index) {
      const int32_t start = index * kAttentionSplit;
      const int32_t tokens = std::min(kAttentionSplit, sequence.position + task.first_query + task.queries - start);
      for (int32_t b = 0; b * KvLayout::kTokens < tokens; ++b) {
        const uint8_t* block =
            args.kv.base + sequence.block_table[start / KvLayout::kTokens + b] * layout.block_bytes();
        k[b] = block + layout.k_offset(args.layer, task.kv_head);
        v[b] = block + layout.v_offset(args.layer, task.kv_head);
      }
      for (int32_t i = 0; i < rows; ++i) {
        valid[i] = std::clamp(sequence.position + task.first_query + i / group + 1 - start, 0, kAttentionSplit);
      }
      const PartialState& to = index == task.first_split ? state : next;
      kernels_.attention_split(
          {q, q16, q16_scale, rows, dim, valid, layout.type, k, v, scores, to.out, to.max, to.sum});
      if (index == task.first_split) continue;
      for (int32_t i = 0; i < rows; ++i) {
        if (valid[i] == 0) continue;
        kernels_.attention_merge(state.out + int64_t{i} * dim, state.max + i, state.sum + i,
                                 next.out + int64_t{i} * dim, next.max[i], next.sum[i], dim);
      }
    }
  };

  if (!parallel_splits) {
    WARMPATH_CHECK(whole <= ThreadPool::kMaxTasks, "too many rows for one step");
    pool_.run(whole, [&](int32_t index, int32_t thread) {
      const AttentionTask& task = tasks[static_cast<size_t>(index)];
      float* memory = scratch_->thread(thread).attention.reserve(thread_floats);
      const PartialState state = PartialState::at(memory + score_floats, tile_rows, dim);
      run(task, state, thread);
      write_rows(task, state);
    });
    return;
  }

  const auto split_tasks = static_cast<int32_t>(tasks.size()) - whole;
  WARMPATH_CHECK(split_tasks <= ThreadPool::kMaxTasks, "too long a context for one step");
  pool_.run(split_tasks, [&](int32_t index, int32_t thread) {
    run(tasks[static_cast<size_t>(whole + index)],
        PartialState::at(partials + static_cast<size_t>(index) * partial_floats, tile_rows, dim), thread);
  });
  // A task's partial states lie together, its last split first.
  auto merge = [&](int32_t index, int32_t) {
    const AttentionTask& task = tasks[static_cast<size_t>(index)];
    const SequenceRows& sequence = args.sequences[task.sequence];
    const auto at = [&](int32_t split) {
      const auto slot = static_cast<size_t>(task.first_partial + task.end_split - 1 - split);
      return PartialState::at(partials + slot * partial_floats, tile_rows, dim);
    };
    const PartialState state = at(0);
    for (int32_t split = 1; split < task.end_split; ++split) {
      const PartialState next = at(split);
      for (int32_t row = 0; row < task.queries * group; ++row) {
        if (sequence.position + task.first_query + row / group < split * kAttentionSplit) continue;
        kernels_.attention_merge(state.out + int64_t{row} * dim, state.max + row, state.sum + row,
                                 next.out + int64_t{row} * dim, next.max[row], next.sum[row], dim);
      }
    }
    write_rows(task, state);
  };
  if (int64_t{split_tasks} * tasks.front().queries * group > kInlineMerges) {
    pool_.run(whole, merge);
  } else {
    for (int32_t index = 0; index < whole; ++index) merge(index, 0);
  }
}

}  // namespace warmpath
