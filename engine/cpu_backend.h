// CpuBackend: runs steps of one model on this machine's cores. Its own thread computes, so that one step may be in
// flight while the caller plans the next; the kernels' thread pool helps it.
//
// Owns the weights (repacked) and the KV arena: `kv_blocks` blocks in one anonymous mapping of huge pages.
// Thread safety: as Backend; handles must be gone before the backend is.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/hash128.h"
#include "base/status.h"
#include "engine/backend.h"
#include "engine/llama_forward.h"
#include "engine/model_config.h"
#include "engine/model_weights.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/huge_buffer.h"
#include "model_file/gguf_file.h"

namespace warmpath {

struct CpuBackendOptions {
  // `--precision fast`: weights as in the file, activations in 8 bits, KV in 16-bit integers. `float`: everything in
  // f32, the reference.
  Precision precision = Precision::kQuantized;
  int32_t threads = 0;  // 0 = default_compute_threads()
  int64_t kv_blocks = 0;
  int32_t context_tokens = 0;  // less than the model's; 0 = the model's
  int32_t max_step_tokens = 512;
  int32_t max_step_sequences = 64;
  std::optional<Isa> isa;  // absent = choose_isa()
};

// "fast" or "float"; an error lists them.
Result<Precision> parse_precision(std::string_view word);

// How KV is kept at a precision: what a block takes is ModelShape::kv_layout(kv_type_of(precision)).block_bytes().
KvType kv_type_of(Precision precision);

// Cores that this process may use: its affinity mask, and the CPU quota of its control group.
int32_t default_compute_threads();

class CpuBackend final : public Backend {
 public:
  // Loads the model; `file` is not needed afterwards. Errors: an unsupported model, too little memory, no fit CPU.
  static Result<std::unique_ptr<CpuBackend>> create(const GgufFile& file, const CpuBackendOptions& options);
  ~CpuBackend() override;

  std::unique_ptr<StepHandle> submit(StepPlan plan) override;

  int32_t vocabulary() const override { return config_.vocabulary; }
  // The model's, or what was asked for or what the KV arena can hold if that is less.
  int32_t context_tokens() const override;
  int64_t kv_blocks() const override { return options_.kv_blocks; }
  int64_t kv_bytes_per_token() const override { return arena_.layout.token_bytes(); }
  int32_t max_step_tokens() const override { return options_.max_step_tokens; }
  int32_t max_step_sequences() const override { return options_.max_step_sequences; }
  std::string device() const override;

  const ModelShape& config() const { return config_; }
  std::string_view isa() const { return isa_name(ops_.isa()); }
  Hash128 fingerprint() const { return fingerprint_; }
  int64_t weight_bytes() const { return weights_.bytes(); }
  const KvArena& arena() const { return arena_; }

 private:
  struct Step;
  class Handle;

  CpuBackend(ModelShape config, CpuBackendOptions options, Isa isa);
  Status allocate_arena();
  void work();

  const ModelShape config_;
  const CpuBackendOptions options_;
  ModelWeights weights_;
  Hash128 fingerprint_;
  HugeBuffer arena_bytes_;
  KvArena arena_;
  ThreadPool pool_;
  CpuOps ops_;
  std::unique_ptr<LlamaForward> forward_;

  std::mutex mutex_;  // guards what follows, and every Step's `done`
  std::condition_variable work_ready_;
  std::condition_variable step_done_;
  std::deque<std::shared_ptr<Step>> queue_;
  std::vector<std::vector<float>> spare_logits_;  // buffers of dead handles, used again
  bool stop_ = false;
  std::thread worker_;
};

}  // namespace warmpath
