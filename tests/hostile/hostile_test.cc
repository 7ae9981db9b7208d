// Both hostile tables against a whole gateway, as a process, with a mock replica behind it: every row is answered as it
// says, and afterwards the gateway serves, holds no request and no more memory than before, and the replica is idle.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "router/http_test_client.h"
#include "tests/hostile/hostile_table.h"
#include "tests/process_fleet.h"

namespace warmpath {
namespace {

// What stays when all is over: the threads' JSON parsers (about 20 MB each after bodies of 4 MB), caches of messages
// and tokens. And what a second round may add to it.
constexpr double kSettledMb = 128;
constexpr double kGrowthMb = 8;

HostileVariables variables() {
  HostileVariables all = hostile_variables(R"({"model":"test","prompt":"hi","max_tokens":1})");
  all["chat"] = R"("model":"test","max_tokens":1,"messages":[{"role":"user","content":"hi"}])";
  all["completion"] = R"("model":"test","max_tokens":1,"prompt":"hi")";
  return all;
}

class Hostile : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* table : {"protocol", "requests"}) {
      auto loaded =
          load_hostile_table(std::string(WARMPATH_SOURCE_DIR "/tests/hostile/") + table + ".yaml", variables());
      ASSERT_TRUE(loaded.ok()) << loaded.status().message();
      rows_.insert(rows_.end(), loaded->begin(), loaded->end());
    }
    ProcessFleetOptions options;
    options.replicas = 1;
    options.mock = true;
    options.gateway_yaml = "threads: 2\n";
    options.engine_flags = {"--context", "4096"};
    auto started = ProcessFleet::start(options);
    ASSERT_TRUE(started.ok()) << started.status().message();
    fleet_ = std::move(*started);
  }

  void play_all() {
    for (const HostileRow& row : rows_) {
      EXPECT_EQ(play_hostile_row(row, row.admin ? fleet_->admin_port() : fleet_->port()), "")
          << "row `" << row.name << "`";
      ASSERT_TRUE(fleet_->gateway().running()) << "row `" << row.name << "` ended the gateway:\n" << log_end();
    }
  }

  double rss_mb() {
    std::ifstream in("/proc/" + std::to_string(fleet_->gateway().pid()) + "/statm");
    double size = 0, resident = 0;
    in >> size >> resident;
    return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
  }

  // The gateway gives free pages back once it has been quiet for a while; at most 10 s are waited for that.
  double settled_mb(double wanted) {
    double rss = rss_mb();
    for (int poll = 0; poll < 100 && (poll < 40 || rss > wanted); ++poll) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      rss = rss_mb();
    }
    return rss;
  }

  std::string log_end() {
    std::string log = fleet_->gateway_log();
    return log.substr(log.size() - std::min<size_t>(log.size(), 2000));
  }

  std::vector<HostileRow> rows_;
  std::unique_ptr<ProcessFleet> fleet_;
};

TEST_F(Hostile, EveryRowIsAnsweredAndTheGatewayLives) {
  ASSERT_GE(rows_.size(), 400u);
  const double before = rss_mb();
  for (int pass = 0; pass < 3; ++pass) play_all();
  const double busy = rss_mb(), settled = settled_mb(before + kSettledMb);
  for (int pass = 0; pass < 3; ++pass) play_all();
  const double again = settled_mb(settled + kGrowthMb);
  std::printf("%zu rows, six times; gateway RSS %.1f MB before, %.1f after three, settled at %.1f, then at %.1f\n",
              rows_.size(), before, busy, settled, again);
  EXPECT_LE(settled, before + kSettledMb);
  EXPECT_LE(again, settled + kGrowthMb);
  EXPECT_TRUE(fleet_->wait_for_stats(0, 20, [](const ReplicaStats& stats) {
    return stats.running == 0 && stats.queued == 0 && stats.used_blocks == 0;
  })) << "a client that left still holds the replica";
  EXPECT_EQ(TestClient(fleet_->port()).ask(test_get("/readyz")).status, 200);
}

}  // namespace
}  // namespace warmpath
