// warmpath-engine: one replica: one model, its KV cache, its scheduler, behind gRPC.
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>

#include "base/log.h"
#include "base/version.h"
#include "cli/arguments.h"
#include "cli/engine_options.h"
#include "engine/cpu_backend.h"
#include "engine/engine.h"
#include "engine/grammar.h"
#include "engine/grpc_server.h"
#include "engine/grpc_server_tokenizer.h"
#include "engine/model_report.h"
#include "model_file/model_store.h"
#include "text/model_text.h"
#include "text/vocabulary.h"

namespace warmpath {
namespace {

constexpr double kCancelSeconds = 1;  // for calls that are still there when the drain is over

// Everything that runs; destroyed in reverse order.
struct Replica {
  Vocabulary vocabulary;
  std::unique_ptr<CpuBackend> backend;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<GrpcServer> server;
};

Result<std::unique_ptr<CpuBackend>> load_backend(const EngineFlags& flags, const GgufFile& file) {
  if (flags.device != "cpu") {
    return unimplemented(
        fmt::format("--device {}: this build computes on the CPU only; use --device cpu", flags.device));
  }
  const Result<ModelShape> config = read_model_config(file);
  if (!config.ok()) return config.status();
  if (flags.context > config->context) {
    return invalid_argument(
        fmt::format("--context {}: the model was made for at most {} tokens; ask for no more than that", flags.context,
                    config->context));
  }
  const Result<Precision> precision = parse_precision(flags.precision);
  if (!precision.ok()) return precision.status();
  CpuBackendOptions options;
  options.precision = *precision;
  options.threads = flags.threads;
  options.context_tokens = flags.context;
  options.max_step_tokens = std::max(flags.step_tokens, flags.max_running);
  options.max_step_sequences = flags.max_running;
  const Result<int64_t> blocks = choose_kv_blocks(flags, flags.context > 0 ? flags.context : config->context,
                                                  config->kv_layout(kv_type_of(options.precision)).block_bytes(),
                                                  packed_weight_bytes(file, options.precision));
  if (!blocks.ok()) return blocks.status();
  options.kv_blocks = *blocks;
  return CpuBackend::create(file, options);
}

ReplicaDescription describe(const EngineFlags& flags, const OpenModel& model, const Replica& replica,
                            const std::string& tokenizer) {
  ReplicaDescription description;
  description.software = fmt::format("warmpath-engine {}", kVersion);
  description.model = flags.served_model_name.empty() ? model.name : flags.served_model_name;
  description.model_path = model.path.string();
  description.synthetic = model.synthetic;
  description.fingerprint = replica.backend->fingerprint();
  description.tokenizer_hash = hash128(tokenizer);
  description.vocabulary = replica.backend->vocabulary();
  description.context_tokens = replica.backend->context_tokens();
  description.device_blocks = replica.backend->kv_blocks();
  description.kv_bytes_per_token = replica.backend->kv_bytes_per_token();
  description.max_running = flags.max_running;
  description.max_queued = flags.max_queued;
  description.end_tokens = replica.vocabulary.end_of_generation;
  description.device = replica.backend->device();
  description.structured_output = GrammarCompiler::available();
  return description;
}

// Loads the model and starts serving; the ready line names what runs and where.
Status start(const EngineFlags& flags, Replica& replica) {
  GrpcServerOptions server_options{flags.listen, "", flags.allow_remote};
  if (!flags.token_file.empty()) {
    Result<std::string> token = read_or_make_token(flags.token_file);
    if (!token.ok()) return token.status();
    server_options.token = std::move(*token);
  }
  Result<OpenModel> model = open_model_with_text(flags.model);
  if (!model.ok()) return model.status();
  Result<Vocabulary> vocabulary = vocabulary_from_gguf(model->file);
  if (!vocabulary.ok()) return vocabulary.status();
  replica.vocabulary = std::move(*vocabulary);
  Result<std::unique_ptr<CpuBackend>> backend = load_backend(flags, model->file);
  if (!backend.ok()) return backend.status();
  replica.backend = std::move(*backend);

  EngineOptions options;
  options.fingerprint = replica.backend->fingerprint();
  options.end_tokens = replica.vocabulary.end_of_generation;
  options.max_running = flags.max_running;
  options.max_queued = flags.max_queued;
  options.step_tokens = flags.step_tokens;
  replica.engine = Engine::create(*replica.backend, replica.vocabulary, std::move(options), SystemClock::instance());

  std::string tokenizer = tokenizer_gguf(model->file);
  const ReplicaDescription description = describe(flags, *model, replica, tokenizer);
  Result<std::unique_ptr<GrpcServer>> server =
      GrpcServer::start(*replica.engine, description, std::move(tokenizer), server_options);
  if (!server.ok()) return server.status();
  replica.server = std::move(*server);
  std::printf("ready: %s on %s (%s, context %d tokens, KV cache %lld tokens in %.0f MiB)%s\n",
              description.model.c_str(), replica.server->address().c_str(), description.device.c_str(),
              description.context_tokens, static_cast<long long>(description.device_blocks * kBlockTokens),
              static_cast<double>(description.device_blocks * kBlockTokens * description.kv_bytes_per_token) / 1048576,
              description.synthetic ? ": random weights, the answers are noise" : "");
  std::fflush(stdout);
  return {};
}

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

// Lets what runs finish; a second signal cuts it short.
void drain(const EngineFlags& flags, Replica& replica) {
  replica.server->drain();
  const sigset_t signals = ending_signals();
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(flags.drain_seconds);
  const timespec poll{0, 20'000'000};
  for (;;) {
    const ReplicaStats stats = replica.engine->stats();
    if (stats.running + stats.queued == 0) break;
    if (std::chrono::steady_clock::now() >= end || sigtimedwait(&signals, nullptr, &poll) > 0) {
      log_warn("drain_cut_short", {{"running", stats.running}, {"queued", stats.queued}});
      break;
    }
  }
  replica.server->shutdown(0.1);
}

int run(const EngineFlags& flags) {
  if (flags.exit_with_parent) {
    const pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) return 0;  // it ended in between
  }
  // Before any thread starts, so that all of them leave these signals to sigwait.
  const sigset_t signals = ending_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  Replica replica;
  const Status status = start(flags, replica);
  if (!status.ok()) {
    std::fprintf(stderr, "warmpath-engine: %s\n", status.message().c_str());
    return 1;
  }
  int received = 0;
  sigwait(&signals, &received);
  log_info("stopping", {{"signal", strsignal(received)}});
  drain(flags, replica);
  return 0;
}

}  // namespace
}  // namespace warmpath

int main(int argc, char** argv) {
  warmpath::EngineFlags flags;
  CLI::App app{
      "warmpath-engine: one replica of a model, with a prefix cache, for a warmpath gateway.\n\n"
      "  warmpath-engine --model smollm2-135m-instruct --listen unix:/tmp/replica-0.sock\n\n"
      "Then name the address under `endpoints` in the gateway's configuration. `warmpath up` does all of this for\n"
      "you on one machine. SIGTERM lets running requests finish, then ends it.",
      "warmpath-engine"};
  app.set_version_flag("--version", std::string("warmpath-engine ") + warmpath::kVersion);
  warmpath::add_engine_flags(app, flags);
  if (const std::optional<int> code = warmpath::parse_arguments(app, argc, argv)) return *code;
  try {
    return warmpath::run(flags);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "warmpath-engine: %s\n", error.what());
    return 1;
  }
}
