// The grammar of an answer that must call tools, in the format in which the model writes calls and the AnswerParser
// reads them, so that a constrained answer is one that the parser takes apart into valid calls. Reasoning may come
// first where the model reasons. Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "proto/grammar.h"
#include "text/answer/marker.h"
#include "text/value.h"

namespace warmpath {

// Characters of white space that a JSON value inside a call may have at one place: what models write ("key": 1), and no
// more, so that none gets lost in it.
inline constexpr int32_t kCallSpace = 1;
inline constexpr int32_t kMostParallelCalls = 32;

// One or (with `parallel`) several calls of the tools, which are as in Conversation::tools; of those called `only`,
// where that is not empty. The tools' schemas stand in the grammar as they were given, but for an object's type that is
// only implied. REQUIRES markers.format().calls other than kNone, and a tool to call.
Grammar call_grammar(const AnswerMarkers& markers, const Value& tools, const std::vector<std::string>& only,
                     bool parallel);

// `answer` after the reasoning: which the prompt has begun (`in_reasoning`), or which may begin the answer.
Grammar after_reasoning(const AnswerMarkers& markers, bool in_reasoning, Grammar answer);

// A tool's parameters as a JSON schema of an object; a tool without any takes {}.
std::string parameters_schema(const Value& tool);

}  // namespace warmpath
