#include "router/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "base/log.h"

namespace warmpath {

namespace {

constexpr double kMaintainEveryS = 1;
constexpr size_t kMaintainRuns = 4096;

using ReplicaKey = std::array<std::string, 3>;

ReplicaKey key_of(const ModelConfig& model, const EndpointConfig& endpoint) {
  return {model.name, endpoint.address, endpoint.token_file};
}

}  // namespace

Fleet::Fleet(UpstreamFactory factory, const IndexConfig& index, const Clock& clock, MonitorTiming timing)
    : factory_(std::move(factory)),
      clock_(clock),
      timing_(timing),
      placement_s_(index.placement_s),
      index_(std::make_shared<SharedIndex>(index.max_bytes)),
      queue_(std::make_shared<TaskQueue>("wp-fleet", 1)),
      snapshot_file_(index.snapshot_file, index.snapshot_every_s, index_, clock),
      view_(std::make_shared<const View>()) {
  queue_->post_after(kMaintainEveryS, [this] { maintain_index(); });
}

Fleet::~Fleet() {
  snapshot_file_.stop();  // before the replicas leave the index
  for (const auto& [key, monitor] : monitors_) monitor->stop();
  // Whatever was posted before, the stops above included, runs before this.
  std::promise<void> drained;
  queue_->post([&] { drained.set_value(); });
  drained.get_future().wait();
  queue_->stop();
}

Status Fleet::apply(const GatewayConfig& config) {
  // Open everything new first, so that an error leaves the fleet as it was.
  std::map<ReplicaKey, std::shared_ptr<Upstream>> opened;
  const auto discard = [&] { opened.clear(); };
  for (const ModelConfig& model : config.models) {
    for (const EndpointConfig& endpoint : model.endpoints) {
      const ReplicaKey key = key_of(model, endpoint);
      if (monitors_.contains(key) || opened.contains(key)) continue;
      Result<std::shared_ptr<Upstream>> upstream = factory_(endpoint);
      if (!upstream.ok()) {
        discard();
        return invalid_argument(
            fmt::format("models[{}] endpoint {}: {}", model.name, endpoint.address, upstream.status().message()));
      }
      opened[key] = *std::move(upstream);
    }
  }

  auto fresh = std::make_shared<View>();
  std::map<ReplicaKey, std::shared_ptr<ReplicaMonitor>> monitors;
  const std::shared_ptr<const View> before = view();
  for (const ModelConfig& model_config : config.models) {
    const auto known = before->by_name.find(model_config.name);
    std::shared_ptr<ServedModel> model;
    if (known != before->by_name.end() && known->second->name() == model_config.name) {
      model = known->second;
      model->set_config(model_config);
    } else {
      model = std::make_shared<ServedModel>(model_config, index_, placement_s_, clock_);
    }
    ReplicaList replicas;
    for (const EndpointConfig& endpoint : model_config.endpoints) {
      const ReplicaKey key = key_of(model_config, endpoint);
      std::shared_ptr<ReplicaMonitor>& monitor = monitors[key];
      if (monitor) continue;
      if (const auto kept = monitors_.find(key); kept != monitors_.end()) {
        monitor = kept->second;
      } else {
        const Result<ReplicaId> id = index_->write([](RadixIndex& index) { return index.add_replica(); });
        if (!id.ok()) return id.status();
        auto replica = std::make_shared<Replica>(endpoint.address, model_config.name, opened[key], *id, clock_);
        monitor = std::make_shared<ReplicaMonitor>(std::move(replica), model, index_, queue_, clock_, timing_);
      }
      monitor->replica()->set_labels(endpoint.labels);
      replicas.push_back(monitor->replica());
    }
    model->set_replicas(std::move(replicas));
    fresh->models.push_back(model);
    fresh->by_name[model_config.name] = model;
    for (const std::string& alias : model_config.aliases) fresh->by_name[alias] = model;
  }
  if (!config.default_model.empty()) {
    fresh->fallback = fresh->by_name.at(config.default_model);
  } else if (!fresh->models.empty()) {
    fresh->fallback = fresh->models.front();
  }

  {
    const std::lock_guard lock(mutex_);
    view_ = std::move(fresh);
    monitors_.swap(monitors);
  }
  if (!snapshot_loaded_) {
    // Before anybody asks the replicas who they are: their answer decides whether what is restored still holds.
    snapshot_loaded_ = true;
    snapshot_file_.load(snapshot_replicas());
    snapshot_file_.start([this] { return snapshot_replicas(); });
  }
  // `monitors` now holds the previous ones.
  for (const auto& [key, monitor] : monitors_) {
    if (!monitors.contains(key)) monitor->start();
  }
  for (const auto& [key, monitor] : monitors) {
    if (!monitors_.contains(key)) monitor->stop();
  }
  return {};
}

std::shared_ptr<const Fleet::View> Fleet::view() const {
  const std::lock_guard lock(mutex_);
  return view_;
}

std::shared_ptr<ServedModel> Fleet::find(std::string_view name) const {
  const auto now = view();
  if (name.empty()) return now->fallback;
  const auto found = now->by_name.find(name);
  return found == now->by_name.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<ServedModel>> Fleet::models() const { return view()->models; }

std::vector<std::string> Fleet::names_of(const ServedModel& model) const {
  std::vector<std::string> names = {model.name()};
  for (const std::string& alias : model.config().aliases) names.push_back(alias);
  return names;
}

bool Fleet::ready() const {
  const auto now = view();
  bool usable = false;
  for (const auto& model : now->models) {
    if (!model->identity()) return false;
    usable = usable || model->usable();
  }
  return usable;
}

void Fleet::report_unreachable(const std::shared_ptr<Replica>& replica, const std::string& why) {
  replica->set_state(ReplicaState::kDown, why);
  std::shared_ptr<ReplicaMonitor> monitor;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, candidate] : monitors_) {
      if (candidate->replica() == replica) monitor = candidate;
    }
  }
  if (monitor) monitor->check_now();
}

std::vector<SnapshotReplica> Fleet::snapshot_replicas() const {
  const std::lock_guard lock(mutex_);
  std::vector<SnapshotReplica> replicas;
  for (const auto& [key, monitor] : monitors_) {
    replicas.push_back({fmt::format("{} {}", key[0], key[1]), monitor->replica()->index_id()});
  }
  return replicas;
}

void Fleet::maintain_index() {
  const MonotonicNs now = clock_.now_ns();
  index_->write([&](RadixIndex& index) { index.maintain(now, kMaintainRuns); });
  queue_->post_after(kMaintainEveryS, [this] { maintain_index(); });
}

}  // namespace warmpath
