// SharedBases: how many sessions share a base (system prompt and tools). One session's long document is not a base; a
// harness's prompt, which every session starts with, is.
//
// Distinct sessions are counted by linear counting (Whang et al. 1990) in 1,024 bits per base: within 2 % up to a
// thousand. Bounded: the least recently seen base goes when there are kMaxBases. Thread safety: every method may be
// called from any thread.
#pragma once

#include <bitset>
#include <list>
#include <mutex>
#include <unordered_map>

#include "base/hash128.h"

namespace warmpath {

class SharedBases {
 public:
  static constexpr size_t kMaxBases = 4096;

  struct Share {
    double sessions = 1;  // that share it (about; at least 1)
    bool fresh = false;   // this session was not among them (wrong now and then: counting is by 1,024 bits)
  };
  // Counts `session` among those of `base`.
  Share note(Hash128 base, Hash128 session);

 private:
  static constexpr size_t kBits = 1024;
  struct Entry {
    Hash128 base;
    std::bitset<kBits> sessions;
  };

  std::mutex mutex_;
  std::list<Entry> entries_;  // most recently seen first
  std::unordered_map<Hash128, std::list<Entry>::iterator> by_base_;
};

}  // namespace warmpath
