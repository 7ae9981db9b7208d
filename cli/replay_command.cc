#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>

#include "cli/command.h"
#include "loadtest/replay/replay.h"
#include "loadtest/trace/shape.h"
#include "loadtest/trace/trace_reader.h"

namespace warmpath {

namespace {

// Exit codes beside 0 and 1 (nothing was measured): figures were printed, but.
constexpr int kInvalid = 3;
constexpr int kTurnsFailed = 4;

std::atomic<bool> g_stop{false};

// The first Ctrl-C ends the run and keeps what it measured, the second ends the program.
void on_interrupt(int) {
  if (g_stop.exchange(true)) _exit(130);
}

struct ReplayFlags {
  ReplayOptions replay;
  std::string trace;
  std::string shape;
  std::string key_file;
  uint32_t sessions = 0;
  double max_think_s = 0;
  double tpot_ms = 50;
  double ttft_s = 0;
  bool any_length = false;
  bool json = false;
  bool quiet = false;
};

Result<Trace> load_trace(const ReplayFlags& flags) {
  if (flags.trace.empty() && flags.shape.empty()) return invalid_argument("say what to replay: --trace or --shape");
  Result<Trace> trace = flags.trace.empty() ? shape_trace(flags.shape, flags.replay.seed) : read_trace(flags.trace);
  if (!trace.ok()) return trace.status();
  if (flags.sessions > 0) *trace = sampled(*trace, flags.sessions);
  if (flags.max_think_s > 0) cap_pauses(*trace, flags.max_think_s);
  return trace;
}

Result<int> run(ReplayFlags& flags) {
  const Result<Trace> trace = load_trace(flags);
  if (!trace.ok()) return trace.status();
  ReplayOptions& options = flags.replay;
  if (!flags.key_file.empty()) {
    std::ifstream file(flags.key_file);
    std::getline(file, options.api_key);
    if (options.api_key.empty()) return not_found("'" + flags.key_file + "' holds no key");
  }
  options.exact_lengths = !flags.any_length;
  options.slo.tpot_s = flags.tpot_ms / 1000;
  options.slo.ttft_s = flags.ttft_s > 0 ? flags.ttft_s : trace->timed ? 2 : 5;
  options.stop = &g_stop;
  if (!flags.quiet) {
    options.on_progress = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  }
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  const Result<ReplayOutcome> outcome = replay(*trace, options);
  if (!outcome.ok()) return outcome.status();
  std::printf("%s%s", (flags.json ? replay_json(*outcome) : replay_table(*outcome)).c_str(), flags.json ? "\n" : "");
  return !outcome->valid ? kInvalid : outcome->figures.failed > 0 ? kTurnsFailed : 0;
}

}  // namespace

void add_replay_command(CLI::App& app, CommandMain& selected) {
  CLI::App* command = app.add_subcommand(
      "replay",
      "Sends a trace to an OpenAI-compatible API as its clients would, and measures what they would get\n"
      "(docs/replay.md). Exit code 3: this machine was too slow for the figures to be believed; 4: turns failed.");
  const auto flags = std::make_shared<ReplayFlags>();
  ReplayOptions& options = flags->replay;
  command->add_option("--url", options.urls, "http://HOST:PORT or https://HOST/v1; several are asked in turn")
      ->required();
  CLI::Option* trace = command
                           ->add_option("--trace", flags->trace,
                                        "Mooncake JSONL, coding-agent sessions, Azure CSV, or JSONL with \"messages\"")
                           ->check(CLI::ExistingFile);
  command
      ->add_option("--shape", flags->shape,
                   "made-up sessions instead: sessions=64,turns=20,base=8000,first=2000,turn=700,output=300,think=10")
      ->excludes(trace);
  command->add_option("--model", options.model, "named in the requests; default: none");
  command->add_option("--api-key-file", flags->key_file, "sent as a bearer token")->check(CLI::ExistingFile);
  command->add_option("--rate-scale", options.rate_scale, "timed traces: how many times as fast as recorded")
      ->capture_default_str()
      ->check(CLI::Range(1e-6, 1e6));
  command->add_option("--jitter", options.jitter_s, "timed traces: seconds each arrival is spread over")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  CLI::Option* rate = command->add_option("--session-rate", options.session_rate, "sessions begun a second, at random")
                          ->capture_default_str()
                          ->check(CLI::Range(1e-6, 1e6));
  command->add_option("--concurrency", options.concurrency, "or: so many sessions at a time")
      ->check(CLI::Range(1, 1'000'000))
      ->excludes(rate);
  command->add_option("--sessions", flags->sessions, "take so many sessions of the trace, evenly spread");
  command->add_option("--max-think", flags->max_think_s, "cut pauses between turns to so many seconds")
      ->check(CLI::PositiveNumber);
  command->add_option("--stop-after", options.stop_after_s, "seconds after which no new turn is sent")
      ->check(CLI::PositiveNumber);
  command->add_option("--timeout", options.timeout_s, "seconds to wait for a server's next bytes")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--salt", options.salt,
                   "first word of every prompt; default: a new one, so that nothing is cached yet")
      ->check([](const std::string& text) {
        const bool plain = !text.empty() && text.size() <= 64 &&
                           text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") ==
                               std::string::npos;
        return plain ? std::string() : std::string("a salt is up to 64 letters, digits and '-'");
      });
  command->add_option("--session-header", options.session_header, "names the session; '' for none")
      ->capture_default_str();
  command->add_option("--replica-header", options.replica_header, "of replies: names who answered")
      ->capture_default_str();
  command->add_flag("--any-length", flags->any_length,
                    "let the model end its answers (do not send min_tokens and ignore_eos)");
  command->add_option("--slo-ttft", flags->ttft_s, "goodput's limit in seconds (2 for timed traces, 5 for sessions)")
      ->check(CLI::PositiveNumber);
  command->add_option("--slo-tpot-ms", flags->tpot_ms, "goodput's limit")->capture_default_str();
  command->add_option("--seed", options.seed, "of arrivals")->capture_default_str();
  command->add_flag("--json", flags->json, "one JSON object instead of the table");
  command->add_flag("--quiet", flags->quiet, "no progress");
  command->callback([&selected, flags] {
    selected = [flags] {
      const Result<int> code = run(*flags);
      if (code.ok()) return *code;
      std::fprintf(stderr, "warmpath replay: %s\n", code.status().message().c_str());
      return 1;
    };
  });
}

}  // namespace warmpath
