// ProcessFleet: real engines and a real gateway as processes, for end-to-end tests. Everything ends with it.
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/child_process.h"
#include "proto/describe.h"
#include "router/upstream.h"

namespace warmpath {

struct ProcessFleetOptions {
  std::string model = "synthetic:llama-4x128,vocab=512,context=4096";
  int replicas = 2;
  bool mock = false;                      // `warmpath mock-replica` in the engine's place
  std::vector<std::string> engine_flags;  // besides --model and the address; of an engine, --threads 1
  std::string gateway_yaml;               // appended at the root: "limits: {...}\n"
  std::string model_yaml;                 // appended to the model's entry, indented by four spaces
};

class ProcessFleet {
 public:
  // Waits until the gateway is ready for requests. The error carries the logs' ends.
  static Result<std::unique_ptr<ProcessFleet>> start(ProcessFleetOptions options);
  ~ProcessFleet();

  uint16_t port() const { return port_; }
  uint16_t admin_port() const { return admin_port_; }
  ChildProcess& engine(int index) { return engines_[static_cast<size_t>(index)]; }
  ChildProcess& gateway() { return *gateway_; }
  std::string address(int index) const;  // "unix:..."
  // Starts a replica that died again, at the same address.
  Status restart_engine(int index);
  std::string config_path() const { return folder_ + "/gateway.yaml"; }
  std::string gateway_log() const;

  // What the engine itself says, over its own gRPC.
  Result<ReplicaStats> stats(int index);
  // Polls until `condition` holds of the engine's stats; false after `seconds`.
  template <class Condition>
  bool wait_for_stats(int index, double seconds, Condition condition) {
    for (int poll = 0; poll < static_cast<int>(seconds * 200); ++poll) {
      const auto now = stats(index);
      if (now.ok() && condition(*now)) return true;
      pause();
    }
    return false;
  }

 private:
  ProcessFleet() = default;
  Status start_engine(int index);
  Status start_gateway();
  Status wait_until_ready();
  static void pause();  // 5 ms

  ProcessFleetOptions options_;
  std::string folder_;
  std::vector<ChildProcess> engines_;
  std::vector<std::unique_ptr<Upstream>> upstreams_;  // to the engines, for stats()
  std::unique_ptr<ChildProcess> gateway_;
  uint16_t port_ = 0;
  uint16_t admin_port_ = 0;
};

}  // namespace warmpath
