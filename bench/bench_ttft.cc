// bench_ttft: what a user waits for, through the real product: `warmpath up` with real replicas and the default model.
//
// Part 1, one replica with all cores, one session at a time: a long prompt cold, the same again, a follow-up turn, and
// the follow-up after eight other sessions. Part 2: interleaved sessions on two replicas, once per policy, each with a
// freshly started fleet.
//
//   delivered_hit_POLICY = cached prompt tokens that the engines delivered / all prompt tokens
//   ideal_hit            = what one endless cache would deliver: of each turn's prompt, the whole blocks of the
//   previous
//                          turn's prompt and answer (the answer's last token has no KV)
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "cli/child_process.h"
#include "loadtest/chat_client.h"

namespace warmpath {
namespace {

struct Options {
  bool json = false;
  bool quick = false;
  std::string model;
  int prompt_tokens = 6000;
  uint64_t seed = 1;
};

// Words that the tokenizer knows as about one token each, so that a prompt of n words has about n tokens.
class TextSource {
 public:
  explicit TextSource(uint64_t seed) : random_(seed) {}
  std::string words(int count) {
    static constexpr const char* kWords[] = {"server", "cache",  "prefix", "token",  "river",  "garden",
                                             "number", "window", "letter", "simple", "market", "animal",
                                             "paper",  "water",  "music",  "people", "street", "report",
                                             "memory", "engine", "light",  "school", "summer", "bridge"};
    std::string text;
    for (int word = 0; word < count; ++word) {
      text += text.empty() ? "" : " ";
      text += kWords[random_() % std::size(kWords)];
    }
    return text;
  }

 private:
  std::mt19937_64 random_;
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A running `warmpath up`, ended when it goes out of scope.
class Fleet {
 public:
  Fleet(const Options& options, const std::string& policy, int replicas) {
    char directory[] = "/tmp/warmpath-bench-XXXXXX";
    directory_ = mkdtemp(directory);
    const std::string ready = directory_ + "/ready";
    std::vector<std::string> argv{std::string(WARMPATH_BINARY_DIR) + "/bin/warmpath",
                                  "up",
                                  "--no-demo",
                                  "--port",
                                  "0",
                                  "--admin-port",
                                  "0",
                                  "--replicas",
                                  std::to_string(replicas),
                                  "--policy",
                                  policy,
                                  "--ready-file",
                                  ready};
    if (!options.model.empty()) argv.insert(argv.end(), {"--model", options.model});
    auto started = ChildProcess::spawn(argv, directory_ + "/log");
    if (!started.ok()) fail(started.status().message());
    process_ = std::make_unique<ChildProcess>(std::move(started).value());
    for (int wait = 0; wait < 1200 && port_ == 0; ++wait) {
      std::ifstream in(ready);
      int port = 0;
      if (in >> port) port_ = static_cast<uint16_t>(port);
      if (!process_->running()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (port_ == 0) fail("the fleet did not start:\n" + tail_of(directory_ + "/log", 20));
  }
  ~Fleet() {
    process_.reset();
    std::error_code error;
    std::filesystem::remove_all(directory_, error);
  }
  uint16_t port() const { return port_; }

 private:
  [[noreturn]] static void fail(const std::string& why) {
    std::fprintf(stderr, "bench_ttft: %s\n", why.c_str());
    std::exit(1);
  }
  std::string directory_;
  std::unique_ptr<ChildProcess> process_;
  uint16_t port_ = 0;
};

ChatTurn ask(Fleet& fleet, const std::vector<ChatMessage>& messages, int max_tokens, const std::string& session = "") {
  ChatClient client("127.0.0.1", fleet.port(), 600);
  ChatClient::Headers headers;
  if (!session.empty()) headers.emplace_back("x-session-id", session);
  auto turn = client.ask("", messages, max_tokens, headers, true);
  if (!turn.ok()) {
    std::fprintf(stderr, "bench_ttft: %s\n", turn.status().message().c_str());
    std::exit(1);
  }
  return std::move(turn).value();
}

struct FirstTokens {
  double prompt_tokens = 0, cold_ms = 0, warm_ms = 0, decode_step_ms = 0, follow_up_ms = 0, warm_after_others_ms = 0;
};

FirstTokens measure_first_tokens(const Options& options) {
  FirstTokens result;
  Fleet fleet(options, "predicted_seconds", 1);  // one session has the whole machine
  TextSource text(options.seed);
  std::vector<ChatMessage> session{{"system", "You answer briefly."},
                                   {"user", text.words(options.prompt_tokens - 40) + "\nWhat is this?"}};
  const ChatTurn cold = ask(fleet, session, 16);
  result.prompt_tokens = static_cast<double>(cold.prompt_tokens);
  result.cold_ms = cold.first_token_s * 1e3;
  std::printf("cold           %6.0f tokens, %5lld cached, first token after %8.1f ms\n", result.prompt_tokens,
              static_cast<long long>(cold.cached_tokens), result.cold_ms);

  // The answer is long enough to read the decode step at this context off the gaps between its tokens.
  std::vector<double> warm, gaps;
  for (int round = 0; round < 3; ++round) {
    const ChatTurn again = ask(fleet, session, 32);
    warm.push_back(again.first_token_s * 1e3);
    for (size_t token = 1; token < again.token_times_s.size(); ++token) {
      gaps.push_back((again.token_times_s[token] - again.token_times_s[token - 1]) * 1e3);
    }
  }
  result.warm_ms = median(warm);
  result.decode_step_ms = median(gaps);
  std::printf("warm           first token after %8.1f ms; a decode step takes %.2f ms: %.1f steps\n", result.warm_ms,
              result.decode_step_ms, result.warm_ms / result.decode_step_ms);

  std::vector<double> follow_ups;
  for (int round = 0; round < 3; ++round) {
    auto next = session;
    next.push_back({"assistant", cold.text});
    next.push_back({"user", text.words(34)});
    const ChatTurn follow = ask(fleet, next, 4);
    follow_ups.push_back(follow.first_token_s * 1e3);
  }
  result.follow_up_ms = median(follow_ups);
  std::printf("follow-up      first token after %8.1f ms: %.1f steps\n", result.follow_up_ms,
              result.follow_up_ms / result.decode_step_ms);

  for (int other = 0; other < 8; ++other) {
    ask(fleet, {{"user", "Session " + std::to_string(other) + ". " + text.words(options.quick ? 200 : 1000)}}, 4);
  }
  const ChatTurn after = ask(fleet, session, 4);
  result.warm_after_others_ms = after.first_token_s * 1e3;
  std::printf("after 8 others first token after %8.1f ms, %lld cached: %.1f steps\n", result.warm_after_others_ms,
              static_cast<long long>(after.cached_tokens), result.warm_after_others_ms / result.decode_step_ms);
  return result;
}

struct Hits {
  double delivered = 0;
  double ideal = 0;
};

Hits measure_policy(const Options& options, const std::string& policy) {
  const int sessions = options.quick ? 5 : 9, turns = options.quick ? 3 : 6, first_words = options.quick ? 200 : 700;
  Fleet fleet(options, policy, 2);
  TextSource text(options.seed);
  struct Session {
    std::vector<ChatMessage> messages;
    int64_t known_tokens = 0;  // prompt and answer of the previous turn that have KV
  };
  std::vector<Session> all(sessions);
  std::vector<int> order;
  for (int session = 0; session < sessions; ++session) {
    all[session].messages = {{"system", "Session " + std::to_string(session) + ": " + text.words(first_words)}};
    order.insert(order.end(), turns, session);
  }
  std::mt19937_64 random(options.seed);
  std::shuffle(order.begin(), order.end(), random);

  int64_t prompt = 0, cached = 0, ideal = 0;
  for (const int index : order) {
    Session& session = all[index];
    session.messages.push_back({"user", text.words(options.quick ? 30 : 90)});
    const ChatTurn turn = ask(fleet, session.messages, 16, "bench-" + std::to_string(index));
    session.messages.push_back({"assistant", turn.text});
    prompt += turn.prompt_tokens;
    cached += turn.cached_tokens;
    ideal += session.known_tokens / 16 * 16;
    session.known_tokens = turn.prompt_tokens + turn.completion_tokens - 1;
  }
  const Hits hits{static_cast<double>(cached) / static_cast<double>(prompt),
                  static_cast<double>(ideal) / static_cast<double>(prompt)};
  std::printf("%-18s %lld of %lld prompt tokens from cache: %.4f (ideal %.4f, %.3f of it)\n", policy.c_str(),
              static_cast<long long>(cached), static_cast<long long>(prompt), hits.delivered, hits.ideal,
              hits.delivered / hits.ideal);
  return hits;
}

int run(const Options& options) {
  const FirstTokens first = measure_first_tokens(options);
  const Hits predicted = measure_policy(options, "predicted_seconds");
  const Hits sticky = measure_policy(options, "session_sticky");
  const Hits robin = measure_policy(options, "round_robin");
  const bool valid = robin.delivered <= 0.85 * robin.ideal;
  if (!valid) std::printf("INVALID: round robin delivered more than 0.85 of the ideal, so the run tells nothing\n");
  if (options.json) {
    const boost::json::object result{{"prompt_tokens", first.prompt_tokens},
                                     {"cold_ms", first.cold_ms},
                                     {"warm_ms", first.warm_ms},
                                     {"decode_step_ms", first.decode_step_ms},
                                     {"follow_up_ms", first.follow_up_ms},
                                     {"warm_after_others_ms", first.warm_after_others_ms},
                                     {"delivered_hit_predicted_seconds", predicted.delivered},
                                     {"delivered_hit_session_sticky", sticky.delivered},
                                     {"delivered_hit_round_robin", robin.delivered},
                                     {"ideal_hit", predicted.ideal},
                                     {"valid", valid ? 1 : 0}};
    std::printf("%s\n", boost::json::serialize(result).c_str());
  }
  return valid ? 0 : 1;
}

}  // namespace
}  // namespace warmpath

int main(int argc, char** argv) {
  warmpath::Options options;
  CLI::App app{"Times to the first token and delivered cache hits, through `warmpath up` with real replicas"};
  app.add_flag("--json", options.json, "print one JSON object on the last line");
  app.add_flag("--quick", options.quick, "finish within 20 s: shorter prompts, fewer sessions");
  app.add_option("--model", options.model, "as for `warmpath up` (default: the default model)");
  app.add_option("--prompt-tokens", options.prompt_tokens, "length of the long prompt")->check(CLI::Range(200, 100000));
  app.add_option("--seed", options.seed, "of texts and of the order of turns");
  CLI11_PARSE(app, argc, argv);
  if (options.quick) options.prompt_tokens = std::min(options.prompt_tokens, 600);
  return warmpath::run(options);
}
