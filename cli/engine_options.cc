#include "cli/engine_options.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/log.h"
#include "base/token.h"
#include "cli/byte_size.h"
#include "engine/model_report.h"

namespace warmpath {

namespace {

constexpr int64_t kDefaultContexts = 4;
constexpr int64_t kDefaultShareOfFreeMemory = 4;  // one over

}  // namespace

void add_engine_flags(CLI::App& app, EngineFlags& flags) {
  app.add_option("--model", flags.model,
                 "NAME (see `warmpath models list`), PATH.gguf, a Hugging Face FOLDER, or\n"
                 "synthetic:llama-LAYERSxWIDTH for random weights")
      ->required();
  app.add_option("--listen", flags.listen,
                 "unix:/path/to/socket (only your own processes can open it), or 127.0.0.1:PORT with --token-file")
      ->required();
  app.add_option("--served-model-name", flags.served_model_name, "the name clients use (default: the model's own)");
  app.add_option("--device", flags.device, "where it computes: cpu")->capture_default_str();
  app.add_option("--precision", flags.precision,
                 "fast: quantized weights and activations, KV in half floats; float: everything in 32 bits")
      ->capture_default_str()
      ->check(CLI::IsMember({"fast", "float"}));
  app.add_option("--token-file", flags.token_file,
                 "bearer token that every caller must send; made with a random token when there is no such file");
  app.add_flag("--allow-remote", flags.allow_remote,
               "listen beyond this machine, in clear text: only on a network that you trust");
  app.add_option("--context", flags.context, "tokens of one request, prompt and answer (default: the model's)")
      ->check(CLI::Range(kBlockTokens, 16'777'216));
  const auto kv_blocks = app.add_option("--kv-blocks", flags.kv_blocks, "KV cache, in blocks of 16 tokens")
                             ->check(CLI::Range(int64_t{1}, int64_t{INT32_MAX}));
  app.add_option("--kv-bytes", flags.kv_bytes,
                 "KV cache in bytes, such as 512MiB or 1.5GiB (default: four full contexts, or a quarter of the free\n"
                 "memory if that is less)")
      ->excludes(kv_blocks);
  app.add_option("--threads", flags.threads, "computing threads (default: every core this process may use)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--max-running", flags.max_running, "sequences that are computed together")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  app.add_option("--max-queued", flags.max_queued, "requests that may wait; more are refused")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--step-tokens", flags.step_tokens,
                 "tokens computed in one step: bounds how long a running answer waits for a newcomer's prompt")
      ->capture_default_str()
      ->check(CLI::Range(1, 65'536));
  app.add_option("--drain-seconds", flags.drain_seconds, "after SIGTERM, running requests get this long to finish")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 86'400.0));
  app.add_flag("--exit-with-parent", flags.exit_with_parent, "end when the process that started this one ends");
}

Result<int64_t> choose_kv_blocks(const EngineFlags& flags, int32_t context_tokens, int64_t block_bytes,
                                 int64_t weight_bytes) {
  if (flags.kv_blocks > 0) return flags.kv_blocks;
  if (!flags.kv_bytes.empty()) {
    const Result<int64_t> bytes = parse_bytes(flags.kv_bytes);
    if (!bytes.ok()) return invalid_argument("--kv-bytes: " + bytes.status().message());
    if (*bytes < block_bytes) {
      return invalid_argument(
          fmt::format("--kv-bytes {} is less than one block, which takes {} bytes", flags.kv_bytes, block_bytes));
    }
    return std::min<int64_t>(*bytes / block_bytes, INT32_MAX);
  }
  const int64_t per_context = (int64_t{context_tokens} + kBlockTokens - 1) / kBlockTokens;
  const int64_t available = available_memory_bytes();
  const int64_t affordable = std::max<int64_t>(0, available - weight_bytes) / kDefaultShareOfFreeMemory / block_bytes;
  // A whole context, unless memory does not hold it beside the weights.
  const int64_t fitting = context_that_fits(available, weight_bytes, block_bytes);
  const int64_t least = std::clamp<int64_t>(fitting, 1, per_context);
  if (least < per_context) {
    log_warn("context_does_not_fit", {{"context_tokens", context_tokens},
                                      {"tokens_that_fit", least * kBlockTokens},
                                      {"available_bytes", available},
                                      {"weight_bytes", weight_bytes},
                                      {"remedy", "--context TOKENS, --kv-bytes BYTES, or a machine with more memory"}});
  }
  return std::clamp(affordable, least, per_context * kDefaultContexts);
}

Result<std::string> read_or_make_token(const std::string& path) {
  std::ifstream in(path);
  std::string token;
  if (in) {
    if (in >> token) return token;
    return invalid_argument(fmt::format("the token file {} is empty; write a token into it, or remove it", path));
  }
  unsigned char random[16];
  if (getrandom(random, sizeof random, 0) != sizeof random) return internal_error("this machine gives no randomness");
  for (const unsigned char byte : random) token += fmt::format("{:02x}", byte);
  const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  const std::string line = token + "\n";
  const bool written = fd >= 0 && write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!written) return failed_precondition(fmt::format("the token file {} cannot be made: {}", path, strerror(error)));
  return token;
}

}  // namespace warmpath
