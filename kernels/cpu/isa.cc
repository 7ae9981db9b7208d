#include "kernels/cpu/isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/isa_trial.h"

namespace warmpath {
namespace {

constexpr Isa kAll[] = {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx};

std::atomic<bool> amx_for_test = false;

// AMX-TILE and AMX-INT8 (leaf 7), eight tiles of 16 rows of 64 bytes (leaf 0x1d, palette 1) with as large a product
// (leaf 0x1e), and a system that keeps them (XCR0).
bool cpu_has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_max(0, nullptr) < 0x1e) return false;
  constexpr unsigned kOsxsave = 1u << 27;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsxsave) == 0) return false;
  constexpr unsigned kTile = 1u << 24;
  constexpr unsigned kInt8 = 1u << 25;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kTile) == 0 || (d & kInt8) == 0) return false;
  __cpuid_count(0x1d, 1, a, b, c, d);
  if (b >> 16 < 8 || (b & 0xffff) < 64 || (c & 0xffff) < 16) return false;
  __cpuid_count(0x1e, 0, a, b, c, d);
  if ((b & 0xff) < 16 || (b >> 8 & 0xffff) < 64) return false;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kTileState = 3u << 17;
  return (low & kTileState) == kTileState;
}

// Linux grants a process the large state of tiles on request only (Documentation/arch/x86/xstate.rst).
bool request_tile_data() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAmx:
      return "amx";
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
    case Isa::kAmx: {
      if (!isa_supported(Isa::kAvx512)) return false;
      static const bool native = cpu_has_amx() && request_tile_data();
      return native || amx_for_test;
    }
  }
  return false;
}

void support_amx_for_test() { amx_for_test = true; }

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
  if (best == Isa::kAmx) return amx_trial().amx_wins() ? Isa::kAmx : Isa::kAvx512;
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
    case Isa::kAmx:
      return amx_kernels();
    case Isa::kScalar:
      break;
  }
  return scalar_kernels();
}

}  // namespace warmpath
