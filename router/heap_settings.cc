#include "router/heap_settings.h"

#include <malloc.h>

namespace warmpath {

namespace {

// A thread's heap begins with so much address space that can be used without asking; untouched pages cost nothing. It
// is also what stays at a heap's end when the rest goes back to the system.
constexpr int kTopPadBytes = 16 << 20;
// Larger blocks are the system's own, and go back to it at once. Setting the first stops glibc from finding this by
// itself; bodies and prompts of 100,000 tokens should stay below.
constexpr int kOwnMappingBytes = 2 << 20;

}  // namespace

void use_roomy_heaps() {
  mallopt(M_TOP_PAD, kTopPadBytes);
  mallopt(M_MMAP_THRESHOLD, kOwnMappingBytes);
}

}  // namespace warmpath
