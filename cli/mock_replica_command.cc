#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "loadtest/mock_replica.h"

namespace warmpath {

void add_mock_replica_command(CLI::App& app, CommandMain& selected) {
  CLI::App* command = app.add_subcommand(
      "mock-replica",
      "Replicas that compute nothing, for tests and benches: scripted answers, a timing model, real\n"
      "bookkeeping of KV blocks and real KV events, over gRPC and HTTP. They call themselves synthetic.");
  const auto options = std::make_shared<MockReplicaOptions>();
  command->add_option("--replicas", options->replicas, "how many, in this one process")->check(CLI::Range(1, 1000));
  command->add_option("--grpc", options->grpc,
                      "where they serve gRPC: unix:/tmp/mock-{}.sock ({} = the replica's number) or 127.0.0.1:PORT\n"
                      "(counting up; needs --token-file)");
  command->add_option("--http", options->http, "where they serve HTTP: 127.0.0.1:PORT (counting up; 0 = any)");
  command->add_option("--token-file", options->token_file, "bearer token of the gRPC face")->check(CLI::ExistingFile);
  command
      ->add_option("--model", options->model, "whose tokenizer they serve: NAME, PATH.gguf, FOLDER or synthetic:SHAPE")
      ->capture_default_str();
  command->add_option("--served-model-name", options->served_model_name, "default: the model's own");
  command->add_option("--context", options->context_tokens, "tokens of one sequence")
      ->capture_default_str()
      ->check(CLI::Range(16, 16'777'216));
  command->add_option("--kv-blocks", options->kv_blocks, "KV blocks of 16 tokens each (default: four contexts)")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000'000}));
  command->add_option("--max-running", options->max_running, "requests answered at the same time")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  command->add_option("--max-queued", options->max_queued, "requests that may wait")
      ->capture_default_str()
      ->check(CLI::Range(0, 10'000'000));
  command->add_option("--prefill-tps", options->prefill_tokens_per_s, "uncached prompt tokens a second; 0 = at once")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--decode-ms", options->decode_ms, "between two tokens; 0 = the whole answer at once")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--script", options->script, "answers and faults, one JSON object a line (docs/protocol.md)")
      ->check(CLI::ExistingFile);
  command->add_option("--ready-file", options->ready_file, "written when all listen: HTTP port and gRPC address");
  command->callback([&selected, options] {
    selected = [options] {
      const Status status = run_mock_replicas(*options);
      if (status.ok()) return 0;
      std::fprintf(stderr, "warmpath mock-replica: %s\n", status.message().c_str());
      return 1;
    };
  });
}

}  // namespace warmpath
