// CpuOps: Ops on this machine's cores, with the kernels of one instruction set.
//
//   ThreadPool pool(2);
//   CpuOps ops(choose_isa().value(), pool);
//
// Scratch memory grows to the largest step seen and stays. Thread safety: one caller at a time per object; several
// objects may share a pool only if they are not called at the same time.
#pragma once

#include <memory>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/ops.h"

namespace warmpath {

struct CpuKernels;  // kernels/cpu/cpu_kernels.h

class CpuOps final : public Ops {
 public:
  // REQUIRES isa_supported(isa). `pool` outlives this.
  CpuOps(Isa isa, ThreadPool& pool);
  ~CpuOps() override;

  Isa isa() const { return isa_; }
  ThreadPool& pool() { return pool_; }

  void embedding(const EmbeddingArgs& args) override;
  void linear(const LinearArgs& args) override;
  void rms_norm(const RmsNormArgs& args) override;
  void swiglu(const SwiGluArgs& args) override;
  void add(const AddArgs& args) override;
  void rope_angles(const RopeAnglesArgs& args) override;
  void rope_store(const RopeStoreArgs& args) override;
  void attention(const AttentionArgs& args) override;
  void copy_blocks(const CopyBlocksArgs& args) override;

 private:
  class Scratch;

  const Isa isa_;
  ThreadPool& pool_;
  const CpuKernels& kernels_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace warmpath
