// AmxEmulator: runs the AMX-INT8 instructions on machines without them, for tests of the AMX table.
//
// emulate_amx() catches SIGILL, decodes the instruction that raised it (ldtilecfg, sttilecfg, tilerelease, tilezero,
// tileloadd, tileloaddt1, tilestored, tdpbssd, tdpbsud, tdpbusd, tdpbuud), carries it out on eight tiles that each
// thread keeps, and goes on behind it. What the hardware refuses (tiles without a configuration, shapes that do not
// fit) ends the process with a message, and any other illegal instruction raises SIGILL as ever. From then on
// isa_supported(Isa::kAmx) is true in this process. Source: Intel's Software Developer's Manual, volume 1 chapter 18
// and volume 2; the rest of the table needs AVX-512 VNNI.
//
// A signal an instruction: microseconds where hardware takes nanoseconds. Test code only. Thread safety: call it before
// other threads exist, usually from a global's initializer; tiles are per thread.
#pragma once

namespace warmpath::testing {

// False, and nothing changes, where AVX-512 VNNI is missing or AMX is not.
bool emulate_amx();

}  // namespace warmpath::testing
