// How this process's allocator (glibc's) gets memory from the system. Thread safety: call before threads are started.
#pragma once

namespace warmpath {

// For a server whose threads keep a few kilobytes of each request in caches: by default every thread's heap grows by
// single pages, with a system call each, which was 6 % of what a short request costs. Costs some 4 MB of resident
// memory.
void use_roomy_heaps();

}  // namespace warmpath
