// CpuOps' scratch memory: buffers that grow to the largest step seen. Private to cpu_*.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "kernels/cpu/cpu_ops.h"

namespace warmpath {

// Uninitialized, 64-byte aligned elements; growing drops the old contents.
template <typename T>
class ScratchBuffer {
 public:
  T* reserve(size_t count) {
    if (count > capacity_) {
      capacity_ = 0;
      data_.reset(static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{64})));
      capacity_ = count;
    }
    return data_.get();
  }

 private:
  struct Free {
    void operator()(T* data) const { ::operator delete (data, std::align_val_t{64}); }
  };
  std::unique_ptr<T, Free> data_;
  size_t capacity_ = 0;
};

// A part of attention's work: `queries` neighbouring queries of a sequence, one kv head, splits [first_split,
// end_split).
struct AttentionTask {
  int32_t sequence = 0;
  int32_t first_query = 0;
  int32_t queries = 0;
  int32_t kv_head = 0;
  int32_t first_split = 0;
  int32_t end_split = 0;
  int32_t first_partial = 0;  // when its splits are tasks: where their partial states begin
};

class CpuOps::Scratch {
 public:
  explicit Scratch(int32_t threads) : threads_(static_cast<size_t>(threads)) {}

  struct PerThread {
    ScratchBuffer<float> row;        // one transformed row
    ScratchBuffer<float> digits;     // the products of two-digit rows, before each pair is added
    ScratchBuffer<float> attention;  // queries, scores and a split's partial state
    ScratchBuffer<int16_t> q16;      // queries of a 16-bit cache, and their scales
    ScratchBuffer<float> q16_scale;
    ScratchBuffer<int32_t> valid;    // per row: the tokens of a split that it sees
    ScratchBuffer<uint16_t> halves;  // keys and values of one token
  };
  PerThread& thread(int32_t index) { return threads_[static_cast<size_t>(index)]; }

  // linear(): the rows of x, transformed, as f32 or as 8 bits.
  ScratchBuffer<float> x;
  ScratchBuffer<int8_t> x_q;
  ScratchBuffer<float> x_scale;
  ScratchBuffer<float> x_sum;
  ScratchBuffer<int32_t> x_q_sum;
  // attention(): its tasks and, when the splits of one row run in parallel, their partial states.
  std::vector<AttentionTask> tasks;
  ScratchBuffer<float> partials;

 private:
  std::vector<PerThread> threads_;
};

}  // namespace warmpath
