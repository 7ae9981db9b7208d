// Isa: the instruction sets that the CPU kernels are written for, chosen at run time. One binary holds them all.
// Thread safety: pure functions; best_isa() reads the environment once.
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
};

// "scalar", "avx2", "avx512".
std::string_view isa_name(Isa isa);
// The names above; an error lists them.
Result<Isa> parse_isa(std::string_view name);
// Does this machine (CPU and kernel) run it?
bool isa_supported(Isa isa);
// All that this machine runs, slowest first.
std::vector<Isa> supported_isas();
// The fastest supported, or the one that the environment variable WARMPATH_ISA names (an error if it cannot run here).
// failed_precondition on a machine without AVX2 unless WARMPATH_ISA=scalar.
Result<Isa> choose_isa();

}  // namespace warmpath
