// Reading traces. The format is told by the file's first line:
//
//   Mooncake             {"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": [id of 512 tokens, ...]}
//   coding-agent         {"id", "block_size", "tool_tokens", "system_tokens", "req": [[type, depth, t, think_s, api_s,
//   sessions               ttft_s, input, output, [[first id, count], ...]], ... and sub-agents as {"req": [...]}]}
//   Azure                TIMESTAMP,ContextTokens,GeneratedTokens  (no prefixes: every prompt is new)
//   message log          {"messages": [...], "timestamp": s, "session": "name", "max_tokens": n}; all but messages
//   optional.
//                        With timestamps it is timed; else the lines of a session follow each other. For replays only.
//
// Mooncake: a trace's ids are shared by all its requests; sessions and the base are derived. Coding-agent sessions: ids
// belong to their session; sessions with equal tool_tokens are taken to share the tools' blocks.
//
// Files are read whole. Errors name the file and the line. Thread safety: pure functions, apart from reading files.
#pragma once

#include <string>
#include <string_view>

#include "loadtest/trace/trace.h"

namespace warmpath {

Result<Trace> read_trace(const std::string& path);
// `name` stands for the file in errors.
Result<Trace> parse_trace(std::string_view text, const std::string& name);

}  // namespace warmpath
