#include "engine/grpc_server.h"

#include <fmt/format.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "base/log.h"
#include "engine/grpc_generate_stream.h"
#include "engine/grpc_kv_event_stream.h"
#include "engine/grpc_server_address.h"
#include "engine/grpc_status.h"
#include "proto/codec.h"
#include "proto/engine.grpc.pb.h"

namespace warmpath {

namespace {

constexpr size_t kTokenizerChunkBytes = 256 * 1024;
constexpr std::string_view kBearer = "Bearer ";

// The time depends on the lengths only.
bool equal_secrets(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < left.size(); ++i) difference |= static_cast<unsigned char>(left[i] ^ right[i]);
  return difference == 0;
}

// A server-streaming call that is refused before it starts.
template <typename Message>
class RefusedStream final : public grpc::ServerWriteReactor<Message> {
 public:
  explicit RefusedStream(const Status& status) { this->Finish(to_grpc(status)); }
  void OnDone() override { delete this; }
};

class RefusedGenerateStream final : public grpc::ServerBidiReactor<v1::GenerateCalls, v1::GenerateAnswers> {
 public:
  explicit RefusedGenerateStream(const Status& status) { Finish(to_grpc(status)); }
  void OnDone() override { delete this; }
};

class TokenizerStream final : public grpc::ServerWriteReactor<v1::TokenizerChunk> {
 public:
  // `bytes` must outlive the stream: they belong to the server.
  explicit TokenizerStream(std::string_view bytes) : rest_(bytes) { write_next(); }

 private:
  void write_next() {
    if (rest_.empty()) return Finish(grpc::Status::OK);
    const std::string_view chunk = rest_.substr(0, kTokenizerChunkBytes);
    rest_.remove_prefix(chunk.size());
    chunk_.set_data(chunk.data(), chunk.size());
    StartWrite(&chunk_);
  }
  void OnWriteDone(bool ok) override {
    ok ? write_next() : Finish({grpc::StatusCode::CANCELLED, "the caller is gone"});
  }
  void OnDone() override { delete this; }

  std::string_view rest_;
  v1::TokenizerChunk chunk_;
};

class EngineService final : public v1::Engine::CallbackService {
 public:
  EngineService(Engine& engine, ReplicaDescription description, std::string tokenizer, std::string token)
      : engine_(engine),
        description_(std::move(description)),
        tokenizer_(std::move(tokenizer)),
        token_(std::move(token)) {}

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context, const v1::DescribeRequest* request,
                                     v1::DescribeReply* reply) override {
    return answer(context, [&]() -> Status {
      WARMPATH_RETURN_IF_ERROR(check_protocol("gateway", request->protocol_major(), request->protocol_minor()));
      encode(description_, *reply);
      return {};
    });
  }

  grpc::ServerWriteReactor<v1::TokenizerChunk>* FetchTokenizer(grpc::CallbackServerContext* context,
                                                               const v1::FetchTokenizerRequest*) override {
    const Status admitted = admit(*context);
    if (!admitted.ok()) return new RefusedStream<v1::TokenizerChunk>(admitted);
    return new TokenizerStream(tokenizer_);
  }

  grpc::ServerBidiReactor<v1::GenerateCalls, v1::GenerateAnswers>* Generate(
      grpc::CallbackServerContext* context) override {
    const Status admitted = admit(*context);
    if (!admitted.ok()) return new RefusedGenerateStream(admitted);
    return GenerateStream::start(engine_);
  }

  grpc::ServerWriteReactor<v1::KvEventBatch>* SubscribeKvEvents(grpc::CallbackServerContext* context,
                                                                const v1::SubscribeKvEventsRequest*) override {
    const Status admitted = admit(*context);
    if (!admitted.ok()) return new RefusedStream<v1::KvEventBatch>(admitted);
    return KvEventStream::start(engine_);
  }

  grpc::ServerUnaryReactor* Stats(grpc::CallbackServerContext* context, const v1::StatsRequest*,
                                  v1::StatsReply* reply) override {
    return answer(context, [&]() -> Status {
      encode(engine_.stats(), *reply);
      return {};
    });
  }

  grpc::ServerUnaryReactor* Hint(grpc::CallbackServerContext* context, const v1::HintRequest* request,
                                 v1::HintReply* reply) override {
    return answer(context, [&]() -> Status {
      HintCommand hint;
      WARMPATH_RETURN_IF_ERROR(decode(*request, hint));
      reply->set_blocks_found(hint.kind == HintCommand::Kind::kPin ? engine_.pin(hint.blocks, hint.ttl_s)
                                                                   : engine_.release(hint.blocks));
      return {};
    });
  }

  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context, const v1::DrainRequest*,
                                  v1::DrainReply*) override {
    return answer(context, [&]() -> Status {
      drain();
      return {};
    });
  }

  void drain() {
    if (!draining_.exchange(true)) log_info("draining", {{"model", description_.model}});
    engine_.drain();
  }
  bool draining() const { return draining_; }

 private:
  template <typename Work>
  grpc::ServerUnaryReactor* answer(grpc::CallbackServerContext* context, Work work) {
    Status status = admit(*context);
    if (status.ok()) status = work();
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(to_grpc(status));
    return reactor;
  }

  Status admit(const grpc::CallbackServerContext& context) const {
    if (token_.empty()) return {};
    const auto found = context.client_metadata().find("authorization");
    if (found != context.client_metadata().end()) {
      const std::string_view value(found->second.data(), found->second.size());
      if (value.starts_with(kBearer) && equal_secrets(value.substr(kBearer.size()), token_)) return {};
    }
    return {StatusCode::kUnauthenticated,
            "this replica wants its token as 'authorization: Bearer TOKEN'; give the gateway the replica's token file"};
  }

  Engine& engine_;
  const ReplicaDescription description_;
  const std::string tokenizer_;
  const std::string token_;
  std::atomic<bool> draining_{false};
};

// Files that appear while it lives belong to the user alone. Process-wide, so only for the moment of binding.
class PrivateFileMode {
 public:
  PrivateFileMode() : before_(umask(0177)) {}
  ~PrivateFileMode() { umask(before_); }
  PrivateFileMode(const PrivateFileMode&) = delete;
  PrivateFileMode& operator=(const PrivateFileMode&) = delete;

 private:
  mode_t before_;
};

class GrpcServerImpl final : public GrpcServer {
 public:
  GrpcServerImpl(Engine& engine, ReplicaDescription description, std::string tokenizer, std::string token)
      : service_(engine, std::move(description), std::move(tokenizer), std::move(token)) {}
  ~GrpcServerImpl() override { GrpcServerImpl::shutdown(0); }

  Status listen(ListenAddress address) {
    const bool is_unix = address.kind == ListenAddress::Kind::kUnix;
    if (is_unix) WARMPATH_RETURN_IF_ERROR(claim_unix_socket(address.unix_path));
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(to_string(address), grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.SetMaxSendMessageSize(kMaxMessageBytes);
    // Two servers on one port would share its connections silently.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // Gateways ping idle connections to notice a machine that vanished (router/grpc_upstream.cc).
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
    {
      const PrivateFileMode mode;
      server_ = builder.BuildAndStart();
    }
    if (server_ == nullptr || (!is_unix && port == 0)) {
      return unavailable(fmt::format("cannot listen on {}: the address is taken or not this machine's; choose another",
                                     to_string(address)));
    }
    if (is_unix) {
      unix_path_ = address.unix_path;
    } else {
      address.port = port;
    }
    address_ = to_string(address);
    return {};
  }

  const std::string& address() const override { return address_; }
  bool draining() const override { return service_.draining(); }
  void drain() override { service_.drain(); }

  void shutdown(double grace_s) override {
    if (server_ == nullptr) return;
    // Engines and event streams end only when they are cancelled, which this does when the grace is over.
    server_->Shutdown(std::chrono::system_clock::now() +
                      std::chrono::milliseconds(static_cast<int64_t>(grace_s * 1e3)));
    server_->Wait();
    server_.reset();
    if (!unix_path_.empty()) unlink(unix_path_.c_str());
  }

 private:
  EngineService service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::string unix_path_;
};

}  // namespace

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(Engine& engine, ReplicaDescription description,
                                                      std::string tokenizer, const GrpcServerOptions& options) {
  Result<ListenAddress> address = parse_listen_address(options.listen);
  if (!address.ok()) return address.status();
  WARMPATH_RETURN_IF_ERROR(check_listen_address(*address, !options.token.empty(), options.allow_remote));
  description.boot_epoch = engine.boot_epoch();
  auto server = std::make_unique<GrpcServerImpl>(engine, std::move(description), std::move(tokenizer), options.token);
  WARMPATH_RETURN_IF_ERROR(server->listen(std::move(*address)));
  return std::unique_ptr<GrpcServer>(std::move(server));
}

}  // namespace warmpath
