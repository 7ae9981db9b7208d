#include "cli/demonstration.h"

#include <cstdio>
#include <string>
#include <vector>

namespace warmpath {

namespace {

// A handbook as a coding agent's system prompt would carry one: about 22 tokens a rule.
std::string handbook(int tokens) {
  static constexpr const char* kAreas[] = {"error handling", "naming",   "tests",   "logging",
                                           "reviews",        "releases", "security"};
  static constexpr const char* kRules[] = {"say why a change is made before saying how it is done",
                                           "prefer the smallest change that a reader can check by eye",
                                           "never hide a failure: report it with the place and the remedy",
                                           "write the test first when a bug is found, and keep it",
                                           "measure before and after, and report the runs that lost too"};
  std::string text = "You are a careful assistant. Follow the team's handbook.\n";
  for (int rule = 1; rule <= tokens / 22; ++rule) {
    text += "Rule " + std::to_string(rule) + " (" + kAreas[rule % 7] + "): " + kRules[rule % 5] + ".\n";
  }
  return text;
}

}  // namespace

Status run_demonstration(ChatClient& client, const std::string& model, int prefix_tokens) {
  const std::string system = handbook(prefix_tokens);
  const char* const questions[] = {"In one sentence: what does the handbook say about failures?",
                                   "In one sentence: what should I do before a release?"};
  std::printf("\nTwo requests that share a long prefix:\n");
  double first_token_s[2] = {};
  int64_t cached[2] = {};
  for (int ask = 0; ask < 2; ++ask) {
    std::printf("  request %d ... ", ask + 1);
    std::fflush(stdout);
    auto turn = client.ask(model, {{"system", system}, {"user", questions[ask]}}, 24);
    if (!turn.ok()) {
      std::printf("failed\n");
      return turn.status();
    }
    first_token_s[ask] = turn->first_token_s;
    cached[ask] = turn->cached_tokens;
    std::printf("%lld prompt tokens, %lld from cache, first token after %.0f ms (%s)\n",
                static_cast<long long>(turn->prompt_tokens), static_cast<long long>(turn->cached_tokens),
                turn->first_token_s * 1e3, turn->replica.c_str());
  }
  if (cached[1] > 0 && first_token_s[1] > 0) {
    std::printf("  The second found the shared prefix in a replica's KV cache: %.0f times faster to its first token.\n",
                first_token_s[0] / first_token_s[1]);
  }
  return {};
}

}  // namespace warmpath
