// bench_gateway: what the gateway costs, beside nginx in the same run. Both stand before the same mock replica, which
// answers at once: nginx speaks HTTP to it, the gateway gRPC. Gateway and nginx run on core 0; the mock and this client
// on core 1.
//
// Short: chats of about 200 tokens, every body different, 16 connections. Long: one session that grows from about
// 100,000 tokens by about 700 a turn. CPU is that of the whole process (all threads), from its CPU clock. Rounds are
// interleaved and the median is reported. No model computes anything here.
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <thread>

#include "cli/child_process.h"
#include "loadtest/closed_loop.h"
#include "loadtest/http_client.h"

namespace warmpath {
namespace {

namespace json = boost::json;

struct Options {
  bool json = false;
  bool quick = false;
  int rounds = 3;
  double seconds = 3;
  int long_turns = 30;
  int long_tokens = 100000;
};

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "bench_gateway: %s\n", why.c_str());
  std::exit(1);
}

// Prose that no earlier request contained: about one token a word.
class Prose {
 public:
  explicit Prose(uint64_t seed) : random_(seed) {}
  std::string words(int count) {
    static constexpr const char* kWords[] = {"server", "cache",  "prefix", "token",  "river",  "garden", "number",
                                             "window", "letter", "simple", "market", "animal", "paper",  "water",
                                             "music",  "people", "street", "report", "memory", "engine", "light",
                                             "school", "summer", "bridge", "return", "value",  "error"};
    std::string text;
    for (int word = 0; word < count; ++word) {
      text += kWords[random_() % std::size(kWords)];
      text += word % 12 == 11 ? ".\n" : " ";
    }
    return text;
  }

 private:
  std::mt19937_64 random_;
};

std::string chat_body(const json::array& messages) {
  return json::serialize(
      json::object{{"model", "bench"}, {"messages", messages}, {"max_tokens", 16}, {"temperature", 0}});
}

double cpu_seconds(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
    fail("cannot read a process's CPU clock");
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double rss_mb(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::atof(line.c_str() + 6) / 1024;
  }
  return 0;
}

// A process under measurement and the port it serves on.
struct Server {
  std::string name;
  pid_t pid = 0;
  uint16_t port = 0;
};

uint16_t wait_for_port(const std::string& ready_file, ChildProcess& process, const std::string& log) {
  for (int wait = 0; wait < 600; ++wait) {
    std::ifstream in(ready_file);
    int port = 0;
    if (in >> port && port > 0) return static_cast<uint16_t>(port);
    if (!process.running()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  fail("a server did not start:\n" + tail_of(log, 20));
}

void wait_until_answering(uint16_t port, const std::string& log) {
  for (int wait = 0; wait < 400; ++wait) {
    HttpClient client("127.0.0.1", port, 5);
    const auto reply = client.request("GET", "/readyz", {}, "");
    if (reply.ok() && reply->status == 200) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  fail("a server does not become ready:\n" + tail_of(log, 20));
}

double median(std::vector<double> values) { return percentile(std::move(values), 50); }

// The worker of an nginx whose master is `master`.
pid_t nginx_worker(pid_t master) {
  const std::string pid = std::to_string(master);
  std::ifstream in("/proc/" + pid + "/task/" + pid + "/children");
  pid_t worker = 0;
  in >> worker;
  return worker;
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {
    char pattern[] = "/tmp/warmpath-bench-XXXXXX";
    folder_ = mkdtemp(pattern);
    start_mock();
    start_gateway();
    start_nginx();
  }
  ~Bench() {
    nginx_.reset();
    gateway_.reset();
    mock_.reset();
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  void run() {
    const double idle_rss = rss_mb(gateway_server_.pid);
    struct Short {
      std::vector<double> rps, cpu_us;
    } short_gateway, short_nginx;
    std::vector<double> p50, p99;
    for (int round = 0; round < options_.rounds; ++round) {
      measure_short(gateway_server_, round, short_gateway.rps, short_gateway.cpu_us);
      if (nginx_) measure_short(nginx_server_, round, short_nginx.rps, short_nginx.cpu_us);
      const auto direct = latencies(mock_http_port_, round), through = latencies(gateway_server_.port, round);
      p50.push_back(percentile(through, 50) - percentile(direct, 50));
      p99.push_back(percentile(through, 99) - percentile(direct, 99));
    }
    json::object result{{"short_rps", median(short_gateway.rps)},
                        {"short_cpu_us", median(short_gateway.cpu_us)},
                        {"nginx_short_rps", median(short_nginx.rps)},
                        {"nginx_short_cpu_us", median(short_nginx.cpu_us)},
                        {"added_p50_us", median(p50)},
                        {"added_p99_us", median(p99)}};
    measure_long(result);
    result["idle_rss_mb"] = idle_rss;
    result["rss_mb"] = rss_mb(gateway_server_.pid);
    std::printf("\nshort: gateway %.0f req/s, %.1f us CPU; nginx %.0f req/s, %.1f us CPU (%.2f times)\n",
                median(short_gateway.rps), median(short_gateway.cpu_us), median(short_nginx.rps),
                median(short_nginx.cpu_us), nginx_ ? median(short_gateway.cpu_us) / median(short_nginx.cpu_us) : 0);
    std::printf("memory: %.1f MB idle, %.1f MB at the end\n", idle_rss, rss_mb(gateway_server_.pid));
    if (options_.json) std::printf("%s\n", json::serialize(result).c_str());
  }

 private:
  std::string log(const std::string& name) const { return folder_ + "/" + name + ".log"; }

  std::unique_ptr<ChildProcess> start(int core, std::vector<std::string> argv, const std::string& name) {
    argv.insert(argv.begin(), {"/usr/bin/taskset", "-c", std::to_string(core)});
    auto process = ChildProcess::spawn(argv, log(name));
    if (!process.ok()) fail(process.status().message());
    return std::make_unique<ChildProcess>(std::move(process).value());
  }

  void start_mock() {
    const std::string ready = folder_ + "/mock.ready";
    mock_ = start(other_core(),
                  {binary("warmpath"), "mock-replica", "--grpc", "unix:" + folder_ + "/mock.sock", "--http",
                   "127.0.0.1:0", "--model", "smollm2-135m-instruct", "--context", "262144", "--ready-file", ready},
                  "mock");
    mock_http_port_ = wait_for_port(ready, *mock_, log("mock"));
  }

  void start_gateway() {
    const std::string config = folder_ + "/gateway.yaml", ready = folder_ + "/gateway.ready";
    std::ofstream(config)
        << "listen: 127.0.0.1:0\nadmin: {listen: \"127.0.0.1:0\"}\nlog: {level: warn}\nmodels:\n  - name: bench\n"
           "    endpoints: [\"unix:"
        << folder_ << "/mock.sock\"]\n";
    gateway_ = start(0, {binary("warmpath"), "gateway", "--config", config, "--ready-file", ready}, "gateway");
    gateway_server_ = {"gateway", gateway_->pid(), wait_for_port(ready, *gateway_, log("gateway"))};
    wait_until_answering(gateway_server_.port, log("gateway"));
  }

  void start_nginx() {
    if (access("/usr/sbin/nginx", X_OK) != 0) {
      std::printf("nginx is not installed: its rows are 0 (scripts/install_packages.sh bench)\n");
      return;
    }
    nginx_server_ = {"nginx", 0, free_port()};
    const std::string config = folder_ + "/nginx.conf";
    std::ofstream(config)
        << "worker_processes 1;\ndaemon off;\npid " << folder_ << "/nginx.pid;\nerror_log " << folder_
        << "/nginx.log warn;\nevents { worker_connections 4096; }\nhttp {\n  access_log off;\n"
           "  keepalive_requests 100000000;\n  client_max_body_size 64m;\n  client_body_buffer_size 8m;\n"
           "  client_body_temp_path "
        << folder_ << "/body;\n  proxy_temp_path " << folder_
        << "/proxy;\n"
           "  fastcgi_temp_path "
        << folder_ << "/f;\n  uwsgi_temp_path " << folder_
        << "/u;\n"
           "  scgi_temp_path "
        << folder_
        << "/s;\n"
           "  upstream mock { server 127.0.0.1:"
        << mock_http_port_
        << "; keepalive 128; }\n"
           "  server { listen 127.0.0.1:"
        << nginx_server_.port
        << ";\n    location / { proxy_pass http://mock; "
           "proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off; } } }\n";
    nginx_ = start(0, {"/usr/sbin/nginx", "-p", folder_, "-c", config}, "nginx-start");
    for (int wait = 0; wait < 100 && nginx_server_.pid == 0; ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      nginx_server_.pid = nginx_worker(nginx_->pid());
    }
    if (nginx_server_.pid == 0) fail("nginx did not start:\n" + tail_of(log("nginx-start"), 10));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }

  static uint16_t free_port() { return static_cast<uint16_t>(20000 + getpid() % 20000); }
  static int other_core() { return sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1 : 0; }
  static std::string binary(const std::string& name) { return std::string(WARMPATH_BINARY_DIR) + "/bin/" + name; }

  // Unique bodies, made before the clock runs.
  std::vector<std::string> short_bodies(int round, int count) const {
    Prose prose(static_cast<uint64_t>(round) * 7919 + static_cast<uint64_t>(count));
    std::vector<std::string> bodies;
    for (int body = 0; body < count; ++body) {
      bodies.push_back(chat_body({json::object{{"role", "system"}, {"content", "You are a helpful assistant."}},
                                  json::object{{"role", "user"}, {"content", prose.words(165)}}}));
    }
    return bodies;
  }

  void measure_short(const Server& server, int round, std::vector<double>& rps, std::vector<double>& cpu_us) {
    ClosedLoopOptions load;
    load.port = server.port;
    load.target = "/v1/chat/completions";
    load.connections = 16;
    load.seconds = options_.seconds;
    const auto bodies = short_bodies(round * 2 + 100, static_cast<int>(options_.seconds * 20000));
    load.body = [&](int64_t n) { return bodies[static_cast<size_t>(n) % bodies.size()]; };
    const double before = cpu_seconds(server.pid);
    const auto result = run_closed_loop(load);
    if (!result.ok()) fail(server.name + ": " + result.status().message());
    if (result->refused > 0) fail(server.name + " refused: " + result->first_refusal);
    const double cpu = (cpu_seconds(server.pid) - before) / static_cast<double>(result->answered) * 1e6;
    rps.push_back(static_cast<double>(result->answered) / result->seconds);
    cpu_us.push_back(cpu);
    std::printf("round %d: %-8s %7.0f req/s, %6.1f us CPU a request, p50 %.0f us, p99 %.0f us\n", round + 1,
                server.name.c_str(), rps.back(), cpu, percentile(result->latencies_us, 50),
                percentile(result->latencies_us, 99));
  }

  std::vector<double> latencies(uint16_t port, int round) {
    ClosedLoopOptions load;
    load.port = port;
    load.target = "/v1/chat/completions";
    load.connections = 1;
    load.seconds = std::min(1.0, options_.seconds);
    const auto bodies = short_bodies(round * 2 + 101, 8000);
    load.body = [&](int64_t n) { return bodies[static_cast<size_t>(n) % bodies.size()]; };
    const auto result = run_closed_loop(load);
    if (!result.ok() || result->refused > 0)
      fail("latency round: " + (result.ok() ? result->first_refusal : result.status().message()));
    return result->latencies_us;
  }

  struct LongTurn {
    double cpu_ms = 0, latency_ms = 0, prompt_tokens = 0;
  };

  LongTurn long_turn(HttpClient& client, pid_t pid, const std::string& body) {
    const double before = pid != 0 ? cpu_seconds(pid) : 0;
    const auto start = std::chrono::steady_clock::now();
    const auto reply = client.request("POST", "/v1/chat/completions", {{"content-type", "application/json"}}, body);
    const double latency = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (!reply.ok()) fail("long turn: " + reply.status().message());
    if (reply->status != 200) fail("long turn: " + reply->body.substr(0, 500));
    // What the gateway does after the answer (receipt, index) belongs to the turn.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const size_t usage = reply->body.find("\"prompt_tokens\":");
    return {pid != 0 ? (cpu_seconds(pid) - before) * 1e3 : 0, latency,
            usage == std::string::npos ? 0 : std::atof(reply->body.c_str() + usage + 16)};
  }

  void measure_long(json::object& result) {
    Prose prose(4711);
    json::array messages{json::object{{"role", "system"}, {"content", prose.words(12000)}}};
    while (static_cast<int>(messages.size()) * 830 < options_.long_tokens - 12000 + 830) {
      messages.push_back(json::object{{"role", "user"}, {"content", prose.words(700)}});
      messages.push_back(json::object{{"role", "assistant"}, {"content", prose.words(700)}});
    }
    HttpClient gateway("127.0.0.1", gateway_server_.port, 60), direct("127.0.0.1", mock_http_port_, 60);
    HttpClient nginx("127.0.0.1", nginx_ ? nginx_server_.port : mock_http_port_, 60);
    double cold_ms = 0, tokens = 0;
    std::vector<double> gateway_cpu, nginx_cpu, added_ms;
    for (int turn = 0; turn < options_.long_turns; ++turn) {
      messages.push_back(json::object{{"role", "user"}, {"content", prose.words(600)}});
      const std::string body = chat_body(messages);
      const LongTurn through = long_turn(gateway, gateway_server_.pid, body);
      const LongTurn plain = long_turn(direct, 0, body);
      if (turn == 0) {
        cold_ms = through.cpu_ms;
      } else {
        gateway_cpu.push_back(through.cpu_ms);
        added_ms.push_back(through.latency_ms - plain.latency_ms);
        if (nginx_) nginx_cpu.push_back(long_turn(nginx, nginx_server_.pid, body).cpu_ms);
      }
      tokens = through.prompt_tokens;
      messages.push_back(json::object{{"role", "assistant"}, {"content", prose.words(16)}});
    }
    const auto mean = [](const std::vector<double>& values) {
      double sum = 0;
      for (const double value : values) sum += value;
      return values.empty() ? 0 : sum / static_cast<double>(values.size());
    };
    result["long_prompt_tokens"] = tokens;
    result["long_cpu_ms"] = mean(gateway_cpu);
    result["long_cold_cpu_ms"] = cold_ms;
    result["nginx_long_cpu_ms"] = mean(nginx_cpu);
    result["long_added_p50_ms"] = percentile(added_ms, 50);
    std::printf(
        "long: %.0f tokens; gateway %.2f ms CPU a turn (first turn %.1f), nginx %.2f; added latency p50 %.2f ms\n",
        tokens, mean(gateway_cpu), cold_ms, mean(nginx_cpu), percentile(added_ms, 50));
  }

  const Options options_;
  std::string folder_;
  std::unique_ptr<ChildProcess> mock_, gateway_, nginx_;
  uint16_t mock_http_port_ = 0;
  Server gateway_server_, nginx_server_;
};

}  // namespace
}  // namespace warmpath

int main(int argc, char** argv) {
  warmpath::Options options;
  CLI::App app{"CPU, throughput and added latency of the gateway before an instant mock replica, beside nginx"};
  app.add_flag("--json", options.json, "print one JSON object on the last line");
  app.add_flag("--quick", options.quick, "finish within 20 s");
  app.add_option("--rounds", options.rounds, "interleaved rounds of the short cell")->check(CLI::Range(1, 50));
  app.add_option("--seconds", options.seconds, "of each short cell")->check(CLI::Range(0.2, 60.0));
  app.add_option("--long-turns", options.long_turns, "of the growing session")->check(CLI::Range(2, 1000));
  CLI11_PARSE(app, argc, argv);
  if (options.quick) {
    options.rounds = 1;
    options.seconds = 1;
    options.long_turns = 5;
  }
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1 : 0, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
  warmpath::Bench(options).run();
}
