#include "tests/process_fleet.h"

#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "loadtest/http_client.h"
#include "router/grpc_upstream.h"

namespace warmpath {

namespace {

std::string binary(const char* name) { return std::string(WARMPATH_BINARY_DIR) + "/bin/" + name; }

}  // namespace

void ProcessFleet::pause() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

std::string ProcessFleet::address(int index) const {
  return "unix:" + folder_ + "/replica-" + std::to_string(index) + ".sock";
}

std::string ProcessFleet::gateway_log() const { return tail_of(folder_ + "/gateway.log", 1000000); }

Result<std::unique_ptr<ProcessFleet>> ProcessFleet::start(ProcessFleetOptions options) {
  std::unique_ptr<ProcessFleet> fleet(new ProcessFleet);
  char pattern[] = "/tmp/warmpath-test-XXXXXX";
  fleet->folder_ = mkdtemp(pattern);
  fleet->options_ = std::move(options);
  for (int index = 0; index < fleet->options_.replicas; ++index) WARMPATH_RETURN_IF_ERROR(fleet->start_engine(index));
  WARMPATH_RETURN_IF_ERROR(fleet->start_gateway());
  WARMPATH_RETURN_IF_ERROR(fleet->wait_until_ready());
  return fleet;
}

ProcessFleet::~ProcessFleet() {
  gateway_.reset();
  engines_.clear();
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

Status ProcessFleet::start_engine(int index) {
  std::vector<std::string> argv{binary("warmpath-engine"),
                                "--model",
                                options_.model,
                                "--served-model-name",
                                "test",
                                "--listen",
                                address(index),
                                "--threads",
                                "1"};
  if (options_.mock) {
    argv = {
        binary("warmpath"), "mock-replica", "--model", options_.model, "--served-model-name", "test", "--replicas", "1",
        "--grpc",           address(index)};
  }
  argv.insert(argv.end(), options_.engine_flags.begin(), options_.engine_flags.end());
  auto process = ChildProcess::spawn(argv, folder_ + "/replica-" + std::to_string(index) + ".log");
  if (!process.ok()) return process.status();
  if (static_cast<size_t>(index) < engines_.size()) {
    engines_[static_cast<size_t>(index)] = std::move(*process);
  } else {
    engines_.push_back(std::move(*process));
    upstreams_.push_back(make_grpc_upstream(address(index)));
  }
  return {};
}

Status ProcessFleet::restart_engine(int index) { return start_engine(index); }

Result<ReplicaStats> ProcessFleet::stats(int index) {
  const auto answer = std::make_shared<std::promise<Result<ReplicaStats>>>();
  auto stats = answer->get_future();
  upstreams_[static_cast<size_t>(index)]->stats(
      5, [answer](Result<ReplicaStats> got) { answer->set_value(std::move(got)); });
  return stats.get();
}

Status ProcessFleet::start_gateway() {
  {
    std::ofstream yaml(config_path());
    yaml << "listen: 127.0.0.1:0\nadmin: {listen: \"127.0.0.1:0\"}\n"
         << options_.gateway_yaml << "models:\n  - name: test\n";
    yaml << options_.model_yaml << "    endpoints:\n";
    for (int index = 0; index < options_.replicas; ++index) yaml << "      - \"" << address(index) << "\"\n";
  }
  const std::string ready = folder_ + "/gateway.ready";
  auto process = ChildProcess::spawn({binary("warmpath"), "gateway", "--config", config_path(), "--ready-file", ready},
                                     folder_ + "/gateway.log");
  if (!process.ok()) return process.status();
  gateway_ = std::make_unique<ChildProcess>(std::move(*process));
  for (int wait = 0; wait < 4000 && port_ == 0; ++wait) {
    std::ifstream in(ready);
    int port = 0, admin = 0;
    if (in >> port >> admin) {
      port_ = static_cast<uint16_t>(port);
      admin_port_ = static_cast<uint16_t>(admin);
    } else if (!gateway_->running()) {
      return unavailable("the gateway ended:\n" + gateway_log());
    }
    pause();
  }
  return port_ != 0 ? Status() : unavailable("the gateway wrote no ready file:\n" + gateway_log());
}

Status ProcessFleet::wait_until_ready() {
  for (int wait = 0; wait < 4000; ++wait) {
    HttpClient client("127.0.0.1", port_, 5);
    const auto reply = client.request("GET", "/readyz", {}, "");
    // Ready means one replica; a test wants them all, and the gateway to know of them.
    const std::string all =
        std::to_string(options_.replicas) + " of " + std::to_string(options_.replicas) + " replicas";
    if (reply.ok() && reply->status == 200 && reply->body.find(all) != std::string::npos) return {};
    pause();
  }
  std::string logs = "the fleet does not become ready:\n" + gateway_log();
  for (int index = 0; index < options_.replicas; ++index) {
    logs += tail_of(folder_ + "/replica-" + std::to_string(index) + ".log", 20);
  }
  return unavailable(logs);
}

}  // namespace warmpath
