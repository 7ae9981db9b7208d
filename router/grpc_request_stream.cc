#include "router/grpc_request_stream.h"

#include <fmt/format.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <algorithm>
#include <utility>

#include "proto/codec.h"
#include "proto/wire_status.h"

namespace warmpath {

namespace {

const char kMethod[] = "/warmpath.v1.Engine/Generate";

// Requests that wait for the same message are put together up to this size.
constexpr size_t kGatherBytes = 1024 * 1024;
// gRPC's blocks for messages that are written; a larger message takes several.
constexpr int kBlockBytes = 1024 * 1024;
// A message of a long prompt leaves this much memory at most to the next ones.
constexpr size_t kKeptBytes = 256 * 1024;

// About what it takes on the wire; a token has 5 bytes at most.
size_t about_bytes(const GenerateRequest& request) {
  return 512 + 5 * (request.prompt.size() + request.output_prefix.size()) + 32 * request.sampling.logit_bias.size();
}

grpc::ByteBuffer serialize(const v1::GenerateCalls& message) {
  grpc::ByteBuffer buffer;
  const auto size = static_cast<int>(message.ByteSizeLong());
  grpc::ProtoBufferWriter writer(&buffer, kBlockBytes, size);
  message.SerializeToZeroCopyStream(&writer);
  return buffer;
}

}  // namespace

class GrpcRequestStream::Call final : public UpstreamCall {
 public:
  Call(std::shared_ptr<GrpcRequestStream> stream, uint64_t number, std::shared_ptr<GenerateListener> listener)
      : listener(std::move(listener)), stream_(std::move(stream)), number_(number) {}

  void cancel() override { stream_->cancel(number_); }
  uint64_t number() const { return number_; }

  std::shared_ptr<GenerateListener> listener;  // the queue's thread's, once it is open
  bool cancelled = false;                      // under the stream's lock

 private:
  const std::shared_ptr<GrpcRequestStream> stream_;
  const uint64_t number_;
};

// ---- To the replica ----

std::shared_ptr<UpstreamCall> GrpcRequestStream::start(const GenerateRequest& request,
                                                       const std::shared_ptr<GenerateListener>& listener) {
  const size_t bytes = about_bytes(request);
  std::unique_lock lock(mutex_);
  if (lost_) return nullptr;
  const auto call = std::make_shared<Call>(shared_from_this(), ++last_number_, listener);
  if (gathered_bytes_ > 0 && gathered_bytes_ + bytes > kGatherBytes) {
    earlier_.push_back(std::exchange(gathering_, {}));
    gathered_bytes_ = 0;
  }
  v1::GenerateCall& message = *gathering_.add_calls();
  message.set_number(call->number());
  encode(request, *message.mutable_request());
  if (bytes > kGatherBytes && gathering_.ByteSizeLong() > kMaxMessageBytes) {
    const size_t size = gathering_.ByteSizeLong();
    delete gathering_.mutable_calls()->ReleaseLast();
    lock.unlock();
    std::exchange(call->listener, nullptr)
        ->on_done(resource_exhausted(fmt::format("the request takes {} bytes on the wire to {}; at most {} are allowed",
                                                 size, peer_->address, kMaxMessageBytes)));
    return call;
  }
  gathered_bytes_ += bytes;
  open_.emplace(call->number(), call);
  send(std::move(lock));
  return call;
}

void GrpcRequestStream::cancel(uint64_t number) {
  std::unique_lock lock(mutex_);
  const auto found = open_.find(number);
  if (lost_ || found == open_.end() || std::exchange(found->second->cancelled, true)) return;
  gathering_.add_cancelled(number);
  send(std::move(lock));
}

// Before the first message, so that whatever comes of the connection is told to the request that wanted it.
void GrpcRequestStream::begin() {
  self_ = shared_from_this();
  ++outstanding_;  // reads, up to the status
  peer_->prepare(context_);
  context_.set_initial_metadata_corked(true);  // leaves with the first message, and has no completion of its own
  stream_ = peer_->generic_stub->PrepareCall(&context_, kMethod, peer_->queue);
  stream_->StartCall(nullptr);
  stream_->Read(&received_, static_cast<Completion*>(&read_));
}

bool GrpcRequestStream::next_message() {
  if (!earlier_.empty()) {
    message_ = std::move(earlier_.front());
    earlier_.pop_front();
    return true;
  }
  if (gathering_.calls_size() == 0 && gathering_.cancelled_size() == 0) return false;
  message_.Swap(&gathering_);
  gathered_bytes_ = 0;
  return true;
}

void GrpcRequestStream::send(std::unique_lock<std::mutex> lock) {
  if (writing_ || lost_ || !next_message()) return;
  writing_ = true;
  ++outstanding_;
  const bool first = !std::exchange(begun_, true);
  lock.unlock();
  if (first) begin();
  const grpc::ByteBuffer buffer = serialize(message_);
  // Kept for the next ones, whose calls and prompts then need no memory of their own.
  buffer.Length() > kKeptBytes ? void(message_ = {}) : message_.Clear();
  stream_->Write(buffer, static_cast<Completion*>(&written_));
}

void GrpcRequestStream::on_written(bool ok) {
  if (ok) {
    std::unique_lock lock(mutex_);
    writing_ = false;
    send(std::move(lock));
  }
  release();  // when it did not work, the next read says so
}

// ---- From the replica ----

void GrpcRequestStream::on_read(bool ok) {
  if (ok && take_message()) {
    stream_->Read(&received_, static_cast<Completion*>(&read_));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    lost_ = true;
  }
  if (ok) context_.TryCancel();
  stream_->Finish(&status_, static_cast<Completion*>(&finished_));
}

bool GrpcRequestStream::take_message() {
  bool whole;
  {
    grpc::ProtoBufferReader reader(&received_);
    whole = reader.status().ok() && answers_.ParseFromZeroCopyStream(&reader);
  }
  const size_t bytes = received_.Length();
  received_.Clear();
  if (!whole) {
    lost_because_ = peer_->malformed(invalid_argument("it is no GenerateAnswers message"));
    return false;
  }
  for (const v1::GenerateAnswer& answer : answers_.answers()) take(answer);
  if (bytes > kKeptBytes) answers_ = {};
  return true;
}

void GrpcRequestStream::take(const v1::GenerateAnswer& answer) {
  const std::shared_ptr<Call> call = find(answer.number());
  if (!call) return;  // given up after an answer that could not be understood
  if (answer.has_update()) {
    GenerateUpdate update;
    if (const Status taken = decode(answer.update(), update); !taken.ok()) {
      call->cancel();
      return finish_call(*call, peer_->malformed(taken));
    }
    const bool complete = update.timings.has_value();
    call->listener->on_update(std::move(update));
    if (complete) return finish_call(*call, {});
  }
  if (!answer.has_failure()) return;
  Status status = status_from_wire(answer.failure().code(), answer.failure().message());
  if (status.ok()) status = unavailable("the replica ended the request before it was complete");
  finish_call(*call, std::move(status));
}

std::shared_ptr<GrpcRequestStream::Call> GrpcRequestStream::find(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(number);
  return found == open_.end() ? nullptr : found->second;
}

void GrpcRequestStream::finish_call(Call& call, Status status) {
  bool last;
  {
    const std::lock_guard lock(mutex_);
    if (status.code() == StatusCode::kCancelled && !call.cancelled) {
      status = unavailable(fmt::format("{}: the replica gave the request up: {}", peer_->address, status.message()));
    }
    open_.erase(call.number());
    last = closing_ && open_.empty();
  }
  // The listener may own what owns this call.
  std::exchange(call.listener, nullptr)->on_done(std::move(status));
  if (last) context_.TryCancel();
}

void GrpcRequestStream::on_finished(bool) {
  Status status = lost_because_.ok() ? peer_->status_of(status_) : lost_because_;
  if (status.ok() || status.code() == StatusCode::kCancelled) {
    status = unavailable(fmt::format("{}: the replica ended the stream of requests", peer_->address));
  }
  std::unordered_map<uint64_t, std::shared_ptr<Call>> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(open_);
    gathering_ = {};
    earlier_.clear();
  }
  for (const auto& [number, call] : calls) {
    const bool cancelled = call->cancelled;
    std::exchange(call->listener, nullptr)->on_done(cancelled ? Status(StatusCode::kCancelled, "cancelled") : status);
  }
  release();
}

void GrpcRequestStream::release() {
  if (--outstanding_ == 0) self_.reset();
}

void GrpcRequestStream::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    if (!open_.empty()) return;
  }
  context_.TryCancel();
}

}  // namespace warmpath
