#include "loadtest/mock_replica.h"

#include <fmt/format.h>
#include <signal.h>
#include <stdio.h>

#include <charconv>
#include <fstream>

#include "base/block_chain.h"
#include "base/log.h"
#include "base/version.h"
#include "engine/grpc_server.h"
#include "engine/grpc_server_address.h"
#include "engine/grpc_server_tokenizer.h"
#include "loadtest/mock_engine.h"
#include "loadtest/mock_http.h"
#include "model_file/model_store.h"
#include "text/model_text.h"

namespace warmpath {

namespace {

constexpr int kContextsInKv = 4;

struct Model {
  std::string name;
  std::string path;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::string tokenizer_file;
};

Result<Model> load_model(const MockReplicaOptions& options) {
  Result<OpenModel> open = open_model_with_text(options.model);
  if (!open.ok()) return open.status();
  Result<Vocabulary> vocabulary = vocabulary_from_gguf(open->file);
  if (!vocabulary.ok()) return vocabulary.status();
  Result<std::shared_ptr<const Tokenizer>> tokenizer = Tokenizer::create(std::move(*vocabulary));
  if (!tokenizer.ok()) return tokenizer.status();
  return Model{options.served_model_name.empty() ? open->name : options.served_model_name, open->path.string(),
               std::move(*tokenizer), tokenizer_gguf(open->file)};
}

// The address of replica `index`.
Result<std::string> grpc_address(const std::string& pattern, int index, int replicas) {
  std::string text = pattern;
  if (const size_t hole = text.find("{}"); hole != std::string::npos) {
    return text.replace(hole, 2, std::to_string(index));
  }
  Result<ListenAddress> address = parse_listen_address(text);
  if (!address.ok()) return address.status();
  if (address->kind == ListenAddress::Kind::kUnix && replicas > 1) {
    return invalid_argument(
        fmt::format("{} replicas need {} sockets; put {{}} into the path: {}-{{}}", replicas, replicas, text));
  }
  if (address->kind != ListenAddress::Kind::kUnix && address->port != 0) address->port += index;
  return to_string(*address);
}

Status read_token(const std::string& path, std::string& token) {
  if (path.empty()) return {};
  std::ifstream in(path);
  if (!(in >> token)) return not_found(fmt::format("the token file {} cannot be read or is empty", path));
  return {};
}

struct Replicas {
  // Destroyed in reverse: the faces go first, then what they call.
  std::vector<std::unique_ptr<MockEngine>> engines;
  MockTimer timer;
  std::vector<std::unique_ptr<GrpcServer>> servers;
  std::unique_ptr<MockHttp> http;

  ~Replicas() {
    http.reset();
    for (const auto& server : servers) server->shutdown(0);
    timer.stop();
  }
};

Status start_engines(const MockReplicaOptions& options, const Model& model, Replicas& replicas) {
  MockEngineOptions mock;
  mock.tokenizer = model.tokenizer;
  mock.fingerprint = hash128(fmt::format("mock-replica {}", to_hex(hash128(model.tokenizer_file))));
  mock.context_tokens = options.context_tokens;
  mock.kv_blocks = options.kv_blocks > 0
                       ? options.kv_blocks
                       : (int64_t{options.context_tokens} + kBlockTokens - 1) / kBlockTokens * kContextsInKv;
  mock.max_running = options.max_running;
  mock.max_queued = options.max_queued;
  mock.prefill_tokens_per_s = options.prefill_tokens_per_s;
  mock.decode_step_s = options.decode_ms * 1e-3;
  if (!options.script.empty()) {
    auto script = MockScript::read(options.script);
    if (!script.ok()) return script.status();
    mock.script = std::move(*script);
  }
  for (int index = 0; index < options.replicas; ++index) {
    replicas.engines.push_back(std::make_unique<MockEngine>(mock, replicas.timer));
  }
  return {};
}

Status start_grpc(const MockReplicaOptions& options, const Model& model, Replicas& replicas) {
  if (options.grpc.empty()) return {};
  GrpcServerOptions server_options;
  WARMPATH_RETURN_IF_ERROR(read_token(options.token_file, server_options.token));
  for (int index = 0; index < options.replicas; ++index) {
    MockEngine& engine = *replicas.engines[static_cast<size_t>(index)];
    ReplicaDescription description;
    description.software = fmt::format("warmpath mock-replica {}", kVersion);
    description.model = model.name;
    description.model_path = model.path;
    description.synthetic = true;
    description.fingerprint = engine.options().fingerprint;
    description.tokenizer_hash = hash128(model.tokenizer_file);
    description.vocabulary = model.tokenizer->size();
    description.context_tokens = options.context_tokens;
    description.device_blocks = engine.options().kv_blocks;
    description.max_running = options.max_running;
    description.max_queued = options.max_queued;
    description.end_tokens = model.tokenizer->vocabulary().end_of_generation;
    description.device = "none (mock)";
    Result<std::string> address = grpc_address(options.grpc, index, options.replicas);
    if (!address.ok()) return address.status();
    server_options.listen = std::move(*address);
    auto server = GrpcServer::start(engine, std::move(description), model.tokenizer_file, server_options);
    if (!server.ok()) return server.status();
    replicas.servers.push_back(std::move(*server));
  }
  return {};
}

Status start_http(const MockReplicaOptions& options, const Model& model, Replicas& replicas) {
  if (options.http.empty()) return {};
  Result<ListenAddress> address = parse_listen_address(options.http);
  if (!address.ok() || address->kind != ListenAddress::Kind::kLoopback) {
    return invalid_argument(
        fmt::format("the HTTP face listens on loopback only: 127.0.0.1:PORT, not {}", options.http));
  }
  std::vector<MockHttpFace> faces;
  for (const auto& engine : replicas.engines) {
    const int port = address->port == 0 ? 0 : address->port + static_cast<int>(faces.size());
    faces.push_back({engine.get(), model.name, static_cast<uint16_t>(port)});
  }
  auto http = MockHttp::start(address->host, std::move(faces));
  if (!http.ok()) return http.status();
  replicas.http = std::move(*http);
  return {};
}

// Readers wait for the file, so it must be whole when it appears.
Status write_ready_file(const std::string& path, const Replicas& replicas) {
  if (path.empty()) return {};
  const std::string draft = path + ".part";
  {
    std::ofstream out(draft);
    for (size_t index = 0; index < replicas.engines.size(); ++index) {
      out << (replicas.http ? replicas.http->ports()[index] : 0) << ' '
          << (replicas.servers.empty() ? "-" : replicas.servers[index]->address()) << '\n';
    }
    if (!out.flush()) return unavailable(fmt::format("the ready file {} cannot be written", path));
  }
  if (rename(draft.c_str(), path.c_str()) != 0) {
    return unavailable(fmt::format("the ready file {} cannot be written", path));
  }
  return {};
}

}  // namespace

Status run_mock_replicas(const MockReplicaOptions& options) {
  if (options.grpc.empty() && options.http.empty()) {
    return invalid_argument("nothing to serve: give --grpc unix:/path/to/socket, --http 127.0.0.1:PORT, or both");
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  Result<Model> model = load_model(options);
  if (!model.ok()) return model.status();
  Replicas replicas;
  WARMPATH_RETURN_IF_ERROR(start_engines(options, *model, replicas));
  WARMPATH_RETURN_IF_ERROR(start_grpc(options, *model, replicas));
  WARMPATH_RETURN_IF_ERROR(start_http(options, *model, replicas));
  WARMPATH_RETURN_IF_ERROR(write_ready_file(options.ready_file, replicas));
  log_info("mock_replicas_ready", {{"replicas", options.replicas},
                                   {"model", model->name},
                                   {"grpc", replicas.servers.empty() ? "-" : replicas.servers.front()->address()},
                                   {"http_port", replicas.http ? replicas.http->ports().front() : 0}});
  int signal = 0;
  sigwait(&signals, &signal);
  return {};
}

}  // namespace warmpath
