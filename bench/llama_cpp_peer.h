// LlamaCppPeer: llama.cpp in a child process (bench/llama_cpp_bench.py under a Python that has llama-cpp-python), which
// measures one cell whenever asked, so that its rounds interleave with ours. Thread safety: one caller at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace warmpath {

class LlamaCppPeer {
 public:
  // Starts it and waits until the model is loaded.
  static Result<std::unique_ptr<LlamaCppPeer>> start(const std::string& python, const std::string& script,
                                                     const std::string& model);
  ~LlamaCppPeer();

  struct Seconds {
    double wall = 0;
    double cpu = 0;
  };
  // One cell; `kind` is prefill, decode or batch (see the script).
  Result<Seconds> measure(std::string_view kind, int32_t tokens, int32_t steps, int32_t threads, bool flash_attention);

 private:
  LlamaCppPeer(pid_t process, std::FILE* requests, std::FILE* answers)
      : process_(process), requests_(requests), answers_(answers) {}

  const pid_t process_;
  std::FILE* const requests_;
  std::FILE* const answers_;
};

}  // namespace warmpath
