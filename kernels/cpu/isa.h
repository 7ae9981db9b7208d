// Isa: the instruction sets that the CPU kernels are written for, chosen at run time. One binary holds them all.
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace warmpath {

enum class Isa : uint8_t {
  kScalar,  // plain C++: the twin that the others are compared with
  kAvx2,    // AVX2, FMA, F16C: the least that an engine needs
  kAvx512,  // AVX-512 F, BW, VL, DQ, VNNI
  kAmx,     // the same, and AMX-INT8 for products of many rows
};

// "scalar", "avx2", "avx512", "amx".
std::string_view isa_name(Isa isa);
// The names above; an error lists them.
Result<Isa> parse_isa(std::string_view name);
// Does this machine (CPU and kernel) run it? Asking for kAmx asks the kernel for tiles, once a process.
bool isa_supported(Isa isa);
// All that this machine runs, slowest first.
std::vector<Isa> supported_isas();
// The fastest supported (AMX where a trial says so, kernels/cpu/isa_trial.h), or the one that the environment variable
// WARMPATH_ISA names (an error if it cannot run here).
// failed_precondition on a machine without AVX2 unless WARMPATH_ISA=scalar.
Result<Isa> choose_isa();

// kAmx counts as supported from now on (kernels/cpu/amx_emulator.h).
void support_amx_for_test();

}  // namespace warmpath
