// GrpcRequestStream: the one long stream that carries all requests of this gateway to one replica (Generate in
// proto/engine.proto), and what the replica says of them.
//
// When a message leaves: a request that finds no message on its way is sent at once, on the caller's thread; those that
// come meanwhile leave together when that one is gone. Answers are handed to their listeners on the queue's thread.
//
// The stream is lost when the connection breaks, the replica ends it, or something on it cannot be understood: every
// request that has not ended by then gets that status, and start() accepts no more. A single answer that cannot be
// understood costs its own request only.
//
// Bounds: a message has at most kMaxMessageBytes; a request beyond that is kResourceExhausted. What waits to be sent is
// bounded by the requests that the gateway admits.
//
// Thread safety: start(), close() and calls' cancel() from any thread; one mutex, not held while calling gRPC or a
// listener. Lifetime: once begun, keeps itself until gRPC is done with it.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "proto/engine.pb.h"
#include "router/grpc_peer.h"
#include "router/upstream.h"

namespace warmpath {

class GrpcRequestStream final : public std::enable_shared_from_this<GrpcRequestStream> {
 public:
  explicit GrpcRequestStream(std::shared_ptr<const GrpcPeer> peer) : peer_(std::move(peer)) {}

  // The first request opens the stream. Null when it is lost, and the listener was not called: make another one.
  std::shared_ptr<UpstreamCall> start(const GenerateRequest& request,
                                      const std::shared_ptr<GenerateListener>& listener);
  // No further request will come: the stream ends when those that run have ended.
  void close();

 private:
  class Call;
  struct Step final : Completion {
    GrpcRequestStream* stream;
    void (GrpcRequestStream::*react)(bool ok);

    Step(GrpcRequestStream* owner, void (GrpcRequestStream::*reaction)(bool)) : stream(owner), react(reaction) {}
    void complete(bool ok) override { (stream->*react)(ok); }
  };

  void begin();
  void cancel(uint64_t number);
  void send(std::unique_lock<std::mutex> lock);
  bool next_message();  // with the lock held: `message_` is what leaves next

  void on_written(bool ok);
  void on_read(bool ok);
  void on_finished(bool);
  void release();

  bool take_message();
  void take(const v1::GenerateAnswer& answer);
  std::shared_ptr<Call> find(uint64_t number);
  void finish_call(Call& call, Status status);

  const std::shared_ptr<const GrpcPeer> peer_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  std::shared_ptr<GrpcRequestStream> self_;  // while outstanding_ > 0
  std::atomic<int> outstanding_{0};          // operations that have not come out of the queue

  std::mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<Call>> open_;
  uint64_t last_number_ = 0;
  v1::GenerateCalls gathering_;            // the message that new calls join
  size_t gathered_bytes_ = 0;              // about
  std::deque<v1::GenerateCalls> earlier_;  // full ones that leave before it
  bool writing_ = false;                   // a write is under way
  bool begun_ = false;
  bool lost_ = false;
  bool closing_ = false;

  v1::GenerateCalls message_;  // whoever set writing_ has it to itself until the write has begun

  // The queue's thread only.
  grpc::ByteBuffer received_;
  v1::GenerateAnswers answers_;
  Status lost_because_;  // set when it was this side that gave up
  grpc::Status status_;
  Step written_{this, &GrpcRequestStream::on_written};
  Step read_{this, &GrpcRequestStream::on_read};
  Step finished_{this, &GrpcRequestStream::on_finished};
};

}  // namespace warmpath
