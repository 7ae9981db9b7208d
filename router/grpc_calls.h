// The two shapes of a gRPC call, over GrpcClientLoop: unary, and a stream of messages from the replica.
// Thread safety: start() and cancel() from any thread; everything else happens on the loop's thread.
#pragma once

#include <fmt/format.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "router/grpc_peer.h"
#include "router/upstream.h"

namespace warmpath {

template <typename Reply>
class UnaryCall final : public Completion {
 public:
  using Reader = grpc::ClientAsyncResponseReader<Reply>;
  using Done = std::function<void(const Status& status, const Reply& reply)>;

  UnaryCall(std::shared_ptr<const GrpcPeer> peer, Done done) : peer_(std::move(peer)), done_(std::move(done)) {}

  grpc::ClientContext& context() { return context_; }

  // Takes care of itself until `done` was called.
  static void start(std::unique_ptr<UnaryCall> call, std::unique_ptr<Reader> reader) {
    UnaryCall* running = call.release();
    running->reader_ = std::move(reader);
    running->reader_->StartCall();
    running->reader_->Finish(&running->reply_, &running->status_, static_cast<Completion*>(running));
  }

 private:
  void complete(bool) override {
    const std::unique_ptr<UnaryCall> self(this);
    done_(peer_->status_of(status_), reply_);
  }

  const std::shared_ptr<const GrpcPeer> peer_;
  const Done done_;
  grpc::ClientContext context_;
  std::unique_ptr<Reader> reader_;
  Reply reply_;
  grpc::Status status_;
};

// Sink: `Result<bool> take(const Message&)`: whether more messages are wanted, or why this one is malformed;
// `void end(Status)`: once, the last call.
template <typename Message, typename Sink>
class StreamCall final : public UpstreamCall, public std::enable_shared_from_this<StreamCall<Message, Sink>> {
 public:
  using Reader = grpc::ClientAsyncReader<Message>;

  StreamCall(std::shared_ptr<const GrpcPeer> peer, Sink sink) : peer_(std::move(peer)), sink_(std::move(sink)) {}

  grpc::ClientContext& context() { return context_; }

  // Keeps itself alive until the replica's status came.
  void start(std::unique_ptr<Reader> reader) {
    self_ = this->shared_from_this();
    reader_ = std::move(reader);
    reader_->StartCall(static_cast<Completion*>(&started_));
    reader_->Read(&message_, static_cast<Completion*>(&read_));
  }

  void cancel() override {
    cancelled_ = true;
    context_.TryCancel();
  }

 private:
  struct Step final : Completion {
    StreamCall* call;
    void (StreamCall::*react)(bool ok);

    Step(StreamCall* owner, void (StreamCall::*reaction)(bool)) : call(owner), react(reaction) {}
    void complete(bool ok) override { (call->*react)(ok); }
  };

  void on_started(bool) { release(); }  // whether it worked shows in the first read

  void on_read(bool ok) {
    if (ok) {
      const Result<bool> more = sink_.take(message_);
      if (more.ok() && *more) {
        reader_->Read(&message_, static_cast<Completion*>(&read_));
        return;
      }
      // Complete, or useless: the status cannot change that. The caller need not wait for it.
      end(more.ok() ? Status() : peer_->malformed(more.status()));
      if (!more.ok()) context_.TryCancel();
    }
    reader_->Finish(&status_, static_cast<Completion*>(&finished_));
  }

  void on_finished(bool) {
    Status status = peer_->status_of(status_);
    if (status.code() == StatusCode::kCancelled && !cancelled_) {
      status = unavailable(fmt::format("{}: the replica gave the call up: {}", peer_->address, status.message()));
    }
    end(std::move(status));
    release();
  }

  void end(Status status) {
    if (ended_) return;
    ended_ = true;
    sink_.end(std::move(status));
  }

  // Both the start and the status must have come out of the queue.
  void release() {
    if (--outstanding_ == 0) self_.reset();
  }

  const std::shared_ptr<const GrpcPeer> peer_;
  Sink sink_;
  grpc::ClientContext context_;
  std::unique_ptr<Reader> reader_;
  Message message_;
  grpc::Status status_;
  Step started_{this, &StreamCall::on_started};
  Step read_{this, &StreamCall::on_read};
  Step finished_{this, &StreamCall::on_finished};
  int outstanding_ = 2;
  bool ended_ = false;
  std::atomic<bool> cancelled_{false};
  std::shared_ptr<StreamCall> self_;
};

}  // namespace warmpath
