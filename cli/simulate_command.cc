#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>

#include "cli/command.h"
#include "loadtest/simulate/study.h"
#include "loadtest/simulate/study_report.h"
#include "loadtest/trace/shape.h"
#include "loadtest/trace/trace_reader.h"
#include "router/config.h"

namespace warmpath {

namespace {

struct SimulateOptions {
  Study study;
  std::string trace;
  std::string shape;
  std::string policies = "predicted_seconds,session_sticky,least_requests,round_robin,pooled_cache";
  std::string config;
  std::string kv_blocks = "10%";
  std::string model = "full";
  int block_tokens = 512;
  uint32_t sessions = 0;
  double max_think_s = 0;
  double event_delay_ms = 0;
  double tpot_ms = 50;
  double decode_ms = 12;
  double ttft_s = 0;
  bool no_session_ids = false;
  bool no_events = false;
  bool json = false;
  std::string html;
};

Result<Trace> load_trace(const SimulateOptions& options) {
  Result<Trace> trace =
      options.trace.empty() ? shape_trace(options.shape, options.study.base.seed) : read_trace(options.trace);
  if (!trace.ok()) return trace.status();
  if (trace->distinct_blocks == 0) return invalid_argument("a message log has no blocks to simulate with; replay it");
  if (options.sessions > 0) *trace = sampled(*trace, options.sessions);
  if (options.max_think_s > 0) cap_pauses(*trace, options.max_think_s);
  if (options.block_tokens % trace->block_tokens != 0) {
    return invalid_argument("--block-tokens must be a multiple of the trace's own, " +
                            std::to_string(trace->block_tokens));
  }
  return coarsened(*trace, options.block_tokens / trace->block_tokens);
}

// One arm for each model of a gateway's configuration: its policy, its rules, its endpoints' labels.
Status add_configured_arms(const std::string& path, std::vector<StudyArm>& arms) {
  const ConfigResult<GatewayConfig> config = load_config(gateway_schema(), path);
  if (!config.ok()) return invalid_argument(config.error_text());
  for (const ModelConfig& model : config.config->models) {
    StudyArm arm{"config: " + model.name, model.policy, false, model.policy_rules, {}};
    for (const EndpointConfig& endpoint : model.endpoints) arm.labels.push_back(endpoint.labels);
    arms.push_back(std::move(arm));
  }
  return {};
}

Status run(SimulateOptions& options) {
  const Result<Trace> trace = load_trace(options);
  if (!trace.ok()) return trace.status();
  SimulationOptions& base = options.study.base;
  const Result<int64_t> kv_blocks = parse_kv_blocks(options.kv_blocks, *trace);
  if (!kv_blocks.ok()) return kv_blocks.status();
  base.profile.kv_blocks = *kv_blocks;
  if (options.model == "reduced") {
    base.profile.running_kv = false;
    base.profile.keep_generated = false;
    base.profile.max_running = 1'000'000;
  } else if (options.model == "mock") {
    base.profile.interference = false;
    base.profile.keep_generated = false;  // replayed prompts do not hold the answers
    base.profile.sequence_s = 0;
    base.profile.first_token_s = 0;
    base.profile.context_tokens = 1e15;
  }
  base.profile.step_s = options.decode_ms / 1000;
  base.session_ids = !options.no_session_ids;
  base.events = !options.no_events;
  base.event_delay_s = options.event_delay_ms / 1000;
  base.slo.tpot_s = options.tpot_ms / 1000;
  base.slo.ttft_s = options.ttft_s > 0 ? options.ttft_s : trace->timed ? 2 : 5;
  Result<std::vector<StudyArm>> arms = parse_arms(options.policies);
  if (!arms.ok()) return arms.status();
  options.study.arms = std::move(*arms);
  if (!options.config.empty()) WARMPATH_RETURN_IF_ERROR(add_configured_arms(options.config, options.study.arms));

  const StudySettings settings = describe_study(*trace, options.study);
  if (!options.json) {
    std::printf("Simulated: no figure below was measured on hardware.\n");
    for (const auto& [name, value] : settings) std::printf("  %-26s %s\n", name.c_str(), value.c_str());
    std::fflush(stdout);
  }
  const std::vector<StudyRow> rows = run_study(*trace, options.study, [](int done, int all) {
    std::fprintf(stderr, "\r%d of %d runs%s", done, all, done == all ? "\n" : "");
  });
  if (!options.html.empty()) {
    std::ofstream file(options.html, std::ios::trunc);
    file << study_html(settings, rows);
    if (!file.flush()) return unavailable("cannot write '" + options.html + "'");
  }
  if (options.json) {
    std::printf("%s\n", study_json(settings, rows).c_str());
  } else {
    std::printf("\n%s", study_table(rows).c_str());
  }
  return {};
}

}  // namespace

void add_simulate_command(CLI::App& app, CommandMain& selected) {
  CLI::App* command = app.add_subcommand(
      "simulate",
      "Compares routing policies on a trace with simulated replicas: the gateway's own policies, index and\n"
      "rate model, and a model of engines (docs/simulate.md).");
  const auto options = std::make_shared<SimulateOptions>();
  SimulationOptions& base = options->study.base;
  ReplicaProfile& profile = base.profile;
  CLI::Option* trace =
      command->add_option("--trace", options->trace, "Mooncake JSONL, coding-agent sessions (JSONL) or Azure CSV")
          ->check(CLI::ExistingFile);
  CLI::Option* shape = command->add_option(
      "--shape", options->shape,
      "made-up sessions instead: sessions=64,turns=20,base=8000,first=2000,turn=700,output=300,think=10; also\n"
      "documents=4,document=20000 (each session reads one) and agents=8,agent=20000 (sub-agents that start at once)");
  trace->excludes(shape);
  command
      ->add_option("--policy", options->policies,
                   "policies, separated by commas: names, all, pooled_cache (a bound: one cache for the whole\n"
                   "fleet), or {name: predicted_seconds, price: 4}; with \"+admission\" behind it, sessions\n"
                   "wait while the running ones fill the fleet's KV")
      ->capture_default_str();
  command
      ->add_option("--config", options->config,
                   "a gateway's configuration: the policy, rules and labels of each of its models as one more row.\n"
                   "Rules by tenant or header never match here; those by prompt length do")
      ->check(CLI::ExistingFile);
  command->add_option("--replicas", base.replicas, "")->capture_default_str()->check(CLI::Range(1, 4096));
  command->add_option("--kv-blocks", options->kv_blocks, "of each replica: a number, or a share of the trace's: 10%")
      ->capture_default_str();
  command->add_option("--host-blocks", profile.host_blocks, "of each replica's host tier")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--block-tokens", options->block_tokens, "tokens of a block")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--rho", base.rho,
                   "load: work / capacity; without any cache for timed traces, with an ideal one for sessions")
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--rate-scale", base.rate_scale, "without --rho: how many times as fast as recorded")
      ->capture_default_str()
      ->check(CLI::Range(1e-6, 1e6));
  command->add_option("--session-rate", base.session_rate, "without --rho: sessions begun a second")
      ->capture_default_str()
      ->check(CLI::Range(1e-6, 1e6));
  command->add_option("--jitter", base.jitter_s, "seconds each arrival is spread over (Mooncake's are rounded to 3)")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--sessions", options->sessions, "take so many sessions of the trace, evenly spread");
  command->add_option("--max-think", options->max_think_s, "cut pauses between turns to so many seconds")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--model", options->model,
                   "full: running requests hold KV, answers are cached; reduced: neither, as in published studies;\n"
                   "mock: what `warmpath mock-replica` does, to compare with a live run")
      ->capture_default_str()
      ->check(CLI::IsMember({"full", "reduced", "mock"}));
  command->add_option("--decode-ms", options->decode_ms, "a decode step, before what each sequence adds")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--prefill-tps", profile.prefill_tokens_per_s, "uncached tokens a second at the prompt's start")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--prefill-doubles-at", profile.context_tokens, "context at which a token takes twice as long")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--max-running", profile.max_running, "slots of a replica")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--pace", base.paces, "per replica: 4 takes four times as long; the rest have 1")
      ->delimiter(',')
      ->check(CLI::Range(0.01, 100.0));
  command->add_option("--gateways", base.gateways, "")->capture_default_str()->check(CLI::Range(1, 64));
  command->add_option("--event-delay-ms", options->event_delay_ms, "of KV events")->check(CLI::NonNegativeNumber);
  command->add_option("--event-loss", base.event_loss, "share of event messages lost")->check(CLI::Range(0.0, 1.0));
  command
      ->add_option("--placement-s", base.placement_s,
                   "how long a routed prompt counts as held where it was sent, unless events confirm it")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--no-events", options->no_events, "replicas announce nothing");
  command->add_flag("--no-session-ids", options->no_session_ids, "clients do not name their sessions");
  command->add_option("--restart-every", base.restart_every_s, "seconds after which the next replica restarts")
      ->check(CLI::PositiveNumber);
  command->add_option("--slo-ttft", options->ttft_s, "goodput's limit in seconds (2 for timed traces, 5 for sessions)")
      ->check(CLI::PositiveNumber);
  command->add_option("--slo-tpot-ms", options->tpot_ms, "goodput's limit")->capture_default_str();
  command->add_option("--seed", base.seed, "")->capture_default_str();
  command->add_option("--seeds", options->study.seeds, "runs of each policy; figures get a 95 % interval")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->add_option("--threads", options->study.threads, "runs at the same time (default: cores)");
  command->add_flag("--json", options->json, "one JSON object instead of the table");
  command->add_option("--html", options->html, "write a page with the table too");
  command->callback([&selected, options] {
    selected = [options] {
      const Status status = run(*options);
      if (status.ok()) return 0;
      std::fprintf(stderr, "warmpath simulate: %s\n", status.message().c_str());
      return 1;
    };
  });
}

}  // namespace warmpath
