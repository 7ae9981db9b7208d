// GrpcClientLoop: the threads on which this process's gRPC clients do their work: network, decoding and listeners.
//
// Why not gRPC's callback API: in 1.51 its threads are joined by whoever drops the last channel, which kills the
// process when that happens inside a callback; and it takes one more round through the queue per call.
//
// Thread safety: next_queue() may be called from any thread. The loop lives as long as the process.
#pragma once

#include <grpcpp/completion_queue.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace warmpath {

// What is put into a completion queue: complete() runs on the queue's thread, once per operation.
class Completion {
 public:
  virtual void complete(bool ok) = 0;

 protected:
  ~Completion() = default;
};

class GrpcClientLoop {
 public:
  static GrpcClientLoop& instance();

  // The queues in turn. What shares a queue is called one at a time.
  grpc::CompletionQueue& next_queue();

 private:
  GrpcClientLoop();

  std::vector<std::unique_ptr<grpc::CompletionQueue>> queues_;
  std::atomic<size_t> next_{0};
};

}  // namespace warmpath
