// ReplicaMonitor: keeps one replica's state true. Describe, check, follow its events, poll its load; when it is gone,
// try again with growing pauses; when it comes back as another process (boot epoch), forget what the old one held.
//
// Thread safety: start(), stop() and check_now() may be called from any thread; everything else runs on the fleet's
// queue, which has one thread. That thread is the index's only writer of events.
#pragma once

#include <memory>

#include "router/replica.h"
#include "router/served_model.h"
#include "router/shared_index.h"
#include "router/task_queue.h"

namespace warmpath {

struct MonitorTiming {
  double describe_timeout_s = 5;
  double stats_every_s = 0.5;
  double first_retry_s = 0.1;
  double longest_retry_s = 1;        // asking a replica that is down who it is costs no more than a poll of its stats
  double longest_event_retry_s = 5;  // a new subscription costs a snapshot
};

class ReplicaMonitor : public std::enable_shared_from_this<ReplicaMonitor> {
 public:
  ReplicaMonitor(std::shared_ptr<Replica> replica, std::shared_ptr<ServedModel> model,
                 std::shared_ptr<SharedIndex> index, std::shared_ptr<TaskQueue> queue, const Clock& clock,
                 MonitorTiming timing);

  void start();
  // Leaves the index; requests in progress on the replica go on.
  void stop();
  // Something failed there: look again at once.
  void check_now();

  const std::shared_ptr<Replica>& replica() const { return replica_; }

 private:
  class EventFeed;

  void describe();
  void on_described(uint64_t attempt, Result<ReplicaDescription> described);
  void fetch_identity(uint64_t attempt, const ReplicaDescription& description);
  void become_ready(const ReplicaDescription& description);
  void become_unusable(ReplicaState state, std::string why);
  void subscribe();
  void on_batch(uint64_t subscription, const KvEventBatch& batch);
  void on_feed_closed(uint64_t subscription, const Status& status);
  void drop_feed();
  void poll_stats();
  void on_stats(Result<ReplicaStats> stats);
  void forget_cache();

  // Runs `step` on the queue unless the monitor has been stopped.
  template <typename Step>
  void later(double delay_s, Step step);
  template <typename Step>
  static auto on_queue(std::weak_ptr<ReplicaMonitor> monitor, std::shared_ptr<TaskQueue> queue, Step step);

  const std::shared_ptr<Replica> replica_;
  const std::shared_ptr<ServedModel> model_;
  const std::shared_ptr<SharedIndex> index_;
  const std::shared_ptr<TaskQueue> queue_;
  const Clock& clock_;
  const MonitorTiming timing_;

  // Queue thread only.
  bool stopped_ = false;
  bool ready_ = false;
  bool polling_ = false;
  uint64_t boot_epoch_ = 0;
  uint64_t attempt_ = 0;       // of describe; answers to older ones are ignored
  uint64_t subscription_ = 0;  // likewise
  std::shared_ptr<UpstreamCall> events_;
  double retry_s_;
  double event_retry_s_;
};

}  // namespace warmpath
