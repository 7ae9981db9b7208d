// A trial of two tables at start: whether AMX is worth its tiles here.
//
// The AMX table was written without a machine to measure it on, and a hypervisor may make tiles slow; so choose_isa()
// takes it only where it wins a product of 48 rows, a prefill's unit of work, against the AVX-512 table. A few
// milliseconds, once a process, on machines with AMX only; the result is logged (`amx_trial`).
// Thread safety: any thread; the first call measures.
#pragma once

#include "kernels/cpu/isa.h"

namespace warmpath {

struct CpuKernels;  // kernels/cpu/cpu_kernels.h

struct IsaTrial {
  double amx_seconds = 0;     // of the same product, the best of a few
  double avx512_seconds = 0;  // interleaved with it

  double speedup() const { return avx512_seconds / amx_seconds; }
  // Clearly: a tie goes to the table that other machines run.
  bool amx_wins() const { return speedup() > 1.1; }
};

// REQUIRES isa_supported(Isa::kAmx). Measured at the first call.
const IsaTrial& amx_trial();

// Of two tables, for amx_trial(): seconds of their product of 48 rows and 4-bit weights, the best of `rounds` each.
IsaTrial try_tables(const CpuKernels& amx, const CpuKernels& avx512, int rounds);

}  // namespace warmpath
