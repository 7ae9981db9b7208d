// A fleet of mock replicas in one process: `warmpath mock-replica`. What a mock is and is not: loadtest/mock_engine.h.
// Thread safety: run_mock_replicas() blocks SIGINT and SIGTERM for the process's threads and waits for them; call it
// from main, before other threads start.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace warmpath {

struct MockReplicaOptions {
  int replicas = 1;
  // Where replica i serves gRPC: `{}` stands for i ("unix:/tmp/mock-{}.sock"); a TCP port counts up (0 = any). Empty =
  // no gRPC face.
  std::string grpc;
  std::string token_file;  // for TCP: the bearer token
  // HOST:PORT of the HTTP face; the port counts up (0 = any). Empty = no HTTP face.
  std::string http;

  // Whose tokenizer and chat template are served: NAME, PATH.gguf or synthetic:SHAPE.
  std::string model = "synthetic:llama-1x64";
  std::string served_model_name;  // default: the model's own
  int32_t context_tokens = 32'768;
  int64_t kv_blocks = 0;  // of 16 tokens each; 0 = enough for four full contexts
  int32_t max_running = 64;
  int32_t max_queued = 4'096;
  double prefill_tokens_per_s = 0;  // 0 = at once
  double decode_ms = 0;             // per token; 0 = the whole answer at once
  std::string script;               // see loadtest/mock_script.h
  // Written when all listen: a line "HTTP_PORT GRPC_ADDRESS" per replica (0 and - where there is no such face).
  std::string ready_file;
};

// Serves until SIGINT or SIGTERM. The error says what kept it from starting.
Status run_mock_replicas(const MockReplicaOptions& options);

}  // namespace warmpath
