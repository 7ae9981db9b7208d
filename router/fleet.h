// Fleet: all models and replicas of the configuration, their monitors, and the index they share.
//
// Thread safety: any thread; apply() one call at a time. Upstream callbacks may arrive after the fleet is gone; they
// are ignored then.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "router/config.h"
#include "router/index_snapshot_file.h"
#include "router/replica_monitor.h"
#include "router/served_model.h"

namespace warmpath {

// Opens an endpoint (which does not connect yet), or says why it cannot be one.
using UpstreamFactory = std::function<Result<std::shared_ptr<Upstream>>(const EndpointConfig&)>;

class Fleet {
 public:
  Fleet(UpstreamFactory factory, const IndexConfig& index, const Clock& clock, MonitorTiming timing = {});
  ~Fleet();

  // Starts what is new, keeps what is the same, stops what is gone. On an error nothing has changed.
  Status apply(const GatewayConfig& config);

  // By name or alias; "" is the default model. Null when nobody is called that.
  std::shared_ptr<ServedModel> find(std::string_view name) const;
  std::vector<std::shared_ptr<ServedModel>> models() const;           // in the configuration's order
  std::vector<std::string> names_of(const ServedModel& model) const;  // its name first, then its aliases

  // Every model has been described by some replica, and some replica is usable.
  bool ready() const;
  // A request found it unreachable: nobody else is sent there until it has answered again.
  void report_unreachable(const std::shared_ptr<Replica>& replica, const std::string& why);

  SharedIndex& index() const { return *index_; }
  const IndexSnapshotFile& snapshot_file() const { return snapshot_file_; }
  // The replicas as a snapshot of the index names them: by model and address, whatever their order.
  std::vector<SnapshotReplica> snapshot_replicas() const;

 private:
  struct View {
    std::vector<std::shared_ptr<ServedModel>> models;
    std::map<std::string, std::shared_ptr<ServedModel>, std::less<>> by_name;
    std::shared_ptr<ServedModel> fallback;
  };
  std::shared_ptr<const View> view() const;
  void maintain_index();

  const UpstreamFactory factory_;
  const Clock& clock_;
  const MonitorTiming timing_;
  const double placement_s_;
  const std::shared_ptr<SharedIndex> index_;
  const std::shared_ptr<TaskQueue> queue_;
  IndexSnapshotFile snapshot_file_;
  bool snapshot_loaded_ = false;

  mutable std::mutex mutex_;
  std::shared_ptr<const View> view_;
  // By (model, address, token file).
  std::map<std::array<std::string, 3>, std::shared_ptr<ReplicaMonitor>> monitors_;
};

}  // namespace warmpath
