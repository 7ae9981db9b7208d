#include "engine/cpu_backend.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "engine/model_fingerprint.h"

namespace warmpath {

namespace {

// The quota of a version 2 control group, in cores rounded up; 0 when there is none.
int32_t control_group_cores() {
  std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r");
  if (file == nullptr) return 0;
  double quota_us = 0;
  double period_us = 0;
  const int read = std::fscanf(file, "%lf %lf", &quota_us, &period_us);  // "max 100000" has no quota
  std::fclose(file);
  if (read != 2 || quota_us <= 0 || period_us <= 0) return 0;
  return static_cast<int32_t>(quota_us / period_us + 0.999);
}

int64_t physical_memory_bytes() { return int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE); }

}  // namespace

Result<Precision> parse_precision(std::string_view word) {
  if (word == "fast") return Precision::kQuantized;
  if (word == "float") return Precision::kFloat;
  return invalid_argument(fmt::format("precision '{}': one of fast, float", word));
}

KvType kv_type_of(Precision precision) { return precision == Precision::kFloat ? KvType::kF32 : KvType::kInt16; }

int32_t default_compute_threads() {
  cpu_set_t allowed;
  int32_t cores = 1;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) == 0) cores = std::max(1, CPU_COUNT(&allowed));
  const int32_t quota = control_group_cores();
  return quota > 0 ? std::min(cores, quota) : cores;
}

// One submitted step, shared by the worker and its handle.
struct CpuBackend::Step {
  StepPlan plan;
  std::vector<float> logits;
  Status status;
  double seconds = 0;
  bool done = false;
};

class CpuBackend::Handle final : public StepHandle {
 public:
  Handle(CpuBackend& backend, std::shared_ptr<Step> step) : backend_(backend), step_(std::move(step)) {}

  ~Handle() override {
    std::unique_lock lock(backend_.mutex_);
    backend_.step_done_.wait(lock, [&] { return step_->done; });
    backend_.spare_logits_.push_back(std::move(step_->logits));
  }

  Result<StepResult> wait() override {
    std::unique_lock lock(backend_.mutex_);
    backend_.step_done_.wait(lock, [&] { return step_->done; });
    if (!step_->status.ok()) return step_->status;
    return StepResult{step_->logits, step_->seconds};
  }

 private:
  CpuBackend& backend_;
  const std::shared_ptr<Step> step_;
};

CpuBackend::CpuBackend(ModelShape config, CpuBackendOptions options, Isa isa)
    : config_(std::move(config)), options_(options), pool_(options.threads), ops_(isa, pool_) {
  arena_.layout = config_.kv_layout(kv_type_of(options_.precision));
}

Result<std::unique_ptr<CpuBackend>> CpuBackend::create(const GgufFile& file, const CpuBackendOptions& requested) {
  CpuBackendOptions options = requested;
  if (options.threads <= 0) options.threads = default_compute_threads();
  if (options.kv_blocks < 1 || options.kv_blocks > std::numeric_limits<BlockId>::max()) {
    return invalid_argument(fmt::format("{} KV blocks: at least one is needed", options.kv_blocks));
  }
  if (options.max_step_tokens < 1 || options.max_step_sequences < 1) {
    return invalid_argument("a step needs room for at least one token and one sequence");
  }
  const Result<Isa> isa = options.isa ? Result<Isa>(*options.isa) : choose_isa();
  if (!isa.ok()) return isa.status();
  if (!isa_supported(*isa)) return failed_precondition(fmt::format("this machine does not run {}", isa_name(*isa)));
  Result<ModelShape> config = read_model_config(file);
  if (!config.ok()) return config.status();

  std::unique_ptr<CpuBackend> backend(new CpuBackend(std::move(*config), options, *isa));
  const auto start = std::chrono::steady_clock::now();
  Result<ModelWeights> weights = load_model_weights(file, backend->config_, options.precision, options.threads);
  if (!weights.ok()) return weights.status();
  log_info("weights_loaded",
           {{"model", backend->config_.name},
            {"architecture", backend->config_.architecture},
            {"bytes", weights->bytes()},
            {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()}});
  backend->weights_ = std::move(*weights);
  WARMPATH_RETURN_IF_ERROR(backend->allocate_arena());
  backend->fingerprint_ = model_fingerprint(file, backend->arena_.layout, options.precision);
  file.drop_pages();  // the weights are packed: the process needs them once
  backend->forward_ = std::make_unique<LlamaForward>(backend->config_, backend->weights_, backend->ops_,
                                                     backend->arena_, options.kv_blocks, options.max_step_tokens);
  backend->worker_ = std::thread([raw = backend.get()] { raw->work(); });
  return backend;
}

CpuBackend::~CpuBackend() {
  if (!worker_.joinable()) return;  // create() failed half way
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_ready_.notify_one();
  worker_.join();
}

Status CpuBackend::allocate_arena() {
  const int64_t block = arena_.layout.block_bytes();
  const int64_t most = physical_memory_bytes() / block;
  if (options_.kv_blocks > most) {
    return resource_exhausted(
        fmt::format("{} KV blocks of {} bytes are more than this machine's memory; at most {} fit", options_.kv_blocks,
                    block, most));
  }
  arena_bytes_ = HugeBuffer::allocate(static_cast<size_t>(options_.kv_blocks * block));
  arena_.base = arena_bytes_.data();
  if (arena_.base == nullptr) {
    return resource_exhausted(fmt::format("cannot reserve {} bytes for {} KV blocks; ask for fewer",
                                          options_.kv_blocks * block, options_.kv_blocks));
  }
  return {};
}

int32_t CpuBackend::context_tokens() const {
  const int32_t wanted =
      options_.context_tokens > 0 ? std::min(options_.context_tokens, config_.context) : config_.context;
  return static_cast<int32_t>(std::min<int64_t>(wanted, options_.kv_blocks * kBlockTokens));
}

std::string CpuBackend::device() const {
  return fmt::format("cpu {} x{}{}", isa_name(ops_.isa()), options_.threads,
                     options_.precision == Precision::kFloat ? " float" : "");
}

std::unique_ptr<StepHandle> CpuBackend::submit(StepPlan plan) {
  WARMPATH_CHECK(static_cast<int64_t>(plan.sequences.size()) <= options_.max_step_sequences,
                 "a step of too many sequences");
  auto step = std::make_shared<Step>();
  step->plan = std::move(plan);
  {
    const std::lock_guard lock(mutex_);
    if (!spare_logits_.empty()) {
      step->logits = std::move(spare_logits_.back());
      spare_logits_.pop_back();
    }
    queue_.push_back(step);
  }
  work_ready_.notify_one();
  return std::make_unique<Handle>(*this, std::move(step));
}

void CpuBackend::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_ready_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;  // stopped, and nothing is left to do
    const std::shared_ptr<Step> step = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    const auto start = std::chrono::steady_clock::now();
    step->status = forward_->run(step->plan, step->logits);
    step->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    lock.lock();
    step->done = true;
    step_done_.notify_all();
  }
}

}  // namespace warmpath
