#include "policies/policy_config.h"

#include <algorithm>

#include "base/check.h"
#include "policies/hash_policies.h"
#include "policies/pipeline.h"
#include "policies/predicted_seconds.h"
#include "policies/score_policies.h"
#include "policies/session_sticky.h"
#include "policies/simple_policies.h"
#include "policies/threshold_tree.h"

namespace warmpath {

// One spec, however often it is asked for: the reference describes it once.
const StructSchema<PolicyConfig>& policy_schema() {
  static const StructSchema<PolicyConfig> kSchema = [] {
    StructSchema<SessionStickyOptions> session_sticky;
    session_sticky
        .field("max_sessions", &SessionStickyOptions::max_sessions,
               {.doc = "Sessions remembered; past it the one unheard of for longest is forgotten.",
                .min = 1,
                .max = 10'000'000})
        .field("idle_s", &SessionStickyOptions::idle_s,
               {.doc = "A session unheard of for so long is forgotten.", .min = 1, .unit = "seconds"});

    StructSchema<BoundedHashOptions> bounded_hash;
    bounded_hash
        .field("load_factor", &BoundedHashOptions::load_factor,
               {.doc = "A replica is passed over while its load would exceed this many times the mean.",
                .min = 1,
                .max = 100})
        .field("virtual_nodes", &BoundedHashOptions::virtual_nodes,
               {.doc = "Places of each replica on the ring.", .min = 1, .max = 10'000});

    StructSchema<ThresholdTreeOptions> threshold_tree;
    threshold_tree
        .field("cache_threshold", &ThresholdTreeOptions::cache_threshold,
               {.doc = "Share of the prompt that must be cached for the cache to decide.", .min = 0, .max = 1})
        .field("balance_abs", &ThresholdTreeOptions::balance_abs,
               {.doc = "The fleet is imbalanced when most and fewest requests differ by more than this,", .min = 0})
        .field("balance_rel", &ThresholdTreeOptions::balance_rel,
               {.doc = "and the most are more than this many times the fewest.", .min = 1});

    StructSchema<LinearBlocksOptions> linear_blocks;
    linear_blocks
        .field("overlap_credit", &LinearBlocksOptions::overlap_credit,
               {.doc = "Blocks saved by a block on the device.", .min = 0, .max = 1})
        .field("host_credit", &LinearBlocksOptions::host_credit,
               {.doc = "Blocks saved by a block in host memory.", .min = 0, .max = 1})
        .field("disk_credit", &LinearBlocksOptions::disk_credit,
               {.doc = "Blocks saved by a block on disk.", .min = 0, .max = 1});

    StructSchema<WeightedScoresOptions> weighted_scores;
    weighted_scores.field("prefix", &WeightedScoresOptions::prefix, {.doc = "Weight of the cached share.", .min = 0})
        .field("kv_utilization", &WeightedScoresOptions::kv_utilization, {.doc = "Weight of the free KV.", .min = 0})
        .field("queue", &WeightedScoresOptions::queue, {.doc = "Weight of the short queue.", .min = 0});

    StructSchema<PolicyConfig> policy("How the replica for a request is chosen.");
    policy.tag("name", &PolicyConfig::name, {.doc = "The policy."})
        .field("label", &PolicyConfig::label, {.doc = "What receipts and metrics call it.", .default_note = "its name"})
        .variant("predicted_seconds",
                 "The lowest predicted cost in seconds: queue, uncached prefill, fetches, what others pay, and "
                 "decoding. Uses "
                 "what each replica's cache holds and how fast it was measured to be.",
                 &PolicyConfig::predicted_seconds, predicted_seconds_schema())
        .variant("session_sticky",
                 "Every turn of a session goes where its first went; new sessions go where the fewest requests are.",
                 &PolicyConfig::session_sticky, session_sticky)
        .variant("least_requests", "The replica with the fewest requests running or queued; ties at random.")
        .variant("round_robin", "The replicas in turn.")
        .variant("random", "Any replica, each as likely.")
        .variant("power_of_two", "Two replicas by chance; of those the one with fewer requests.")
        .variant(
            "consistent_hash_bounded",
            "KubeAI's: the prompt's first 256 tokens on a hash ring, walking on past replicas that are too loaded.",
            &PolicyConfig::consistent_hash_bounded, bounded_hash)
        .variant("threshold_tree",
                 "SGLang's and SMG's: the best match if it is long enough and the fleet is balanced, else the fewest "
                 "requests.",
                 &PolicyConfig::threshold_tree, threshold_tree)
        .variant("linear_blocks", "NVIDIA Dynamo's: uncached prefill blocks plus active decode blocks.",
                 &PolicyConfig::linear_blocks, linear_blocks)
        .variant("weighted_scores", "llm-d's: a weighted sum of cached share, free KV and short queue.",
                 &PolicyConfig::weighted_scores, weighted_scores)
        .variant("load_product", "LMetric's: uncached tokens times running requests.")
        .variant("pipeline", "Put together here: filters leave replicas out, scorers add up, a picker chooses.",
                 &PolicyConfig::pipeline, pipeline_schema())
        .shorthand("name")
        .check([](const PolicyConfig& config, CheckContext& context) {
          // It becomes a header's value and a metric's label.
          const auto fits = [](char c) { return c > ' ' && c < 127; };
          if (config.label.size() > 64 || !std::all_of(config.label.begin(), config.label.end(), fits)) {
            context.error("label", "must be at most 64 visible ASCII characters");
          }
        });
    return policy;
  }();
  return kSchema;
}

std::unique_ptr<Policy> make_policy(const PolicyConfig& config) {
  if (config.name == "predicted_seconds") return std::make_unique<PredictedSecondsPolicy>(config.predicted_seconds);
  if (config.name == "session_sticky") return std::make_unique<SessionStickyPolicy>(config.session_sticky);
  if (config.name == "least_requests") return std::make_unique<LeastRequestsPolicy>();
  if (config.name == "round_robin") return std::make_unique<RoundRobinPolicy>();
  if (config.name == "random") return std::make_unique<RandomPolicy>();
  if (config.name == "power_of_two") return std::make_unique<PowerOfTwoPolicy>();
  if (config.name == "consistent_hash_bounded") {
    return std::make_unique<BoundedHashPolicy>(config.consistent_hash_bounded);
  }
  if (config.name == "threshold_tree") return std::make_unique<ThresholdTreePolicy>(config.threshold_tree);
  if (config.name == "linear_blocks") return std::make_unique<LinearBlocksPolicy>(config.linear_blocks);
  if (config.name == "weighted_scores") return std::make_unique<WeightedScoresPolicy>(config.weighted_scores);
  if (config.name == "pipeline") return std::make_unique<PipelinePolicy>(config.pipeline);
  if (config.name == "load_product") return std::make_unique<LoadProductPolicy>();
  WARMPATH_CHECK(false, "make_policy() needs one of policy_names()");
  return nullptr;
}

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names = policy_schema().spec()->variant_words();
  return names;
}

}  // namespace warmpath
