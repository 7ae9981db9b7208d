#include "router/grpc_upstream.h"

#include <fmt/format.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <mutex>
#include <utility>

#include "proto/codec.h"
#include "router/grpc_calls.h"
#include "router/grpc_request_stream.h"

namespace warmpath {

namespace {

// A tokenizer's tables are a few megabytes; more than this is not one.
constexpr size_t kMaxTokenizerBytes = 256 * 1024 * 1024;

struct KvEventSink {
  std::shared_ptr<KvEventListener> listener;

  Result<bool> take(const v1::KvEventBatch& message) {
    KvEventBatch batch;
    WARMPATH_RETURN_IF_ERROR(decode(message, batch));
    listener->on_batch(std::move(batch));
    return true;
  }
  void end(Status status) {
    if (status.ok()) status = unavailable("the replica closed the event stream");
    std::exchange(listener, nullptr)->on_closed(std::move(status));
  }
};

struct TokenizerSink {
  std::function<void(Result<std::string>)> done;
  std::string bytes;

  Result<bool> take(const v1::TokenizerChunk& chunk) {
    if (bytes.size() + chunk.data().size() > kMaxTokenizerBytes) {
      return invalid_argument(fmt::format("the tokenizer has more than {} bytes", kMaxTokenizerBytes));
    }
    bytes += chunk.data();
    return true;
  }
  void end(const Status& status) { status.ok() ? done(std::move(bytes)) : done(status); }
};

std::shared_ptr<grpc::Channel> make_channel(const std::string& address, const GrpcUpstreamOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // The router decides what is tried again, and where.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // The least backoff is also how long a connection attempt may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(options.connect_timeout_s * 1e3));
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  // A machine that vanished without a word is noticed after 15 s; a process that died, at once.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

class GrpcUpstream final : public Upstream {
 public:
  GrpcUpstream(std::string address, const GrpcUpstreamOptions& options) {
    auto peer = std::make_shared<GrpcPeer>();
    const std::shared_ptr<grpc::Channel> channel = make_channel(address, options);
    peer->stub = v1::Engine::NewStub(channel);
    peer->generic_stub = std::make_unique<grpc::GenericStub>(channel);
    peer->address = std::move(address);
    if (!options.token.empty()) peer->authorization = "Bearer " + options.token;
    peer->queue = &GrpcClientLoop::instance().next_queue();
    peer_ = std::move(peer);
  }

  ~GrpcUpstream() override {
    if (requests_) requests_->close();
  }

  const std::string& address() const override { return peer_->address; }

  void describe(double timeout_s, std::function<void(Result<ReplicaDescription>)> done) override {
    v1::DescribeRequest request;
    request.set_protocol_major(kProtocolMajor);
    request.set_protocol_minor(kProtocolMinor);
    auto call = unary<v1::DescribeReply, ReplicaDescription>(timeout_s, std::move(done));
    auto reader = peer_->stub->PrepareAsyncDescribe(&call->context(), request, peer_->queue);
    UnaryCall<v1::DescribeReply>::start(std::move(call), std::move(reader));
  }

  void stats(double timeout_s, std::function<void(Result<ReplicaStats>)> done) override {
    auto call = unary<v1::StatsReply, ReplicaStats>(timeout_s, std::move(done));
    auto reader = peer_->stub->PrepareAsyncStats(&call->context(), {}, peer_->queue);
    UnaryCall<v1::StatsReply>::start(std::move(call), std::move(reader));
  }

  void fetch_tokenizer(double timeout_s, std::function<void(Result<std::string>)> done) override {
    auto call =
        std::make_shared<StreamCall<v1::TokenizerChunk, TokenizerSink>>(peer_, TokenizerSink{std::move(done), {}});
    peer_->prepare(call->context(), timeout_s);
    call->start(peer_->stub->PrepareAsyncFetchTokenizer(&call->context(), {}, peer_->queue));
  }

  std::shared_ptr<UpstreamCall> generate(const GenerateRequest& request,
                                         std::shared_ptr<GenerateListener> listener) override {
    std::shared_ptr<GrpcRequestStream> stream = requests(nullptr);
    for (;;) {
      if (auto call = stream->start(request, listener)) return call;
      stream = requests(stream);
    }
  }

  std::shared_ptr<UpstreamCall> subscribe(std::shared_ptr<KvEventListener> listener) override {
    auto call = std::make_shared<StreamCall<v1::KvEventBatch, KvEventSink>>(peer_, KvEventSink{std::move(listener)});
    peer_->prepare(call->context());
    call->start(peer_->stub->PrepareAsyncSubscribeKvEvents(&call->context(), {}, peer_->queue));
    return call;
  }

 private:
  template <typename Reply, typename Value>
  std::unique_ptr<UnaryCall<Reply>> unary(double timeout_s, std::function<void(Result<Value>)> done) {
    auto call = std::make_unique<UnaryCall<Reply>>(
        peer_, [peer = peer_, done = std::move(done)](const Status& status, const Reply& reply) {
          if (!status.ok()) return done(status);
          Value value;
          const Status taken = decode(reply, value);
          taken.ok() ? done(std::move(value)) : done(peer->malformed(taken));
        });
    peer_->prepare(call->context(), timeout_s);
    return call;
  }

  // The stream for the next request: not `lost`.
  std::shared_ptr<GrpcRequestStream> requests(const std::shared_ptr<GrpcRequestStream>& lost) {
    const std::lock_guard lock(mutex_);
    if (requests_ == lost) requests_ = std::make_shared<GrpcRequestStream>(peer_);
    return requests_;
  }

  std::shared_ptr<const GrpcPeer> peer_;
  std::mutex mutex_;
  std::shared_ptr<GrpcRequestStream> requests_;  // null before the first one
};

}  // namespace

std::unique_ptr<Upstream> make_grpc_upstream(std::string address, GrpcUpstreamOptions options) {
  return std::make_unique<GrpcUpstream>(std::move(address), options);
}

}  // namespace warmpath
