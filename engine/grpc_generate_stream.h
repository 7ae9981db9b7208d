// GenerateStream: one gateway's Generate stream at a replica: takes its calls and cancellations, and sends what the
// engine says of all of them, many answers to a message. Owns itself until gRPC is done with it.
//
// When a message leaves: with a flush, and then again whenever the last one is on its way and more has become ready. So
// one step of the engine is one message, and a reader that is slow gets fewer, larger ones.
//
// Bounds: a call that is kMaxPendingTokens behind is cancelled, the others go on; a message carries about as many
// tokens.
//
// Thread safety: sinks are called on the engine's threads, reactions on gRPC's; one mutex joins them. It is not held
// while calling gRPC or the engine, because either may call back on the same thread.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "proto/engine.pb.h"

namespace warmpath {

class GenerateStream final : public grpc::ServerBidiReactor<v1::GenerateCalls, v1::GenerateAnswers>,
                             public std::enable_shared_from_this<GenerateStream> {
 public:
  // The reactor that gRPC keeps until OnDone. `engine` must outlive it.
  static GenerateStream* start(Engine& engine);

 private:
  class Call;

  explicit GenerateStream(Engine& engine) : engine_(engine) {}

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { self_.reset(); }

  void begin(const v1::GenerateCall& message);
  void cancel(uint64_t number);
  // For calls.
  void take(Call& call, GenerateUpdate update);
  void end(Call& call, const Status& status);
  void flush();

  // What to do once the lock is released.
  enum class Action { kNothing, kWrite, kFinish };
  Action next_action();  // with the lock held
  void perform(Action action);
  void make_ready(Call& call);                           // with the lock held
  void stop(Call& call, std::optional<Status> failure);  // likewise
  void encode_ready();                                   // likewise
  void leave(Status why);

  Engine& engine_;
  std::shared_ptr<GenerateStream> self_;  // until OnDone
  v1::GenerateCalls calls_;               // belongs to the read under way

  std::mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<Call>> open_;
  std::vector<std::shared_ptr<Call>> ready_;  // have something to send, in the order in which it came
  std::thread::id reading_thread_;            // takes calls in: what they say at once leaves together
  bool reads_ended_ = false;                  // there will be no more calls
  bool writing_ = false;
  bool gone_ = false;            // the caller is
  bool finished_ = false;        // Finish was called
  Status end_;                   // what it says
  v1::GenerateAnswers answers_;  // belongs to the write under way
};

}  // namespace warmpath
