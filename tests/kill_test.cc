// What happens when something dies in the middle: replicas, and clients. Real processes, real sockets, a synthetic
// model.
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "loadtest/http_client.h"
#include "tests/process_fleet.h"

namespace warmpath {
namespace {

// One byte is one token here. `salt` makes prompts differ from their first block on.
std::string body(const std::string& salt, int prompt_tokens, int max_tokens, bool stream) {
  return R"({"model":"test","temperature":0,"ignore_eos":true,"stream":)" + std::string(stream ? "true" : "false") +
         R"(,"max_tokens":)" + std::to_string(max_tokens) + R"(,"messages":[{"role":"user","content":")" + salt +
         std::string(static_cast<size_t>(prompt_tokens), 'x') + R"("}]})";
}

struct Answer {
  Result<HttpReply> reply = unavailable("not asked");
  int events = 0;
  bool clean_end = false;
  std::string text;
};

// Streams a chat; `on_event` returns false to leave.
Answer ask(uint16_t port, const std::string& request, const std::function<bool(int events)>& on_event = nullptr) {
  Answer answer;
  std::string seen;
  HttpClient client("127.0.0.1", port, 60);
  answer.reply = client.request("POST", "/v1/chat/completions", {{"content-type", "application/json"}}, request,
                                [&](std::string_view bytes) {
                                  seen.append(bytes);
                                  int events = 0;
                                  for (size_t at = 0; (at = seen.find("data: ", at)) != std::string::npos; ++at)
                                    ++events;
                                  answer.events = events;
                                  answer.clean_end = seen.find("[DONE]") != std::string::npos;
                                  answer.text = seen;
                                  return !on_event || on_event(events);
                                });
  return answer;
}

int busy_replica(ProcessFleet& fleet, int replicas) {
  for (int poll = 0; poll < 2000; ++poll) {
    for (int index = 0; index < replicas; ++index) {
      const auto stats = fleet.stats(index);
      if (stats.ok() && stats->running + stats->queued > 0) return index;
    }
  }
  return -1;
}

bool idle(const ReplicaStats& stats) { return stats.running == 0 && stats.queued == 0 && stats.used_blocks == 0; }

// Slow enough to be caught in the act: a decode step takes milliseconds, a prefill chunk tens of them.
ProcessFleetOptions slow_fleet() {
  ProcessFleetOptions options;
  options.model = "synthetic:llama-12x512,vocab=512,context=8192";
  options.engine_flags = {"--step-tokens", "128"};
  return options;
}

// The text of all `content` members, joined.
std::string content(const std::string& stream) {
  constexpr std::string_view kMark = R"("content":")";
  std::string text;
  for (size_t at = 0; (at = stream.find(kMark, at)) != std::string::npos;) {
    at += kMark.size();
    for (; at < stream.size() && stream[at] != '"'; ++at) {
      text += stream[at];
      if (stream[at] == '\\') text += stream[++at];
    }
  }
  return text;
}

TEST(Kill, ReplicaDiesMidStreamAndAnotherGoesOnWithTheSameAnswer) {
  auto fleet = ProcessFleet::start(slow_fleet());
  ASSERT_TRUE(fleet.ok()) << fleet.status().message();
  const std::string request = body("mid", 40, 150, true);
  const Answer undisturbed = ask((*fleet)->port(), request);
  ASSERT_TRUE(undisturbed.clean_end);
  bool killed = false;
  const Answer resumed = ask((*fleet)->port(), request, [&](int events) {
    if (events >= 5 && !killed) {
      const int victim = busy_replica(**fleet, 2);
      EXPECT_GE(victim, 0);
      kill((*fleet)->engine(victim).pid(), SIGKILL);
      killed = true;
    }
    return true;
  });
  EXPECT_TRUE(killed);
  EXPECT_TRUE(resumed.clean_end) << "one stream, with its end";
  EXPECT_EQ(content(resumed.text), content(undisturbed.text));
}

TEST(Kill, TheLastReplicaDiesMidStreamAndTheClientIsNotTold_ItEnded) {
  ProcessFleetOptions options = slow_fleet();
  options.replicas = 1;
  auto fleet = ProcessFleet::start(options);
  ASSERT_TRUE(fleet.ok()) << fleet.status().message();
  bool killed = false;
  const Answer cut = ask((*fleet)->port(), body("mid", 40, 2000, true), [&](int events) {
    if (events >= 5 && !killed) {
      kill((*fleet)->engine(0).pid(), SIGKILL);
      killed = true;
    }
    return true;
  });
  EXPECT_TRUE(killed);
  EXPECT_FALSE(cut.clean_end) << "a cut answer must not end like a whole one";
  EXPECT_FALSE(cut.reply.ok()) << "the connection must be broken off";
}

TEST(Kill, ReplicaDiesBeforeTheFirstByteAndAnotherAnswers) {
  auto fleet = ProcessFleet::start(slow_fleet());
  ASSERT_TRUE(fleet.ok()) << fleet.status().message();
  auto asked = std::async(std::launch::async, [&] { return ask((*fleet)->port(), body("early", 6000, 4, true)); });
  const int victim = busy_replica(**fleet, 2);
  ASSERT_GE(victim, 0);
  kill((*fleet)->engine(victim).pid(), SIGKILL);
  const Answer answer = asked.get();
  ASSERT_TRUE(answer.reply.ok()) << answer.reply.status().message();
  EXPECT_EQ(answer.reply->status, 200);
  EXPECT_TRUE(answer.clean_end);
  // The last token reaches the client a moment before the engine has tidied up after its step.
  EXPECT_TRUE((*fleet)->wait_for_stats(1 - victim, 5, idle));
}

TEST(Kill, ReplicaDiesHoldingQueuedRequestsAndNoneIsLost) {
  ProcessFleetOptions options = slow_fleet();
  options.engine_flags.insert(options.engine_flags.end(), {"--max-running", "1"});
  auto fleet = ProcessFleet::start(options);
  ASSERT_TRUE(fleet.ok()) << fleet.status().message();
  std::vector<std::future<Answer>> asked;
  for (int request = 0; request < 8; ++request) {
    asked.push_back(std::async(std::launch::async, [&, request] {
      return ask((*fleet)->port(), body(std::to_string(request), 1500, 4, true));
    }));
  }
  ASSERT_TRUE((*fleet)->wait_for_stats(0, 20, [](const ReplicaStats& stats) { return stats.queued >= 1; }));
  kill((*fleet)->engine(0).pid(), SIGKILL);
  int answered = 0, cut = 0;
  for (auto& pending : asked) {
    const Answer answer = pending.get();
    if (answer.clean_end) {
      ++answered;
    } else {
      EXPECT_GT(answer.events, 0) << "only a stream that had begun may be cut";
      ++cut;
    }
  }
  std::printf("%d answered, %d cut after their first byte\n", answered, cut);
  EXPECT_EQ(answered + cut, 8);
  EXPECT_LE(cut, 1) << "one sequence ran on the replica that died";
}

TEST(Kill, ARestartedReplicaServesAgainAndIsNotTakenForItsFormerSelf) {
  ProcessFleetOptions options = slow_fleet();
  options.replicas = 1;
  auto fleet = ProcessFleet::start(options);
  ASSERT_TRUE(fleet.ok()) << fleet.status().message();
  ASSERT_TRUE(ask((*fleet)->port(), body("warm", 1000, 2, true)).clean_end);
  kill((*fleet)->engine(0).pid(), SIGKILL);
  ASSERT_TRUE((*fleet)->engine(0).wait_until(5));
  ASSERT_TRUE((*fleet)->restart_engine(0).ok());
  Answer again;
  for (int attempt = 0; attempt < 200; ++attempt) {
    again = ask((*fleet)->port(), body("warm", 1000, 2, true));
    if (again.clean_end) break;
    if (again.reply.ok()) {
      EXPECT_EQ(again.reply->status, 503);
      EXPECT_FALSE(again.reply->header("retry-after").empty());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ASSERT_TRUE(again.clean_end);
  EXPECT_EQ(again.reply->header("x-warmpath-predicted-cached-tokens"), "0")
      << "the old replica's blocks must be forgotten";
}

TEST(Kill, AGatewayWhoseTimeToDrainIsOverSaysSo) {
  ProcessFleetOptions options = slow_fleet();
  options.replicas = 1;
  options.gateway_yaml = "limits: {drain_s: 0.3}\n";
  auto fleet = ProcessFleet::start(options);
  ASSERT_TRUE(fleet.ok()) << fleet.status().message();
  auto whole = std::async(std::launch::async, [&] { return ask((*fleet)->port(), body("whole", 40, 4000, false)); });
  ASSERT_TRUE((*fleet)->wait_for_stats(0, 20, [](const ReplicaStats& stats) { return stats.running >= 1; }));
  bool asked_to_end = false;
  const Answer cut = ask((*fleet)->port(), body("stream", 40, 4000, true), [&](int events) {
    if (events >= 3 && !asked_to_end) kill((*fleet)->gateway().pid(), SIGTERM);
    asked_to_end = asked_to_end || events >= 3;
    return true;
  });
  EXPECT_TRUE(asked_to_end);
  const Answer told = whole.get();
  ASSERT_TRUE(told.reply.ok()) << told.reply.status().message();
  EXPECT_EQ(told.reply->status, 503);
  EXPECT_FALSE(told.reply->header("retry-after").empty());
  EXPECT_FALSE(cut.clean_end);
  EXPECT_FALSE(cut.reply.ok()) << "a cut stream must not end like a whole one";
  EXPECT_TRUE((*fleet)->gateway().wait_until(5));
  EXPECT_NE((*fleet)->gateway_log().find("drain_over"), std::string::npos) << (*fleet)->gateway_log();
}

class ClientLeaves : public ::testing::Test {
 protected:
  void SetUp() override {
    ProcessFleetOptions options = slow_fleet();
    options.replicas = 1;
    options.engine_flags.insert(options.engine_flags.end(), {"--max-running", "1"});
    auto started = ProcessFleet::start(options);
    ASSERT_TRUE(started.ok()) << started.status().message();
    fleet_ = std::move(*started);
  }
  // The engine's step count when `condition` first holds; -1 after 20 s.
  template <class Condition>
  int64_t steps_when(Condition condition) {
    int64_t steps = -1;
    fleet_->wait_for_stats(0, 20, [&](const ReplicaStats& stats) {
      steps = stats.steps;
      return condition(stats);
    });
    return steps;
  }
  std::unique_ptr<ProcessFleet> fleet_;
};

// The gateway learns of the departure from the kernel and tells the engine; that takes about a millisecond, so the
// steps that pass between leaving and freedom are one, or two when one was just being planned.
constexpr int64_t kMostSteps = 3;

TEST_F(ClientLeaves, DuringDecode) {
  int64_t left_at = -1;
  const Answer answer = ask(fleet_->port(), body("decode", 40, 4000, true), [&](int events) {
    if (events < 6) return true;
    left_at = fleet_->stats(0)->steps;
    return false;
  });
  EXPECT_EQ(answer.reply.status().code(), StatusCode::kCancelled);
  const int64_t free_at = steps_when(idle);
  std::printf("decode: the slot was free %lld steps after the client left\n",
              static_cast<long long>(free_at - left_at));
  ASSERT_TRUE(idle(*fleet_->stats(0)));
  EXPECT_LE(free_at - left_at, kMostSteps + 3);
  EXPECT_EQ(fleet_->stats(0)->cancelled, 1);
}

TEST_F(ClientLeaves, DuringPrefill) {
  auto asked = std::async(std::launch::async, [&] {
    // A request that times out on the client's side is the same to the gateway: the connection closes.
    HttpClient client("127.0.0.1", fleet_->port(), 0.4);
    return client.request("POST", "/v1/chat/completions", {{"content-type", "application/json"}},
                          body("prefill", 7000, 4, false));
  });
  ASSERT_GE(steps_when([](const ReplicaStats& stats) { return stats.running == 1; }), 0);
  EXPECT_FALSE(asked.get().ok());
  const int64_t left_at = fleet_->stats(0)->steps;
  const int64_t free_at = steps_when(idle);
  std::printf("prefill: the slot was free %lld steps after the client left\n",
              static_cast<long long>(free_at - left_at));
  ASSERT_TRUE(idle(*fleet_->stats(0)));
  EXPECT_LE(free_at - left_at, kMostSteps);
  EXPECT_EQ(fleet_->stats(0)->cancelled, 1);
  EXPECT_EQ(fleet_->stats(0)->generated_tokens, 0);
}

TEST_F(ClientLeaves, DuringQueue) {
  auto running = std::async(std::launch::async, [&] { return ask(fleet_->port(), body("runs", 40, 600, true)); });
  ASSERT_GE(steps_when([](const ReplicaStats& stats) { return stats.running == 1; }), 0);
  HttpClient client("127.0.0.1", fleet_->port(), 0.3);
  const auto left = client.request("POST", "/v1/chat/completions", {{"content-type", "application/json"}},
                                   body("waits", 40, 4, false));
  EXPECT_FALSE(left.ok());
  const auto nobody_waits = [](const ReplicaStats& stats) { return stats.queued == 0; };
  EXPECT_TRUE(fleet_->wait_for_stats(0, 5, nobody_waits));
  EXPECT_TRUE(running.get().clean_end) << "the one that ran is not disturbed";
  EXPECT_TRUE(fleet_->wait_for_stats(0, 5, idle));
  EXPECT_LE(fleet_->stats(0)->cancelled, 1);
}

}  // namespace
}  // namespace warmpath
