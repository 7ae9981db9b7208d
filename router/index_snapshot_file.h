// IndexSnapshotFile: keeps what the fleet's index knows in a file, so that a gateway that starts again is warm at once.
//
// Written every few minutes and at the end, beside the index's use (a piece of about a megabyte at a time), to a
// temporary name and then renamed, so that there is a whole file at any time. Read once, before the first request; a
// file that cannot be used is left alone, logged with the reason, and replaced by the next one.
// Thread safety: any thread; start() and stop() one call each. Its own thread writes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "router/shared_index.h"
#include "router/task_queue.h"

namespace warmpath {

// The whole snapshot as bytes; `take` gets them piece by piece and says whether to go on.
void save_index(const SharedIndex& index, std::vector<SnapshotReplica> replicas, const Clock& clock,
                const std::function<bool(std::string)>& take);

class IndexSnapshotFile {
 public:
  using Replicas = std::function<std::vector<SnapshotReplica>()>;

  // An empty `path` means that there is none: every call does nothing.
  IndexSnapshotFile(std::string path, double every_s, std::shared_ptr<SharedIndex> index, const Clock& clock);
  ~IndexSnapshotFile();

  // Brings back what the file says about these replicas.
  void load(const std::vector<SnapshotReplica>& replicas);
  // From now on writes it now and then; `replicas` is asked each time, from another thread.
  void start(Replicas replicas);
  // Writes it a last time.
  void stop();

  Status save(std::vector<SnapshotReplica> replicas);  // now, on this thread

  // For metrics.
  int64_t saved_at_s() const { return saved_at_s_.load(std::memory_order_relaxed); }  // since 1970; 0: not yet
  uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }     // of reading and of writing

 private:
  void save_and_log();
  void save_later();

  const std::string path_;
  const double every_s_;
  const std::shared_ptr<SharedIndex> index_;
  const Clock& clock_;
  Replicas replicas_;
  std::unique_ptr<TaskQueue> queue_;
  std::atomic<int64_t> saved_at_s_{0};
  std::atomic<uint64_t> failures_{0};
};

}  // namespace warmpath
