#include "kernels/cpu/isa.h"

#include <cstdlib>
#include <string>

#include "kernels/cpu/cpu_kernels.h"

namespace warmpath {
namespace {

constexpr Isa kAll[] = {Isa::kScalar, Isa::kAvx2, Isa::kAvx512};

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

Result<Isa> parse_isa(std::string_view name) {
  std::string names;
  for (Isa isa : kAll) {
    if (name == isa_name(isa)) return isa;
    names += names.empty() ? "" : ", ";
    names += isa_name(isa);
  }
  return invalid_argument("instruction set '" + std::string(name) + "' is none of: " + names);
}

bool isa_supported(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return true;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    case Isa::kAvx512:
      return isa_supported(Isa::kAvx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vnni");
  }
  return false;
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (Isa isa : kAll) {
    if (isa_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

Result<Isa> choose_isa() {
  const char* forced = std::getenv("WARMPATH_ISA");
  if (forced != nullptr && *forced != '\0') {
    Result<Isa> isa = parse_isa(forced);
    if (!isa.ok()) return invalid_argument("WARMPATH_ISA: " + isa.status().message());
    if (!isa_supported(*isa)) {
      return failed_precondition("WARMPATH_ISA=" + std::string(forced) +
                                 ": this machine cannot run it; unset the variable to use the best that it can");
    }
    return isa;
  }
  const Isa best = supported_isas().back();
  if (best == Isa::kScalar) {
    return failed_precondition(
        "the engine needs a CPU with AVX2, FMA and F16C; WARMPATH_ISA=scalar runs without them, very slowly");
  }
  return best;
}

const CpuKernels& kernels_of(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return avx2_kernels();
    case Isa::kAvx512:
      return avx512_kernels();
    case Isa::kScalar:
      break;
  }
  return scalar_kernels();
}

}  // namespace warmpath
