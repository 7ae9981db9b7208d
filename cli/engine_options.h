// The flags of `warmpath-engine`, and what follows from them. Thread safety: values and pure functions (but for reading
// this machine's memory).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/model_config.h"

namespace CLI {
class App;
}

namespace warmpath {

struct EngineFlags {
  std::string model;
  std::string served_model_name;
  std::string device = "cpu";
  std::string precision = "fast";
  std::string listen;
  std::string token_file;
  bool allow_remote = false;
  int32_t context = 0;  // 0 = the model's
  int64_t kv_blocks = 0;
  std::string kv_bytes;
  int32_t threads = 0;  // 0 = every core this process may use
  int32_t max_running = 32;
  int32_t max_queued = 256;
  int32_t step_tokens = 512;
  double drain_seconds = 30;
  bool exit_with_parent = false;
};

// Registers the flags and their help.
void add_engine_flags(CLI::App& app, EngineFlags& flags);

// How many KV blocks to reserve: as asked; else room for four full contexts, but at most a quarter of the memory that
// is free now and at least one full context. `block_bytes` of one block.
Result<int64_t> choose_kv_blocks(const EngineFlags& flags, int32_t context_tokens, int64_t block_bytes,
                                 int64_t weight_bytes);

// The token in `path`; where there is no such file, it is made with a random one, readable by its owner only.
Result<std::string> read_or_make_token(const std::string& path);

}  // namespace warmpath
