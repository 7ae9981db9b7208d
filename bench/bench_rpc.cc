// bench_rpc: what one request costs on the wire between a gateway and a replica: the gateway's gRPC client (this
// process) and the replica's gRPC server (`warmpath mock-replica`, which answers at once), over a Unix socket.
//
// Short: 200 prompt tokens, 16 answer tokens, closed loop with 1 and 16 calls in flight. Long: 100,000 prompt tokens,
// one in flight. CPU is that of the whole process, from its CPU clock; medians over rounds.
#include <stdlib.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <thread>

#include "cli/child_process.h"
#include "loadtest/closed_loop.h"
#include "router/grpc_upstream.h"

namespace warmpath {
namespace {

using SteadyClock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "bench_rpc: %s\n", why.c_str());
  std::exit(1);
}

double cpu_seconds(pid_t pid) {  // 0 = this process
  clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
  timespec time{};
  if (pid != 0 && clock_getcpuclockid(pid, &clock) != 0) fail("the mock replica is gone");
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Calls that each send the next one when they are answered, on the client's own thread.
class Load {
 public:
  Load(Upstream& upstream, int prompt_tokens, int calls) : upstream_(upstream), prompt_tokens_(prompt_tokens) {
    running_ = calls;
    for (int index = 0; index < calls; ++index) {
      auto call = std::make_shared<Call>(*this, index);
      call->send();
    }
  }
  ~Load() {
    stopping_ = true;
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return running_ == 0; });
  }
  int64_t answered() const { return answered_; }
  std::vector<double> latencies_us() {
    const std::lock_guard lock(mutex_);
    return latencies_us_;
  }

 private:
  struct Call final : GenerateListener, std::enable_shared_from_this<Call> {
    Call(Load& owner, int index) : load(owner) {
      request.request_id = std::to_string(index);
      request.sampling.max_tokens = 16;
      request.prompt.resize(static_cast<size_t>(owner.prompt_tokens_));
      for (size_t i = 0; i < request.prompt.size(); ++i) {
        request.prompt[i] = static_cast<TokenId>((i * 31 + static_cast<size_t>(index)) % 500);
      }
    }
    void send() {
      request.prompt[number++ % request.prompt.size()] ^= 1;  // a prompt of its own each time
      sent = SteadyClock::now();
      load.upstream_.generate(request, shared_from_this());
    }
    void on_update(GenerateUpdate) override {}
    void on_done(Status status) override {
      if (!status.ok()) fail("a call failed: " + status.to_string());
      ++load.answered_;
      {
        const std::lock_guard lock(load.mutex_);
        load.latencies_us_.push_back(std::chrono::duration<double, std::micro>(SteadyClock::now() - sent).count());
        if (load.stopping_) {
          --load.running_;
          load.ended_.notify_all();
          return;
        }
      }
      // The replica knows the request id as done only when its status has left.
      request.request_id = std::to_string(++load.last_id_);
      send();
    }
    Load& load;
    GenerateRequest request;
    size_t number = 0;
    SteadyClock::time_point sent;
  };

  Upstream& upstream_;
  const int prompt_tokens_;
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> answered_{0};
  std::atomic<int64_t> last_id_{1'000'000};
  std::mutex mutex_;
  std::condition_variable ended_;
  int running_ = 0;
  std::vector<double> latencies_us_;
};

struct Cell {
  std::vector<double> client_us, server_us, rps, p50_us;
};

void measure(Upstream& upstream, pid_t server, int prompt_tokens, int calls, double seconds, Cell& cell) {
  Load load(upstream, prompt_tokens, calls);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds * 0.2));  // warm up
  const auto start = SteadyClock::now();
  const double client = cpu_seconds(0), replica = cpu_seconds(server);
  const int64_t before = load.answered();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto answered = static_cast<double>(load.answered() - before);
  const double elapsed = std::chrono::duration<double>(SteadyClock::now() - start).count();
  if (answered == 0) fail("no call was answered");
  cell.client_us.push_back((cpu_seconds(0) - client) / answered * 1e6);
  cell.server_us.push_back((cpu_seconds(server) - replica) / answered * 1e6);
  cell.rps.push_back(answered / elapsed);
  cell.p50_us.push_back(percentile(load.latencies_us(), 50));
}

void wait_until_serving(Upstream& upstream) {
  for (int attempt = 0; attempt < 200; ++attempt) {
    std::mutex mutex;
    std::condition_variable changed;
    int answer = -1;
    upstream.describe(2, [&](Result<ReplicaDescription> description) {
      const std::lock_guard lock(mutex);
      answer = description.ok() ? 1 : 0;
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return answer >= 0; });
    if (answer == 1) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  fail("the mock replica does not answer");
}

void run(bool json, int rounds, double seconds) {
  char pattern[] = "/tmp/warmpath-bench-XXXXXX";
  const std::string folder = mkdtemp(pattern);
  const std::string address = "unix:" + folder + "/mock.sock";
  {
    auto mock = ChildProcess::spawn(
        {std::string(WARMPATH_BINARY_DIR) + "/bin/warmpath", "mock-replica", "--grpc", address, "--context", "262144"},
        folder + "/mock.log");
    if (!mock.ok()) fail(mock.status().message());
    const auto upstream = make_grpc_upstream(address);
    wait_until_serving(*upstream);
    Cell one, sixteen, big;
    for (int round = 0; round < rounds; ++round) {
      measure(*upstream, mock->pid(), 200, 1, seconds, one);
      measure(*upstream, mock->pid(), 200, 16, seconds, sixteen);
      measure(*upstream, mock->pid(), 100'000, 1, seconds, big);
    }
    const auto median = [](const std::vector<double>& values) { return percentile(values, 50); };
    for (const auto& [name, cell] : {std::pair<const char*, const Cell&>{"short, 1 in flight", one},
                                     {"short, 16 in flight", sixteen},
                                     {"100,000 tokens, 1 in flight", big}}) {
      std::printf("%-28s client %7.1f us CPU, server %7.1f us, %7.0f a second, p50 %.0f us\n", name,
                  median(cell.client_us), median(cell.server_us), median(cell.rps), median(cell.p50_us));
    }
    if (json) {
      std::printf("%s\n", boost::json::serialize(boost::json::object{{"one_client_us", median(one.client_us)},
                                                                     {"one_server_us", median(one.server_us)},
                                                                     {"one_p50_us", median(one.p50_us)},
                                                                     {"short_client_us", median(sixteen.client_us)},
                                                                     {"short_server_us", median(sixteen.server_us)},
                                                                     {"short_rps", median(sixteen.rps)},
                                                                     {"long_client_us", median(big.client_us)},
                                                                     {"long_server_us", median(big.server_us)},
                                                                     {"long_p50_us", median(big.p50_us)}})
                              .c_str());
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

}  // namespace
}  // namespace warmpath

int main(int argc, char** argv) {
  bool json = false, quick = false;
  int rounds = 3;
  double seconds = 2;
  CLI::App app{"CPU and latency of one request between the gateway's gRPC client and a replica's gRPC server"};
  app.add_flag("--json", json, "print one JSON object on the last line");
  app.add_flag("--quick", quick, "finish within 20 s");
  app.add_option("--rounds", rounds, "interleaved rounds")->check(CLI::Range(1, 50));
  app.add_option("--seconds", seconds, "of each cell")->check(CLI::Range(0.2, 60.0));
  CLI11_PARSE(app, argc, argv);
  if (quick) {
    rounds = 1;
    seconds = 1;
  }
  warmpath::run(json, rounds, seconds);
}
