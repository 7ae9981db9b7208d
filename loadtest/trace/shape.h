// Sessions that are nobody's, for experiments:
//
//   "sessions=64,turns=20,base=8000,first=2000,turn=700,output=300,think=10"
//
// Each session starts with the shared base and `first` tokens of its own; each turn adds the answer and `turn` tokens;
// pauses are exponential with mean `think`. Keys left out have the values above. Also:
//
//   documents=D,document=N   one of D documents of N tokens stands between a session's base and its own tokens; the
//                            k-th is 1/k as likely as the first
//   agents=A,agent=N         A sub-agents start at once when a session's first turn has ended: the base, N tokens that
//                            only those siblings share, and `first` tokens of their own
//
// Equal shapes and seeds are equal traces. Thread safety: pure function.
#pragma once

#include <string_view>

#include "loadtest/trace/trace.h"

namespace warmpath {

Result<Trace> shape_trace(std::string_view shape, uint64_t seed);

}  // namespace warmpath
