// The real client against the real server over real sockets, with a scripted engine behind it.
#include "router/grpc_upstream.h"

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "engine/grpc_server.h"
#include "proto/codec.h"
#include "proto/engine.grpc.pb.h"

namespace warmpath {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

// Takes requests and does with them what the test says.
class ScriptedEngine final : public Engine {
 public:
  std::function<Status(GenerateRequest, std::shared_ptr<RequestSink>)> on_submit;
  std::function<void(const KvEventSink&)> on_subscribe;

  Status submit(GenerateRequest request, std::shared_ptr<RequestSink> sink) override {
    {
      const std::lock_guard lock(mutex_);
      running_[request.request_id] = sink;
    }
    return on_submit(std::move(request), std::move(sink));
  }
  void cancel(const std::string& request_id) override {
    std::shared_ptr<RequestSink> sink;
    {
      const std::lock_guard lock(mutex_);
      cancelled_.push_back(request_id);
      const auto found = running_.find(request_id);
      if (found == running_.end()) return;
      sink = found->second;
      running_.erase(found);
      changed_.notify_all();
    }
    sink->on_done({StatusCode::kCancelled, "cancelled"});
  }
  int64_t subscribe(KvEventSink sink) override {
    if (on_subscribe) on_subscribe(sink);
    const std::lock_guard lock(mutex_);
    subscribers_[++last_id_] = std::move(sink);
    changed_.notify_all();
    return last_id_;
  }
  void unsubscribe(int64_t id) override {
    const std::lock_guard lock(mutex_);
    subscribers_.erase(id);
    changed_.notify_all();
  }
  int32_t pin(std::span<const Hash128> blocks, double) override { return static_cast<int32_t>(blocks.size()); }
  int32_t release(std::span<const Hash128>) override { return 0; }
  void drain() override { draining_ = true; }
  ReplicaStats stats() const override {
    ReplicaStats stats;
    stats.draining = draining_;
    stats.running = 7;
    return stats;
  }
  uint64_t boot_epoch() const override { return 77; }

  void publish(const KvEventBatch& batch) {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, sink] : subscribers_) sink(batch);
  }
  bool wait_cancelled(const std::string& id) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 5s,
                             [&] { return std::find(cancelled_.begin(), cancelled_.end(), id) != cancelled_.end(); });
  }
  bool wait_subscribers(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 5s, [&] { return subscribers_.size() == count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<RequestSink>> running_;
  std::vector<std::string> cancelled_;
  std::map<int64_t, KvEventSink> subscribers_;
  int64_t last_id_ = 0;
  std::atomic<bool> draining_{false};
};

class Answer final : public GenerateListener {
 public:
  void on_update(GenerateUpdate update) override {
    const std::lock_guard lock(mutex_);
    updates.push_back(std::move(update));
    changed_.notify_all();
  }
  void on_done(Status status) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(done) << "on_done twice";
    done = std::move(status);
    changed_.notify_all();
  }
  bool wait_updates(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 5s, [&] { return updates.size() >= count; });
  }
  Status wait_done() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, 10s, [&] { return done.has_value(); })) return internal_error("never done");
    return *done;
  }
  std::vector<TokenId> tokens() {
    std::vector<TokenId> all;
    for (const GenerateUpdate& update : updates) {
      for (const TokenOutput& output : update.tokens) all.push_back(output.token);
    }
    return all;
  }

  std::vector<GenerateUpdate> updates;
  std::optional<Status> done;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

class Events final : public KvEventListener {
 public:
  void on_batch(KvEventBatch batch) override {
    const std::lock_guard lock(mutex_);
    batches.push_back(std::move(batch));
    changed_.notify_all();
  }
  void on_closed(Status status) override {
    const std::lock_guard lock(mutex_);
    closed = std::move(status);
    changed_.notify_all();
  }
  bool wait_batches(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 5s, [&] { return batches.size() >= count; });
  }
  Status wait_closed() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, 10s, [&] { return closed.has_value(); })) return internal_error("never closed");
    return *closed;
  }

  std::vector<KvEventBatch> batches;
  std::optional<Status> closed;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

GenerateRequest small_request(std::string id) {
  GenerateRequest request;
  request.request_id = std::move(id);
  request.prompt = {1, 2, 3};
  return request;
}

GenerateUpdate tokens_update(std::initializer_list<TokenId> tokens) {
  GenerateUpdate update;
  for (const TokenId token : tokens) update.tokens.emplace_back().token = token;
  return update;
}

GenerateUpdate last_update() {
  GenerateUpdate update;
  update.finished = {{0, FinishReason::kLength, -1, -1, 3}};
  update.timings = RequestTimings{};
  update.timings->prefill_tokens = 3;
  return update;
}

class GrpcUpstreamTest : public testing::Test {
 protected:
  GrpcUpstreamTest() {
    char pattern[] = "/tmp/warmpath_grpc_XXXXXX";
    folder_ = mkdtemp(pattern);
    engine_.on_submit = [](GenerateRequest, std::shared_ptr<RequestSink> sink) -> Status {
      GenerateUpdate first = tokens_update({10});
      first.start = StartInfo{.cached_device_tokens = 16, .queue_s = 0.5, .prefill_s = 0.25};
      sink->on_update(std::move(first));
      sink->on_update(tokens_update({11, 12}));
      sink->on_update(last_update());
      sink->on_done({});
      return {};
    };
  }
  ~GrpcUpstreamTest() override {
    upstream_.reset();
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::string socket() const { return "unix:" + folder_ + "/replica"; }

  void serve(std::string listen, std::string token = "") {
    ReplicaDescription description;
    description.model = "scripted";
    description.software = "test";
    description.end_tokens = {2};
    auto server = GrpcServer::start(engine_, description, tokenizer_, {std::move(listen), token, false});
    ASSERT_TRUE(server.ok()) << server.status().to_string();
    server_ = std::move(*server);
    upstream_ = make_grpc_upstream(server_->address(), {std::move(token), 2});
  }

  Result<ReplicaDescription> describe(Upstream& upstream) {
    auto promise = std::make_shared<std::promise<Result<ReplicaDescription>>>();
    upstream.describe(5, [promise](Result<ReplicaDescription> result) { promise->set_value(std::move(result)); });
    return promise->get_future().get();
  }

  Status generate(Upstream& upstream, GenerateRequest request) {
    auto answer = std::make_shared<Answer>();
    upstream.generate(request, answer);
    return answer->wait_done();
  }

  // A client that sends what it likes.
  std::unique_ptr<v1::Engine::Stub> raw_stub() {
    return v1::Engine::NewStub(grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  }

  // Numbered from 1.
  static v1::GenerateCalls calls_of(const std::vector<GenerateRequest>& requests) {
    v1::GenerateCalls message;
    for (const GenerateRequest& request : requests) {
      v1::GenerateCall& call = *message.add_calls();
      call.set_number(static_cast<uint64_t>(message.calls_size()));
      encode(request, *call.mutable_request());
    }
    return message;
  }

  // Reads until `calls` calls have ended; the last answer of each.
  static std::map<uint64_t, v1::GenerateAnswer> read_to_the_end(
      grpc::ClientReaderWriter<v1::GenerateCalls, v1::GenerateAnswers>& stream, size_t calls) {
    std::map<uint64_t, v1::GenerateAnswer> last;
    v1::GenerateAnswers message;
    while (last.size() < calls && stream.Read(&message)) {
      for (const v1::GenerateAnswer& answer : message.answers()) {
        if (answer.has_failure() || answer.update().has_timings()) last[answer.number()] = answer;
      }
    }
    return last;
  }

  std::string folder_;
  std::string tokenizer_ = std::string(700'000, 't') + "end";
  ScriptedEngine engine_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<Upstream> upstream_;
};

TEST_F(GrpcUpstreamTest, DescribeStatsAndTokenizer) {
  serve(socket());
  const Result<ReplicaDescription> description = describe(*upstream_);
  ASSERT_TRUE(description.ok()) << description.status().to_string();
  EXPECT_EQ(description->model, "scripted");
  EXPECT_EQ(description->boot_epoch, 77u);
  std::promise<Result<ReplicaStats>> stats;
  upstream_->stats(5, [&](Result<ReplicaStats> result) { stats.set_value(std::move(result)); });
  EXPECT_EQ(stats.get_future().get()->running, 7);
  std::promise<Result<std::string>> tokenizer;
  upstream_->fetch_tokenizer(5, [&](Result<std::string> result) { tokenizer.set_value(std::move(result)); });
  EXPECT_EQ(*tokenizer.get_future().get(), tokenizer_);
}

TEST_F(GrpcUpstreamTest, GenerateRoundTrip) {
  serve(socket());
  auto answer = std::make_shared<Answer>();
  upstream_->generate(small_request("a"), answer);
  EXPECT_TRUE(answer->wait_done().ok());
  EXPECT_EQ(answer->tokens(), (std::vector<TokenId>{10, 11, 12}));
  ASSERT_FALSE(answer->updates.empty());
  EXPECT_EQ(answer->updates.front().start->cached_device_tokens, 16);
  ASSERT_TRUE(answer->updates.back().timings);
  EXPECT_EQ(answer->updates.back().timings->prefill_tokens, 3);
  EXPECT_EQ(answer->updates.back().finished.at(0).reason, FinishReason::kLength);
  // What is ready together travels together.
  EXPECT_EQ(answer->updates.size(), 1u);
}

TEST_F(GrpcUpstreamTest, ALongPromptFits) {
  size_t prompt_tokens = 0;
  auto scripted = engine_.on_submit;
  engine_.on_submit = [&](GenerateRequest request, std::shared_ptr<RequestSink> sink) {
    prompt_tokens = request.prompt.size();
    return scripted(std::move(request), std::move(sink));
  };
  serve(socket());
  GenerateRequest request = small_request("long");
  request.prompt.assign(2'000'000, 150'000);  // 6 MB: more than gRPC takes when it is not told
  EXPECT_TRUE(generate(*upstream_, request).ok());
  EXPECT_EQ(prompt_tokens, 2'000'000u);
}

TEST_F(GrpcUpstreamTest, AnOversizeMessageIsRefusedAndTheConnectionSurvives) {
  serve(socket());
  GenerateRequest request = small_request("huge");
  request.prompt.assign(6'000'000, 150'000);  // 18 MB
  EXPECT_EQ(generate(*upstream_, request).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(generate(*upstream_, small_request("b")).ok());
}

TEST_F(GrpcUpstreamTest, RefusalsKeepTheirCodeAndMessage) {
  engine_.on_submit = [](GenerateRequest, std::shared_ptr<RequestSink>) -> Status {
    return {StatusCode::kContextLengthExceeded, "the prompt has 9 tokens; the context 8"};
  };
  serve(socket());
  EXPECT_EQ(generate(*upstream_, small_request("a")),
            Status(StatusCode::kContextLengthExceeded, "the prompt has 9 tokens; the context 8"));
}

TEST_F(GrpcUpstreamTest, ReservedFieldsAndOtherVersionsAreRefusedByName) {
  serve(socket());
  const auto stub = raw_stub();
  {
    grpc::ClientContext context;
    v1::GenerateCalls calls = calls_of({small_request("a"), small_request("b")});
    calls.mutable_calls(0)->mutable_request()->set_kv_source("replica");
    const auto stream = stub->Generate(&context);
    ASSERT_TRUE(stream->Write(calls));
    const std::map<uint64_t, v1::GenerateAnswer> last = read_to_the_end(*stream, 2);
    EXPECT_EQ(last.at(1).failure().code(), grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_THAT(last.at(1).failure().message(), HasSubstr("kv_source"));
    EXPECT_TRUE(last.at(2).update().has_timings());  // its neighbour does not suffer
  }
  grpc::ClientContext context;
  v1::DescribeRequest request;
  request.set_protocol_major(kProtocolMajor + 1);
  v1::DescribeReply reply;
  const grpc::Status status = stub->Describe(&context, request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("gateway speaks warmpath protocol 3.0"));
}

TEST_F(GrpcUpstreamTest, HintAndDrain) {
  serve(socket());
  const auto stub = raw_stub();
  HintCommand hint;
  hint.blocks = {hash128("a"), hash128("b")};
  hint.ttl_s = 60;
  v1::HintRequest request;
  encode(hint, request);
  grpc::ClientContext hint_context;
  v1::HintReply reply;
  EXPECT_TRUE(stub->Hint(&hint_context, request, &reply).ok());
  EXPECT_EQ(reply.blocks_found(), 2);
  EXPECT_FALSE(server_->draining());
  grpc::ClientContext drain_context;
  v1::DrainReply drained;
  EXPECT_TRUE(stub->Drain(&drain_context, {}, &drained).ok());
  EXPECT_TRUE(server_->draining());
  EXPECT_TRUE(engine_.stats().draining);
}

TEST_F(GrpcUpstreamTest, CancelMidStreamReachesTheEngine) {
  engine_.on_submit = [](GenerateRequest, std::shared_ptr<RequestSink> sink) -> Status {
    sink->on_update(tokens_update({1}));
    return {};  // and never ends by itself
  };
  serve(socket());
  auto answer = std::make_shared<Answer>();
  const auto call = upstream_->generate(small_request("endless"), answer);
  ASSERT_TRUE(answer->wait_updates(1));
  call->cancel();
  call->cancel();
  EXPECT_EQ(answer->wait_done().code(), StatusCode::kCancelled);
  EXPECT_TRUE(engine_.wait_cancelled("endless"));
}

TEST_F(GrpcUpstreamTest, AReaderThatStallsCostsBoundedMemory) {
  std::shared_ptr<RequestSink> sink;
  engine_.on_submit = [&](GenerateRequest, std::shared_ptr<RequestSink> taken) -> Status {
    sink = std::move(taken);
    return {};
  };
  serve(socket());
  const auto stub = raw_stub();
  grpc::ClientContext context;
  const auto stream = stub->Generate(&context);
  ASSERT_TRUE(stream->Write(calls_of({small_request("stalled")})));  // and does not read
  for (int i = 0; i < 500 && sink == nullptr; ++i) std::this_thread::sleep_for(10ms);
  ASSERT_NE(sink, nullptr);
  GenerateUpdate update;
  update.tokens.resize(8192);
  for (int i = 0; i < 2'000; ++i) sink->on_update(update);
  EXPECT_TRUE(engine_.wait_cancelled("stalled"));
  // And hears why, once it reads.
  EXPECT_EQ(read_to_the_end(*stream, 1).at(1).failure().code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(GrpcUpstreamTest, AStalledRequestDoesNotHoldUpItsNeighbours) {
  std::map<std::string, std::shared_ptr<RequestSink>> sinks;
  std::mutex mutex;
  engine_.on_submit = [&](GenerateRequest request, std::shared_ptr<RequestSink> taken) -> Status {
    const std::lock_guard lock(mutex);
    sinks[request.request_id] = std::move(taken);
    return {};
  };
  serve(socket());
  auto endless = std::make_shared<Answer>(), neighbour = std::make_shared<Answer>();
  upstream_->generate(small_request("endless"), endless);
  upstream_->generate(small_request("neighbour"), neighbour);
  const auto sink_of = [&](const std::string& id) {
    for (int i = 0; i < 500; ++i, std::this_thread::sleep_for(10ms)) {
      const std::lock_guard lock(mutex);
      if (sinks.contains(id)) return sinks[id];
    }
    return std::shared_ptr<RequestSink>();
  };
  const auto one = sink_of("endless"), other = sink_of("neighbour");
  ASSERT_TRUE(one && other);
  one->on_update(tokens_update({1}));
  other->on_update(last_update());
  other->on_done({});
  EXPECT_TRUE(neighbour->wait_done().ok());
  ASSERT_TRUE(endless->wait_updates(1));
  EXPECT_FALSE(endless->done);
}

TEST_F(GrpcUpstreamTest, WhatOneStepSaysTravelsTogether) {
  std::vector<std::shared_ptr<RequestSink>> sinks;
  std::promise<void> all;
  engine_.on_submit = [&](GenerateRequest, std::shared_ptr<RequestSink> taken) -> Status {
    sinks.push_back(std::move(taken));
    if (sinks.size() == 8) all.set_value();
    return {};
  };
  serve(socket());
  const auto stub = raw_stub();
  grpc::ClientContext context;
  const auto stream = stub->Generate(&context);
  std::vector<GenerateRequest> requests;
  for (int i = 0; i < 8; ++i) requests.push_back(small_request(std::to_string(i)));
  ASSERT_TRUE(stream->Write(calls_of(requests)));
  all.get_future().wait();
  for (int step = 0; step < 3; ++step) {
    for (const auto& sink : sinks) sink->on_update(tokens_update({step}));
    for (const auto& sink : sinks) sink->flush();
    v1::GenerateAnswers message;
    ASSERT_TRUE(stream->Read(&message));
    EXPECT_EQ(message.answers_size(), 8);
  }
  context.TryCancel();
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(engine_.wait_cancelled(std::to_string(i)));
}

TEST_F(GrpcUpstreamTest, AClosedHalfLetsRunningCallsFinish) {
  std::promise<std::shared_ptr<RequestSink>> promise;
  engine_.on_submit = [&](GenerateRequest, std::shared_ptr<RequestSink> taken) -> Status {
    promise.set_value(std::move(taken));
    return {};
  };
  serve(socket());
  const auto stub = raw_stub();
  grpc::ClientContext context;
  const auto stream = stub->Generate(&context);
  ASSERT_TRUE(stream->Write(calls_of({small_request("last")})));
  ASSERT_TRUE(stream->WritesDone());
  const auto sink = promise.get_future().get();
  sink->on_update(last_update());
  sink->on_done({});
  EXPECT_TRUE(read_to_the_end(*stream, 1).at(1).update().has_timings());
  v1::GenerateAnswers nothing;
  EXPECT_FALSE(stream->Read(&nothing));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(GrpcUpstreamTest, ANumberThatIsInUseEndsTheStream) {
  engine_.on_submit = [](GenerateRequest, std::shared_ptr<RequestSink>) -> Status { return {}; };
  serve(socket());
  const auto stub = raw_stub();
  grpc::ClientContext context;
  const auto stream = stub->Generate(&context);
  v1::GenerateCalls calls = calls_of({small_request("a"), small_request("b")});
  calls.mutable_calls(1)->set_number(1);
  ASSERT_TRUE(stream->Write(calls));
  v1::GenerateAnswers nothing;
  EXPECT_FALSE(stream->Read(&nothing));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(engine_.wait_cancelled("a"));
}

KvEventBatch batch_of(uint64_t sequence, KvEventBatch::Kind kind, size_t blocks = 0) {
  KvEventBatch batch;
  batch.boot_epoch = 77;
  batch.sequence = sequence;
  batch.kind = kind;
  if (blocks > 0) {
    batch.events.push_back(BlocksStored{Tier::kDevice, hash128("root"), std::vector<Hash128>(blocks, hash128("b"))});
  }
  return batch;
}

TEST_F(GrpcUpstreamTest, SubscriberGetsTheSnapshotThenLiveBatches) {
  using Kind = KvEventBatch::Kind;
  engine_.on_subscribe = [](const KvEventSink& sink) {
    sink(batch_of(4, Kind::kSnapshotBegin));
    sink(batch_of(4, Kind::kSnapshotPart, 3));
    sink(batch_of(4, Kind::kSnapshotEnd));
  };
  serve(socket());
  auto events = std::make_shared<Events>();
  const auto call = upstream_->subscribe(events);
  ASSERT_TRUE(engine_.wait_subscribers(1));
  for (uint64_t sequence = 5; sequence < 105; ++sequence) engine_.publish(batch_of(sequence, Kind::kLive, 1));
  ASSERT_TRUE(events->wait_batches(103));
  EXPECT_EQ(events->batches[0].kind, Kind::kSnapshotBegin);
  EXPECT_EQ(std::get<BlocksStored>(events->batches[1].events.at(0)).blocks.size(), 3u);
  EXPECT_EQ(events->batches[2].kind, Kind::kSnapshotEnd);
  for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(events->batches[3 + i].sequence, 5 + i);
  call->cancel();
  EXPECT_EQ(events->wait_closed().code(), StatusCode::kCancelled);
  EXPECT_TRUE(engine_.wait_subscribers(0));
}

TEST_F(GrpcUpstreamTest, ASubscriberThatStallsIsClosedAndHearsWhy) {
  serve(socket());
  const auto stub = raw_stub();
  grpc::ClientContext context;
  const auto reader = stub->SubscribeKvEvents(&context, {});  // and does not read
  ASSERT_TRUE(engine_.wait_subscribers(1));
  for (uint64_t sequence = 1; sequence <= 40; ++sequence) {
    engine_.publish(batch_of(sequence, KvEventBatch::Kind::kLive, 100'000));
  }
  v1::KvEventBatch batch;
  int received = 0;
  while (reader->Read(&batch)) ++received;
  EXPECT_LT(received, 40);
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_TRUE(engine_.wait_subscribers(0));
}

TEST_F(GrpcUpstreamTest, TcpWantsTheToken) {
  EXPECT_FALSE(GrpcServer::start(engine_, {}, "", {"127.0.0.1:0", "", false}).ok());
  serve("127.0.0.1:0", "secret-token");
  EXPECT_THAT(server_->address(), testing::Not(testing::EndsWith(":0")));
  EXPECT_TRUE(describe(*upstream_).ok());
  EXPECT_TRUE(generate(*upstream_, small_request("a")).ok());
  for (const char* token : {"", "secret-tokem", "secret-token2"}) {
    const auto other = make_grpc_upstream(server_->address(), {token, 2});
    EXPECT_EQ(describe(*other).status().code(), StatusCode::kUnauthenticated) << token;
    EXPECT_EQ(generate(*other, small_request("b")).code(), StatusCode::kUnauthenticated) << token;
    auto events = std::make_shared<Events>();
    other->subscribe(events);
    EXPECT_EQ(events->wait_closed().code(), StatusCode::kUnauthenticated) << token;
  }
}

TEST_F(GrpcUpstreamTest, TheSocketIsPrivateAndGoesWithTheServer) {
  serve(socket());
  const std::string path = folder_ + "/replica";
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_THAT(GrpcServer::start(engine_, {}, "", {socket(), "", false}).status().message(),
              HasSubstr("another process listens"));
  server_->shutdown(0);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(GrpcUpstreamTest, NobodyThereIsUnavailableAndNamesTheAddress) {
  const auto upstream = make_grpc_upstream(socket());
  const Status status = generate(*upstream, small_request("a"));
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr(socket()));
}

TEST_F(GrpcUpstreamTest, AReplicaThatComesBackIsReachedAgain) {
  serve(socket());
  EXPECT_TRUE(generate(*upstream_, small_request("a")).ok());
  server_->shutdown(0);
  EXPECT_EQ(generate(*upstream_, small_request("b")).code(), StatusCode::kUnavailable);
  auto server = GrpcServer::start(engine_, {}, "", {socket(), "", false});
  ASSERT_TRUE(server.ok());
  server_ = std::move(*server);
  Status status;
  for (int i = 0; i < 60; ++i) {
    status = generate(*upstream_, small_request("c"));
    if (status.ok()) break;
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_TRUE(status.ok()) << status.to_string();
}

// Carries bytes between the client and a server's socket until it is cut, as when the server's process is killed.
class Wire {
 public:
  Wire(const std::string& from, const std::string& to) : listener_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    const sockaddr_un address = address_of(from);
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    thread_ = std::thread([this, to] {
      const int client = accept(listener_, nullptr, nullptr);
      const int server = socket(AF_UNIX, SOCK_STREAM, 0);
      const sockaddr_un target = address_of(to);
      if (connect(server, reinterpret_cast<const sockaddr*>(&target), sizeof target) == 0) carry(client, server);
      close(server);
      close(client);
      close(listener_);
    });
  }
  ~Wire() { cut(); }
  void cut() {
    cut_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    return address;
  }
  void carry(int left, int right) {
    char bytes[4096];
    while (!cut_) {
      pollfd both[2] = {{left, POLLIN, 0}, {right, POLLIN, 0}};
      poll(both, 2, 10);
      for (int i = 0; i < 2; ++i) {
        if (!(both[i].revents & (POLLIN | POLLHUP))) continue;
        const ssize_t got = read(both[i].fd, bytes, sizeof bytes);
        if (got <= 0 || write(both[1 - i].fd, bytes, static_cast<size_t>(got)) != got) return;
      }
    }
  }
  int listener_;
  std::atomic<bool> cut_{false};
  std::thread thread_;
};

TEST_F(GrpcUpstreamTest, AConnectionThatBreaksMidStreamIsUnavailable) {
  engine_.on_submit = [](GenerateRequest, std::shared_ptr<RequestSink> sink) -> Status {
    sink->on_update(tokens_update({1}));
    return {};
  };
  serve(socket());
  Wire wire(folder_ + "/wire", folder_ + "/replica");
  const auto upstream = make_grpc_upstream("unix:" + folder_ + "/wire");
  auto answer = std::make_shared<Answer>();
  auto events = std::make_shared<Events>();
  upstream->generate(small_request("cut"), answer);
  upstream->subscribe(events);
  ASSERT_TRUE(answer->wait_updates(1));
  ASSERT_TRUE(engine_.wait_subscribers(1));
  wire.cut();
  EXPECT_EQ(answer->wait_done().code(), StatusCode::kUnavailable);
  EXPECT_EQ(events->wait_closed().code(), StatusCode::kUnavailable);
  // And the server frees the slot of a caller that vanished.
  EXPECT_TRUE(engine_.wait_cancelled("cut"));
  EXPECT_TRUE(engine_.wait_subscribers(0));
}

TEST_F(GrpcUpstreamTest, ShutdownEndsRunningCallsAfterTheGrace) {
  engine_.on_submit = [](GenerateRequest, std::shared_ptr<RequestSink> sink) -> Status {
    sink->on_update(tokens_update({1}));
    return {};
  };
  serve(socket());
  auto answer = std::make_shared<Answer>();
  upstream_->generate(small_request("running"), answer);
  ASSERT_TRUE(answer->wait_updates(1));
  server_->shutdown(0.05);
  EXPECT_EQ(answer->wait_done().code(), StatusCode::kUnavailable);  // another replica may do it
  EXPECT_TRUE(engine_.wait_cancelled("running"));
}

}  // namespace
}  // namespace warmpath
