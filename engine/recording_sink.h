// RecordingSink: keeps what a request was told, and checks that it was told so in order. For tests.
// Thread safety: the engine's thread writes; read after wait() or on the same thread.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/request_sink.h"

namespace warmpath {

class RecordingSink final : public RequestSink {
 public:
  explicit RecordingSink(int32_t choices = 1) : tokens(static_cast<size_t>(choices)), finish(tokens.size()) {}

  void on_update(GenerateUpdate update) override {
    EXPECT_FALSE(done) << "an update after on_done";
    EXPECT_FALSE(timings.has_value()) << "an update after the last one";
    EXPECT_EQ(update.start.has_value(), updates == 0) << "the first update, and only it, carries the start";
    if (update.start) start = update.start;
    ++updates;
    for (TokenOutput& output : update.tokens) {
      EXPECT_FALSE(finish[static_cast<size_t>(output.choice)].has_value()) << "a token after the finish";
      tokens[static_cast<size_t>(output.choice)].push_back(output.token);
      outputs.push_back(std::move(output));
    }
    for (const ChoiceFinish& finished : update.finished) {
      EXPECT_FALSE(finish[static_cast<size_t>(finished.choice)].has_value()) << "finished twice";
      finish[static_cast<size_t>(finished.choice)] = finished;
    }
    if (update.timings) timings = update.timings;
    if (on_each_update) on_each_update();
  }

  void on_done(Status status) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(done) << "done twice";
    EXPECT_EQ(status.ok(), timings.has_value()) << "a good end, and only it, has told the timings";
    done = std::move(status);
    changed_.notify_all();
  }

  // Blocks until on_done; its status.
  Status wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done.has_value(); });
    return *done;
  }

  std::vector<std::vector<TokenId>> tokens;  // [choice]
  std::vector<std::optional<ChoiceFinish>> finish;
  std::vector<TokenOutput> outputs;
  std::optional<StartInfo> start;
  std::optional<RequestTimings> timings;
  std::optional<Status> done;
  int updates = 0;
  std::function<void()> on_each_update;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace warmpath
