#include "loadtest/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <cmath>
#include <memory>
#include <random>

#include "loadtest/replay/prompt_maker.h"
#include "loadtest/replay/stream_client.h"
#include "loadtest/trace/arrivals.h"

namespace warmpath {

namespace asio = boost::asio;

namespace {

// Prompts are written and connections opened this long before they are needed.
constexpr double kLeadS = 0.05;
constexpr int64_t kProbeWordsA = 64;
constexpr int64_t kProbeWordsB = 1024;
constexpr double kPromptTolerance = 0.05;

std::string fresh_salt() {
  std::random_device device;
  return fmt::format("run{:08x}", device());
}

class Replay {
 public:
  Replay(const Trace& trace, const ReplayOptions& options, std::vector<StreamTarget> targets)
      : trace_(trace),
        options_(options),
        salt_(options.salt.empty() ? fresh_salt() : options.salt),
        records_(trace.turns.size()),
        sent_(trace.turns.size()),
        threads_after_(trace.threads.empty() ? 0 : trace.turns.size()),
        open_turns_(trace.sessions) {
    for (StreamTarget& target : targets) {
      clients_.push_back(std::make_unique<StreamClient>(
          context_, std::move(target),
          StreamClient::Options{options.api_key, options.replica_header, options.timeout_s, start_}));
    }
    std::vector<bool> seen(trace.sessions);
    for (size_t n = 0; n < trace.turns.size(); ++n) {
      records_[n].session = trace.turns[n].session;
      records_[n].first_of_session = !seen[trace.turns[n].session];
      seen[trace.turns[n].session] = true;
      ++open_turns_[trace.turns[n].session];
    }
    for (const TraceThread& thread : trace.threads) {
      if (thread.after >= 0) threads_after_[static_cast<size_t>(thread.after)].push_back(thread.first);
    }
  }

  Result<ReplayOutcome> run() {
    asio::co_spawn(context_, everything(), asio::detached);
    context_.run();
    if (!failure_.ok()) return failure_;
    return outcome();
  }

 private:
  double now_s() const { return std::chrono::duration<double>(StreamClient::Clock::now() - start_).count(); }
  bool stopping() const { return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed); }
  bool accepting() const {
    return !stopping() && (options_.stop_after_s <= 0 || now_s() - begin_s_ < options_.stop_after_s);
  }

  asio::awaitable<void> until(double at_s) {
    const double wait_s = at_s - now_s();
    if (wait_s <= 0) co_return;
    asio::steady_timer timer(context_);
    timer.expires_at(start_ +
                     std::chrono::duration_cast<StreamClient::Clock::duration>(std::chrono::duration<double>(at_s)));
    boost::system::error_code error;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }

  std::string body(const std::string& messages, int64_t output_tokens, bool exactly) const {
    std::string text = "{";
    if (!options_.model.empty())
      text += "\"model\":" + boost::json::serialize(boost::json::string(options_.model)) + ",";
    text += "\"messages\":" + messages + R"(,"stream":true,"stream_options":{"include_usage":true},"temperature":0)";
    text += fmt::format(",\"max_tokens\":{}", std::max<int64_t>(output_tokens, 1));
    if (exactly) text += fmt::format(",\"min_tokens\":{},\"ignore_eos\":true", std::max<int64_t>(output_tokens, 1));
    return text + "}";
  }

  asio::awaitable<void> everything() {
    for (const auto& client : clients_) {
      failure_ = co_await client->resolve();
      if (!failure_.ok()) co_return;
    }
    failure_ = co_await calibrate();
    if (!failure_.ok()) co_return;
    prompts_ = std::make_unique<PromptMaker>(scale_, trace_.block_tokens, salt_);
    begin_s_ = now_s() + 2 * kLeadS;
    running_ = true;
    asio::co_spawn(context_, watch(), asio::detached);
    const std::vector<Arrival> arrivals =
        plan_arrivals(trace_, {options_.rate_scale, options_.jitter_s, options_.session_rate, options_.seed});
    if (!trace_.timed && options_.concurrency > 0) {
      waiting_sessions_ = arrivals;
      for (int n = 0; n < options_.concurrency; ++n) next_session();
    } else {
      for (const Arrival& arrival : arrivals) {
        co_await until(begin_s_ + arrival.at_s - kLeadS);
        if (!accepting()) break;
        spawn(arrival.turn, begin_s_ + arrival.at_s);
      }
    }
    all_started_ = true;
    finish_if_done();
  }

  // How the target counts: two prompts of known words, and an answer of one token each.
  asio::awaitable<Status> calibrate() {
    int64_t tokens[2] = {0, 0};
    const int64_t words[2] = {kProbeWordsA, kProbeWordsB};
    const PromptMaker probe(TokenScale{}, trace_.block_tokens, salt_);
    for (int n = 0; n < 2; ++n) {
      const StreamAnswer answer =
          co_await clients_[0]->complete("", body(probe.plain_messages(words[n], static_cast<uint32_t>(n)), 1, false));
      if (!answer.error.empty()) co_return unavailable("the first prompt was not answered: " + answer.error);
      if (answer.prompt_tokens <= 0) {
        co_return failed_precondition(
            "the server does not tell prompt_tokens in a stream's usage (stream_options.include_usage), so prompts "
            "cannot be made as long as the trace has them");
      }
      tokens[n] = answer.prompt_tokens;
    }
    scale_ = scale_from(words[0], tokens[0], words[1], tokens[1]);
    co_return Status();
  }

  void spawn(uint32_t turn, double intended_s) {
    ++in_flight_;
    asio::co_spawn(context_, run_turn(turn, intended_s), asio::detached);
  }

  void next_session() {
    if (next_waiting_ >= waiting_sessions_.size() || !accepting()) return;
    spawn(waiting_sessions_[next_waiting_++].turn, std::max(now_s(), begin_s_));
  }

  asio::awaitable<void> run_turn(uint32_t number, double intended_s) {
    const TraceTurn& turn = trace_.turns[number];
    StreamClient& client = *clients_[next_client_++ % clients_.size()];
    co_await until(intended_s - kLeadS);
    std::string headers;
    if (!options_.session_header.empty()) {
      headers = fmt::format("{}: {}-{}\r\n", options_.session_header, salt_, turn.session);
    }
    const std::string text = body(prompts_->messages(turn, number), turn.output_tokens, options_.exact_lengths);
    co_await client.prepare();
    co_await until(intended_s);
    if (!stopping()) {
      record(number, intended_s, co_await client.complete(std::move(headers), text));
      follow(number);
    }
    --in_flight_;
    finish_if_done();
  }

  void follow(uint32_t number) {
    if (trace_.timed) return;
    const double ended_s = records_[number].end_s;
    const auto send = [&](int32_t next) {
      const TraceTurn& turn = trace_.turns[static_cast<size_t>(next)];
      if (accepting()) spawn(static_cast<uint32_t>(next), ended_s + turn.think_s);
    };
    // A session whose turn failed is given up, as its client would.
    if (records_[number].answered) {
      if (trace_.turns[number].next >= 0) send(trace_.turns[number].next);
      for (const int32_t first : threads_after_[number]) send(first);
      if (--open_turns_[trace_.turns[number].session] > 0) return;
    }
    if (options_.concurrency > 0) next_session();
  }

  void record(uint32_t number, double intended_s, const StreamAnswer& answer) {
    const TraceTurn& turn = trace_.turns[number];
    TurnRecord& record = records_[number];
    sent_[number] = true;
    record.arrival_s = intended_s;
    record.answered = answer.error.empty() && answer.content_events > 0;
    record.first_token_s = answer.times.first_content_s;
    record.end_s = answer.times.last_content_s > 0 ? answer.times.last_content_s : answer.times.done_s;
    record.input_tokens = answer.prompt_tokens >= 0 ? answer.prompt_tokens : turn.input_tokens;
    record.output_tokens = answer.completion_tokens >= 0 ? answer.completion_tokens : answer.content_events;
    record.cached_tokens = std::max<int64_t>(answer.cached_tokens, 0);
    lateness_.push_back(std::max(answer.times.sent_s - intended_s, 0.0));
    ++finished_;
    if (!record.answered) {
      ++errors_[answer.error.empty() ? "an answer without content" : answer.error];
      return;
    }
    latest_ttft_.push_back(record.first_token_s - intended_s);
    from_sent_s_ += record.first_token_s - answer.times.sent_s;
    ++answered_;
    cache_told_ |= answer.cached_tokens >= 0;
    answers_off_ += options_.exact_lengths && record.output_tokens != turn.output_tokens;
    if (turn.messages.empty() && answer.prompt_tokens >= 0 && turn.input_tokens > 0) {
      const double off =
          std::abs(static_cast<double>(answer.prompt_tokens) / static_cast<double>(turn.input_tokens) - 1);
      prompt_errors_.push_back(off);
    }
    if (!answer.replica.empty()) {
      ReplicaShare& share = replicas_[answer.replica];
      ++share.turns;
      share.prompt_tokens += record.input_tokens;
      share.cached_tokens += record.cached_tokens;
    }
  }

  asio::awaitable<void> watch() {
    double next_s = begin_s_ + 1;
    while (running_) {
      co_await until(std::min(next_s, now_s() + 0.1));
      if (stopping()) {
        context_.stop();
        co_return;
      }
      if (now_s() < next_s) continue;
      next_s += 1;
      if (!options_.on_progress) continue;
      std::sort(latest_ttft_.begin(), latest_ttft_.end());
      options_.on_progress(fmt::format(
          "{:.0f} s: {} answered, {} failed, {} in flight, TTFT p50 of this second {:.3f} s", now_s() - begin_s_,
          answered_, finished_ - answered_, in_flight_, percentile_of_sorted(latest_ttft_, 50)));
      latest_ttft_.clear();
    }
  }

  void finish_if_done() {
    if (!all_started_ || in_flight_ > 0) return;
    running_ = false;
    context_.stop();  // nothing but kept connections is left
  }

  ReplayOutcome outcome() {
    ReplayOutcome result;
    std::vector<TurnRecord> done;
    for (size_t n = 0; n < records_.size(); ++n) {
      if (sent_[n]) done.push_back(records_[n]);
    }
    result.figures = measure(done, options_.slo);
    const TraceFacts facts = trace_facts(trace_);
    if (facts.input_tokens > 0) {
      result.figures.ideal_hit_ratio =
          static_cast<double>(facts.ideal_tokens) / static_cast<double>(facts.input_tokens);
    }
    result.replicas = replicas_;
    int64_t most = 0;
    int64_t all = 0;
    for (const auto& [name, share] : replicas_) {
      most = std::max(most, share.prompt_tokens - share.cached_tokens);
      all += share.prompt_tokens - share.cached_tokens;
    }
    if (all > 0) {
      result.figures.imbalance =
          static_cast<double>(most) * static_cast<double>(replicas_.size()) / static_cast<double>(all);
    }
    result.ttft_from_sent_mean_s = answered_ > 0 ? from_sent_s_ / static_cast<double>(answered_) : 0;
    std::sort(lateness_.begin(), lateness_.end());
    result.lateness_p50_s = percentile_of_sorted(lateness_, 50);
    result.lateness_p99_s = percentile_of_sorted(lateness_, 99);
    result.lateness_max_s = lateness_.empty() ? 0 : lateness_.back();
    result.valid = result.lateness_p99_s <= options_.max_lateness_s;
    result.stopped = stopping();
    result.unfinished = result.stopped ? in_flight_ : 0;
    result.tokens_per_word = scale_.tokens_per_word;
    double sum = 0;
    for (const double off : prompt_errors_) {
      sum += off;
      result.prompt_error_max = std::max(result.prompt_error_max, off);
      result.prompts_off += off > kPromptTolerance;
    }
    if (!prompt_errors_.empty()) result.prompt_error_mean = sum / static_cast<double>(prompt_errors_.size());
    result.answers_off = answers_off_;
    result.cache_told = cache_told_;
    result.errors = errors_;
    return result;
  }

  const Trace& trace_;
  const ReplayOptions& options_;
  const std::string salt_;
  const StreamClient::Clock::time_point start_ = StreamClient::Clock::now();
  asio::io_context context_{1};
  std::vector<std::unique_ptr<StreamClient>> clients_;
  size_t next_client_ = 0;
  Status failure_;
  TokenScale scale_;
  std::unique_ptr<PromptMaker> prompts_;
  double begin_s_ = 0;
  bool running_ = false;
  bool all_started_ = false;
  int64_t in_flight_ = 0;
  int64_t finished_ = 0;
  int64_t answered_ = 0;
  int64_t answers_off_ = 0;
  bool cache_told_ = false;
  double from_sent_s_ = 0;
  std::vector<TurnRecord> records_;
  std::vector<bool> sent_;
  std::vector<std::vector<int32_t>> threads_after_;
  std::vector<int64_t> open_turns_;  // per session
  std::vector<Arrival> waiting_sessions_;
  size_t next_waiting_ = 0;
  std::vector<double> lateness_;
  std::vector<double> latest_ttft_;  // since the last progress line
  std::vector<double> prompt_errors_;
  std::map<std::string, ReplicaShare> replicas_;
  std::map<std::string, int64_t> errors_;
};

}  // namespace

Result<ReplayOutcome> replay(const Trace& trace, const ReplayOptions& options) {
  std::vector<StreamTarget> targets;
  for (const std::string& url : options.urls) {
    Result<StreamTarget> target = parse_stream_target(url);
    if (!target.ok()) return target.status();
    targets.push_back(std::move(*target));
  }
  if (targets.empty()) return invalid_argument("a replay needs a URL");
  return Replay(trace, options, std::move(targets)).run();
}

}  // namespace warmpath
