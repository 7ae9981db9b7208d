// Pipelines and rules from YAML, with decisions and errors by hand.
#include "policies/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "config/config.h"
#include "policies/policy_fixture.h"
#include "policies/policy_rules.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Policy> from_yaml(const std::string& text) {
  ConfigResult<PolicyConfig> parsed = parse_config(policy_schema(), text, "pipeline.yaml");
  EXPECT_TRUE(parsed.ok()) << parsed.error_text();
  return parsed.ok() ? make_policy(*parsed.config) : nullptr;
}

std::string error_of(const std::string& text) {
  return parse_config(policy_schema(), text, "pipeline.yaml").error_text();
}

TEST(Pipeline, ByItselfItHasTheCostsOfPredictedSeconds) {
  const auto tested = from_yaml("name: pipeline\n");
  const auto plain = policy("predicted_seconds");
  Rng rng(1);
  auto fleet = plain_fleet(3);
  fleet[1].device_tokens = 5000;
  fleet[2].device_tokens = 9000;
  fleet[2].queued_uncached_tokens = 40'000;
  const RequestView request = prompt(10'000, 1);
  const Decision mine = tested->decide(request, fleet, rng, kSecond);
  const Decision theirs = plain->decide(request, fleet, rng, kSecond);
  EXPECT_EQ(mine.candidate, 1u);
  EXPECT_EQ(mine.candidate, theirs.candidate);
  for (size_t n = 0; n < fleet.size(); ++n) EXPECT_DOUBLE_EQ(mine.costs[n].total, theirs.costs[n].total);
}

TEST(Pipeline, WeightsAreWorthWhatTheySay) {
  // 1 s of prefill against 4 running requests at 0.2 s each, then at 0.3 s each.
  auto fleet = plain_fleet(2);
  fleet[0].running = 4;
  fleet[0].device_tokens = 1000;
  Rng rng(1);
  const auto gentle = from_yaml("{name: pipeline, scorers: [prefill_s, {name: running, weight: 0.2}]}");
  const Decision decision = gentle->decide(prompt(2000, 1), fleet, rng, kSecond);
  EXPECT_EQ(decision.candidate, 0u);
  EXPECT_NEAR(decision.costs[0].total, 1 + 0.8, 1e-9);
  EXPECT_NEAR(decision.costs[1].total, 2, 1e-9);
  const auto strict = from_yaml("{name: pipeline, scorers: [prefill_s, {name: running, weight: 0.3}]}");
  EXPECT_EQ(strict->decide(prompt(2000, 1), fleet, rng, kSecond).candidate, 1u);
}

TEST(Pipeline, EveryScorerIsWhatItSays) {
  auto fleet = plain_fleet(1);
  fleet[0].running = 3;
  fleet[0].queued = 2;
  fleet[0].queued_uncached_tokens = 500;
  fleet[0].device_tokens = 600;
  fleet[0].host_tokens = 200;
  fleet[0].active_tokens = 3000;
  fleet[0].capacity_tokens = 4000;
  const std::map<std::string, double> expected = {{"queue_s", 0.5},
                                                  {"prefill_s", 0.2},
                                                  {"fetch_s", 0.02},
                                                  {"decode_s", 1},
                                                  {"requests", 5},
                                                  {"running", 3},
                                                  {"queued", 2},
                                                  {"uncached_tokens", 200},
                                                  {"uncached_share", 0.2},
                                                  {"used_kv", 0.75},
                                                  {"predicted_seconds", 0.25 + 3 * 0.2 + 0.02 + 0.05 * 1}};
  Rng rng(1);
  for (const auto& [name, value] : expected) {
    const auto tested = from_yaml("{name: pipeline, scorers: [" + name + "]}");
    EXPECT_NEAR(tested->decide(prompt(1000, 1), fleet, rng, kSecond).costs[0].total, value, 1e-9) << name;
  }
}

TEST(Pipeline, NormalizedScoresRunFromZeroToOne) {
  // As llm-d and AIBrix weigh: cached share 2, requests 1. Requests 2, 4, 10 are 0, 0.25, 1; uncached 1, 0.5, 0.
  auto fleet = plain_fleet(3);
  const int running[] = {2, 4, 10};
  for (size_t n = 0; n < 3; ++n) fleet[n].running = running[n];
  fleet[1].device_tokens = 500;
  fleet[2].device_tokens = 1000;
  const auto tested = from_yaml(
      "{name: pipeline, scorers: [{name: uncached_share, weight: 2, normalized: true}, {name: requests, normalized: "
      "true}]}");
  Rng rng(1);
  const Decision decision = tested->decide(prompt(2000, 1), fleet, rng, kSecond);
  EXPECT_DOUBLE_EQ(decision.costs[0].total, 2);
  EXPECT_DOUBLE_EQ(decision.costs[1].total, 1.25);
  EXPECT_DOUBLE_EQ(decision.costs[2].total, 1);
  EXPECT_EQ(decision.candidate, 2u);
}

TEST(Pipeline, FiltersLeaveOutButAPreferenceNeverRefuses) {
  Rng rng(1);
  auto fleet = plain_fleet(3);
  fleet[0].device_tokens = 9000;
  fleet[0].queued_prefill_s = 6;
  fleet[1].device_tokens = 8000;
  fleet[1].trust = Trust::kPredicted;
  const RequestView request = prompt(10'000, 1);
  const auto loaded =
      from_yaml("{name: pipeline, filters: [healthy, {name: within_load, max_queue_s: 5}], scorers: [uncached_share]}");
  EXPECT_EQ(loaded->decide(request, fleet, rng, kSecond).candidate, 1u);
  const auto trusting = from_yaml(
      "{name: pipeline, filters: [{name: within_load, max_queue_s: 5}, {name: trust, at_least: degraded}], scorers: "
      "[uncached_share]}");
  EXPECT_EQ(trusting->decide(request, fleet, rng, kSecond).candidate, 2u);
  const auto near = from_yaml("{name: pipeline, filters: [{name: cached, of_best: 0.85}], scorers: [queue_s]}");
  EXPECT_EQ(near->decide(request, fleet, rng, kSecond).candidate, 1u) << "2 has less of it than 0.85 of 9,000";
  const auto nearer = from_yaml("{name: pipeline, filters: [{name: cached, of_best: 0.9}], scorers: [queue_s]}");
  EXPECT_EQ(nearer->decide(request, fleet, rng, kSecond).candidate, 0u);

  for (Candidate& candidate : fleet) candidate.queued_prefill_s = 9;
  Decision nobody = loaded->decide(request, fleet, rng, kSecond);
  EXPECT_EQ(nobody.candidate, 0u);
  EXPECT_EQ(nobody.reason, "unfiltered");
  fleet[0].healthy = false;
  EXPECT_EQ(loaded->decide(request, fleet, rng, kSecond).candidate, 1u) << "health is no preference";
  const auto strict = from_yaml("{name: pipeline, filters: [{name: within_load, max_queue_s: 5, strict: true}]}");
  nobody = strict->decide(request, fleet, rng, kSecond);
  EXPECT_EQ(nobody.verdict, Verdict::kNobody);
  EXPECT_EQ(nobody.reason, "filtered");
}

TEST(Pipeline, WithinLoadCountsRequestsAndKv) {
  Rng rng(1);
  auto fleet = plain_fleet(3);
  fleet[0].running = 4;
  fleet[1].active_tokens = 95;
  fleet[1].capacity_tokens = 100;
  fleet[2].running = 3;
  const auto tested = from_yaml(
      "{name: pipeline, filters: [{name: within_load, max_requests: 4, max_used_kv: 0.9}], scorers: [queue_s]}");
  for (int n = 0; n < 20; ++n) EXPECT_EQ(tested->decide(prompt(100, n), fleet, rng, kSecond).candidate, 2u);
}

TEST(Pipeline, LabelsKeepPoolsApartAndRefuseRatherThanCross) {
  const Labels spot{{"pool", "spot"}};
  const Labels fast{{"pool", "fast"}, {"zone", "a"}};
  Rng rng(1);
  auto fleet = plain_fleet(3);
  fleet[0].labels = &spot;
  fleet[1].labels = &fast;
  const auto wants = [&](const std::string& filter) {
    return from_yaml("{name: pipeline, filters: [" + filter + "]}")->decide(prompt(100, 1), fleet, rng, kSecond);
  };
  EXPECT_EQ(wants("{name: label, key: pool, values: [fast]}").candidate, 1u);
  EXPECT_EQ(wants("{name: label, key: pool, values: [other, spot]}").candidate, 0u);
  EXPECT_EQ(wants("{name: label, key: zone}").candidate, 1u);
  EXPECT_EQ(wants("{name: label, key: pool, values: [none]}").verdict, Verdict::kNobody);
  EXPECT_EQ(wants("{name: label, key: pool, values: [none], strict: false}").verdict, Verdict::kRoute);
}

TEST(Pipeline, SoftmaxSpreadsByTemperature) {
  auto fleet = plain_fleet(3);
  fleet[1].running = 1;  // one dearer: at temperature 1, e times less often
  fleet[2].healthy = false;
  Rng rng(1);
  const auto tested = from_yaml("{name: pipeline, scorers: [running], picker: {name: softmax, temperature: 1}}");
  int dearer = 0;
  constexpr int kRounds = 20'000;
  for (int n = 0; n < kRounds; ++n) dearer += tested->decide(prompt(100, n), fleet, rng, kSecond).candidate == 1;
  EXPECT_NEAR(static_cast<double>(dearer) / kRounds, 1 / (1 + std::exp(1.0)), 0.015);
}

TEST(Pipeline, TwoChoicesTakesTheBetterOfTwoByChance) {
  auto fleet = plain_fleet(4);
  for (size_t n = 0; n < 4; ++n) fleet[n].running = static_cast<int>(n);
  Rng rng(1);
  const auto tested = from_yaml("{name: pipeline, scorers: [running], picker: two_choices}");
  std::array<int, 4> counts{};
  for (int n = 0; n < 12'000; ++n) ++counts[tested->decide(prompt(100, n), fleet, rng, kSecond).candidate];
  // Of the six pairs three have 0, two more have 1, one more has 2, and 3 never wins.
  EXPECT_NEAR(counts[0], 6000, 250);
  EXPECT_NEAR(counts[1], 4000, 250);
  EXPECT_NEAR(counts[2], 2000, 250);
  EXPECT_EQ(counts[3], 0);
}

TEST(Pipeline, LowestCanCallNearSumsATie) {
  auto fleet = plain_fleet(2);
  fleet[0].device_tokens = 100;
  fleet[0].running = 1;
  Rng rng(1);
  const auto exact = from_yaml("{name: pipeline, scorers: [prefill_s]}");
  EXPECT_EQ(exact->decide(prompt(1000, 1), fleet, rng, kSecond).candidate, 0u);
  const auto near = from_yaml("{name: pipeline, scorers: [prefill_s], picker: {name: lowest, tie: 0.2}}");
  EXPECT_EQ(near->decide(prompt(1000, 1), fleet, rng, kSecond).candidate, 1u) << "fewer requests";
}

TEST(Pipeline, MistakesNameTheirPlaceAndTheNearestWord) {
  EXPECT_THAT(error_of("name: pipeline\nfilters:\n  - {name: within_lod}\n"),
              AllOf(HasSubstr("pipeline.yaml:3:12"), HasSubstr("did you mean \"within_load\"?")));
  EXPECT_THAT(error_of("name: pipeline\nfilters:\n  - {name: within_load, max_queue: 5}\n"),
              AllOf(HasSubstr("pipeline.yaml:3:25"), HasSubstr("did you mean \"max_queue_s\"?")));
  EXPECT_THAT(error_of("name: pipeline\nfilters:\n  - {name: trust, max_queue_s: 5}\n"),
              AllOf(HasSubstr("pipeline.yaml:3:19"), HasSubstr("belongs to name: within_load, not to trust")));
  EXPECT_THAT(error_of("name: pipeline\nfilters: [{name: cached, of_best: 1.5}]\n"),
              AllOf(HasSubstr("pipeline.yaml:2:35"), HasSubstr("filters[0].of_best")));
  EXPECT_THAT(error_of("name: pipeline\nfilters: [{name: within_load, max_queue_s: 5s}]\n"),
              HasSubstr("pipeline.yaml:2:44"));
  EXPECT_THAT(error_of("{name: pipeline, filters: [{name: trust, at_least: exat}]}"), HasSubstr("\"exact\""));
  EXPECT_THAT(error_of("{name: pipeline, filters: [label]}"), HasSubstr("filters[0].key: is required but missing"));
  EXPECT_THAT(error_of("{name: pipeline, scorers: [prefil_s]}"), HasSubstr("did you mean \"prefill_s\"?"));
  EXPECT_THAT(error_of("{name: pipeline, scorers: []}"), HasSubstr("scorers"));
  EXPECT_THAT(error_of("{name: pipeline, scorers: [running, running]}"), HasSubstr("scorers[1]"));
  EXPECT_THAT(error_of("{name: pipeline, picker: {name: lowest, temperature: 1}}"),
              HasSubstr("belongs to name: softmax"));
  EXPECT_THAT(error_of("{name: pipeline, picker: lowst}"), HasSubstr("did you mean \"lowest\"?"));
  EXPECT_THAT(error_of("{name: random, filters: []}"), HasSubstr("belongs to name: pipeline"));
}

struct RulesHolder {
  PolicyConfig policy;
  std::vector<PolicyRule> policy_rules;
};

ConfigResult<RulesHolder> rules_from(const std::string& text) {
  StructSchema<RulesHolder> schema;
  schema.section("policy", &RulesHolder::policy, policy_schema())
      .list("policy_rules", &RulesHolder::policy_rules, policy_rule_schema());
  return parse_config(schema, text, "f.yaml");
}

TEST(PolicyRules, TheFirstThatMatchesDecides) {
  const auto parsed = rules_from(R"(
policy: {name: least_requests, label: usual}
policy_rules:
  - match: {tenants: [nightly, batch], headers: {x-priority: batch, x-job: "*"}}
    policy: random
  - match: {min_prompt_tokens: 1000, max_prompt_tokens: 2000}
    policy: {name: pipeline, label: long, scorers: [running]}
  - match: {models: [org/m]}
    policy: round_robin
)");
  ASSERT_TRUE(parsed.ok()) << parsed.error_text();
  const auto tested = make_policy(parsed.config->policy, parsed.config->policy_rules);
  Rng rng(1);
  auto fleet = plain_fleet(2);
  std::map<std::string, std::string> headers;
  RequestView request = prompt(500, 1);
  request.tenant = "batch";
  request.model = "m";
  request.header = [&headers](std::string_view name) { return std::string_view(headers[std::string(name)]); };
  const auto decided_by = [&] { return tested->decide(request, fleet, rng, kSecond).policy; };
  EXPECT_EQ(decided_by(), "usual");
  headers["x-priority"] = "batch";
  EXPECT_EQ(decided_by(), "usual") << "x-job is missing";
  headers["x-job"] = "42";
  EXPECT_EQ(decided_by(), "random");
  request.tenant = "day";
  EXPECT_EQ(decided_by(), "usual");
  request.prompt_tokens = 1000;
  EXPECT_EQ(decided_by(), "long");
  request.prompt_tokens = 2001;
  request.model = "org/m";
  EXPECT_EQ(decided_by(), "round_robin");
  request.header = nullptr;
  request.tenant = "batch";
  EXPECT_EQ(decided_by(), "round_robin") << "without headers none has a value";
}

TEST(PolicyRules, MistakesNameTheirPlace) {
  EXPECT_THAT(rules_from("policy_rules:\n  - policy: random\n").error_text(),
              HasSubstr("f.yaml:2:5: policy_rules[0].match: is required"));
  EXPECT_THAT(rules_from("policy_rules:\n  - {match: {}, policy: random}\n").error_text(),
              HasSubstr("matches every request"));
  EXPECT_THAT(rules_from("policy_rules:\n  - {match: {tenant: [a]}, policy: random}\n").error_text(),
              HasSubstr("did you mean \"tenants\"?"));
  EXPECT_THAT(rules_from("policy_rules:\n  - {match: {min_prompt_tokens: 9, max_prompt_tokens: 8}, policy: random}\n")
                  .error_text(),
              HasSubstr("is below min_prompt_tokens"));
  EXPECT_THAT(rules_from("policy_rules:\n  - {match: {tenants: [a]}, policy: randm}\n").error_text(),
              HasSubstr("did you mean \"random\"?"));
}

}  // namespace
}  // namespace warmpath
