// `warmpath mock-replica` as a process: both faces, the ready file, a scripted crash, and a clean end.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

#include "cli/child_process.h"
#include "loadtest/http_client.h"
#include "router/grpc_upstream.h"

namespace warmpath {
namespace {

class Answer final : public GenerateListener {
 public:
  void on_update(GenerateUpdate update) override { tokens += update.tokens.size(); }
  void on_done(Status status) override { done.set_value(std::move(status)); }

  std::atomic<size_t> tokens{0};
  std::promise<Status> done;
};

class MockReplicaTest : public testing::Test {
 protected:
  MockReplicaTest() {
    char pattern[] = "/tmp/warmpath-mock-XXXXXX";
    folder_ = mkdtemp(pattern);
  }
  ~MockReplicaTest() override {
    process_.reset();
    std::filesystem::remove_all(folder_);
  }

  void start(std::vector<std::string> flags) {
    std::vector<std::string> argv{std::string(WARMPATH_BINARY_DIR) + "/bin/warmpath",
                                  "mock-replica",
                                  "--grpc",
                                  "unix:" + folder_ + "/{}.sock",
                                  "--http",
                                  "127.0.0.1:0",
                                  "--ready-file",
                                  folder_ + "/ready"};
    argv.insert(argv.end(), flags.begin(), flags.end());
    auto process = ChildProcess::spawn(argv, folder_ + "/log");
    ASSERT_TRUE(process.ok()) << process.status().to_string();
    process_ = std::make_unique<ChildProcess>(std::move(*process));
    for (int wait = 0; wait < 2000 && !std::filesystem::exists(folder_ + "/ready"); ++wait) {
      ASSERT_TRUE(process_->running()) << tail_of(folder_ + "/log", 20);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::ifstream ready(folder_ + "/ready");
    uint16_t port = 0;
    for (std::string address; ready >> port >> address;) {
      ports_.push_back(port);
      upstreams_.push_back(make_grpc_upstream(address));
    }
  }

  Status generate(size_t replica, const std::shared_ptr<Answer>& answer) {
    GenerateRequest request;
    request.request_id = "test";
    request.prompt.assign(40, 7);
    request.sampling.max_tokens = 10;
    upstreams_.at(replica)->generate(request, answer);
    return answer->done.get_future().get();
  }

  std::string folder_;
  std::unique_ptr<ChildProcess> process_;
  std::vector<uint16_t> ports_;
  std::vector<std::unique_ptr<Upstream>> upstreams_;
};

TEST_F(MockReplicaTest, ServesBothFacesOfEveryReplicaAndEndsCleanly) {
  start({"--replicas", "3"});
  ASSERT_EQ(ports_.size(), 3u);
  for (size_t replica = 0; replica < 3; ++replica) {
    const auto answer = std::make_shared<Answer>();
    EXPECT_EQ(generate(replica, answer), Status());
    EXPECT_EQ(answer->tokens, 10u);
    HttpClient client("127.0.0.1", ports_[replica], 10);
    const auto reply = client.request("POST", "/v1/chat/completions", {},
                                      R"({"messages":[{"role":"user","content":"hello"}],"max_tokens":5})");
    ASSERT_TRUE(reply.ok()) << reply.status().to_string();
    EXPECT_EQ(reply->status, 200) << reply->body;
  }
  process_->terminate();
  EXPECT_TRUE(process_->wait_until(10));
  EXPECT_EQ(process_->exit_text(), "exit code 0");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/0.sock")) << "the socket goes with its server";
}

TEST_F(MockReplicaTest, ACrashMidStreamIsUnavailable) {
  std::ofstream(folder_ + "/script") << R"({"fault": "exit", "after_tokens": 3})" << '\n';
  start({"--script", folder_ + "/script"});
  const auto answer = std::make_shared<Answer>();
  EXPECT_EQ(generate(0, answer).code(), StatusCode::kUnavailable);
  EXPECT_EQ(answer->tokens, 3u) << "what was said before the crash arrived";
  EXPECT_TRUE(process_->wait_until(10));
  EXPECT_EQ(process_->exit_text(), "exit code 70");
}

}  // namespace
}  // namespace warmpath
