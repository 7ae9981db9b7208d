#include "policies/policy_config.h"

#include "base/check.h"
#include "policies/predicted_seconds.h"
#include "policies/session_sticky.h"
#include "policies/simple_policies.h"

namespace warmpath {

StructSchema<PolicyConfig> policy_schema() {
  StructSchema<PredictedSecondsOptions> predicted_seconds;
  predicted_seconds
      .field("price", &PredictedSecondsOptions::price,
             {.doc = "What each second of the request's own prefill costs the others on that replica.",
              .min = 0,
              .max = 100,
              .unit = "seconds"})
      .field("tie_fraction", &PredictedSecondsOptions::tie_fraction,
             {.doc = "Costs nearer than this share of the lowest cost's prompt part are a tie.", .min = 0, .max = 1})
      .field("tie_s", &PredictedSecondsOptions::tie_s,
             {.doc = "Costs nearer than this are a tie in any case.", .min = 0, .max = 60, .unit = "seconds"});

  StructSchema<SessionStickyOptions> session_sticky;
  session_sticky
      .field("max_sessions", &SessionStickyOptions::max_sessions,
             {.doc = "Sessions remembered; past it the one unheard of for longest is forgotten.",
              .min = 1,
              .max = 10'000'000})
      .field("idle_s", &SessionStickyOptions::idle_s,
             {.doc = "A session unheard of for so long is forgotten.", .min = 1, .unit = "seconds"});

  StructSchema<PolicyConfig> policy("How the replica for a request is chosen.");
  policy.tag("name", &PolicyConfig::name, {.doc = "The policy."})
      .variant(
          "predicted_seconds",
          "The lowest predicted cost in seconds: queue, uncached prefill, fetches, what others pay, and decoding. Uses "
          "what each replica's cache holds and how fast it was measured to be.",
          &PolicyConfig::predicted_seconds, predicted_seconds)
      .variant("session_sticky",
               "Every turn of a session goes where its first went; new sessions go where the fewest requests are.",
               &PolicyConfig::session_sticky, session_sticky)
      .variant("least_requests", "The replica with the fewest requests running or queued; ties at random.")
      .variant("round_robin", "The replicas in turn.")
      .variant("random", "Any replica, each as likely.")
      .shorthand("name");
  return policy;
}

std::unique_ptr<Policy> make_policy(const PolicyConfig& config) {
  if (config.name == "predicted_seconds") return std::make_unique<PredictedSecondsPolicy>(config.predicted_seconds);
  if (config.name == "session_sticky") return std::make_unique<SessionStickyPolicy>(config.session_sticky);
  if (config.name == "least_requests") return std::make_unique<LeastRequestsPolicy>();
  if (config.name == "round_robin") return std::make_unique<RoundRobinPolicy>();
  if (config.name == "random") return std::make_unique<RandomPolicy>();
  WARMPATH_CHECK(false, "make_policy() needs one of policy_names()");
  return nullptr;
}

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names = policy_schema().spec()->variant_words();
  return names;
}

}  // namespace warmpath
