#include "router/grpc_client_loop.h"

#include <absl/synchronization/mutex.h>
#include <pthread.h>

#include <algorithm>

namespace warmpath {

namespace {

// One thread carries about 30,000 short calls a second (bench_gateway); a gateway has one I/O thread per core beside
// it.
constexpr unsigned kCoresPerThread = 4;
constexpr unsigned kMaxThreads = 8;

void run(grpc::CompletionQueue& queue) {
  pthread_setname_np(pthread_self(), "grpc_client");
  void* tag;
  bool ok;
  while (queue.Next(&tag, &ok)) static_cast<Completion*>(tag)->complete(ok);
}

}  // namespace

GrpcClientLoop& GrpcClientLoop::instance() {
  // Never destroyed: calls may still end while the process does.
  static GrpcClientLoop& loop = *new GrpcClientLoop;
  return loop;
}

GrpcClientLoop::GrpcClientLoop() {
  // Debian's abseil looks for lock cycles at every lock that gRPC takes, which finds nothing of ours and costs each
  // request.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const unsigned threads = std::clamp(std::thread::hardware_concurrency() / kCoresPerThread, 1u, kMaxThreads);
  for (unsigned i = 0; i < threads; ++i) {
    queues_.push_back(std::make_unique<grpc::CompletionQueue>());
    std::thread([queue = queues_.back().get()] { run(*queue); }).detach();
  }
}

grpc::CompletionQueue& GrpcClientLoop::next_queue() {
  return *queues_[next_.fetch_add(1, std::memory_order_relaxed) % queues_.size()];
}

}  // namespace warmpath
