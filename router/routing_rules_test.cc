// Rules, labels and shadow policies of a model, through a whole gateway.
#include <gmock/gmock.h>

#include "base/block_chain.h"
#include "router/gateway_fixture.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;

class RoutingRulesTest : public GatewayFixture {
 protected:
  ModelConfig& model() { return config_.models[0]; }
  static PolicyConfig pool(const std::string& name) {
    PolicyConfig policy;
    policy.name = "pipeline";
    policy.label = "only-" + name;
    PipelineFilter filter;
    filter.name = "label";
    filter.label = {"pool", {name}};
    policy.pipeline.filters = {filter};
    return policy;
  }
};

TEST_F(RoutingRulesTest, HeadersLengthsAndNamesChooseThePolicy) {
  model().endpoints = {{"a", "", {{"pool", "spot"}}}, {"b", "", {{"pool", "fast"}}}};
  PolicyRule batch{{}, pool("spot")};
  batch.match.headers = {{"x-priority", "batch"}};
  PolicyRule by_name{{}, pool("fast")};
  by_name.match.models = {"alias-m"};
  PolicyRule long_ones{{}, pool("none")};
  long_ones.match.min_prompt_tokens = 500;
  model().policy_rules = {batch, by_name, long_ones};
  start();
  reply_always("x");
  for (int n = 0; n < 3; ++n) {
    const SeenAnswer answer = ask("POST", kChatPath, chat("hi"), {{"X-Priority", "batch"}});
    EXPECT_EQ(answer.header("x-warmpath-replica"), "a");
    EXPECT_EQ(answer.header("x-warmpath-policy"), "only-spot");
  }
  for (int n = 0; n < 3; ++n) {
    const std::string body = R"({"model":"alias-m","messages":[{"role":"user","content":"hi"}]})";
    EXPECT_EQ(ask("POST", kChatPath, body).header("x-warmpath-replica"), "b");
  }
  EXPECT_EQ(ask("POST", kChatPath, chat("hi")).header("x-warmpath-policy"), "round_robin");
  const SeenAnswer refused = ask("POST", kChatPath, chat(std::string(600, 'k')));
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("passes the policy's filters"));
  EXPECT_FALSE(refused.header("retry-after").empty());

  // Labels change with a reload; the replica, and what is known of it, stays.
  const auto before = core_->fleet().find("m")->replicas();
  model().endpoints[1].labels = {{"pool", "none"}};
  ASSERT_TRUE(core_->reload(config_).ok());
  EXPECT_EQ(core_->fleet().find("m")->replicas(), before);
  EXPECT_EQ(ask("POST", kChatPath, chat(std::string(600, 'k'))).header("x-warmpath-replica"), "b");
}

TEST_F(RoutingRulesTest, ShadowsTellTheirRegretAndAreNotObeyed) {
  config_.index.placement_s = 0;
  PolicyConfig ours;
  ours.label = "ours";
  PolicyConfig alike;
  alike.name = "round_robin";
  model().shadow_policies = {ours, alike};
  start();
  reply_always("x");
  const std::string prompt(320, 'k');
  const std::vector<TokenId> tokens(320, byte_token('k'));
  const Hash128 root = chain_root({1, 2}, "", "");
  b_->send_events({BlocksStored{Tier::kDevice, root, chain_of(root, tokens)}});
  const auto replicas = core_->fleet().find("m")->replicas();
  ASSERT_TRUE(eventually([&] {
    return core_->fleet().index().read(
        [&](const RadixIndex& index) { return index.replica_view(replicas[1]->index_id()).resident_blocks[0] == 20; });
  }));
  const SeenAnswer answer = ask("POST", "/v1/completions", R"({"model":"m","prompt":")" + prompt + "more\"}");
  EXPECT_EQ(answer.header("x-warmpath-replica"), "a");
  // 324 tokens, of which b holds 320, at the prior rates: 3 * (0.16752488 - 0.00701288) s.
  EXPECT_THAT(ask_admin("/receipts?limit=1").body,
              HasSubstr(R"("shadows":[{"policy":"ours","replica":"b","regret_s":0.481536},)"
                        R"({"policy":"round_robin","replica":"a","regret_s":0}])"));
  const std::string metrics = ask_admin("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("warmpath_shadow_regret_seconds_total{model=\"m\",shadow=\"ours\"} 0.481536"));
  EXPECT_THAT(metrics, HasSubstr("warmpath_shadow_choices_total{choice=\"other\",model=\"m\",shadow=\"ours\"} 1"));
  EXPECT_THAT(metrics,
              HasSubstr("warmpath_shadow_choices_total{choice=\"same\",model=\"m\",shadow=\"round_robin\"} 1"));
  // The second goes to b, as ours says.
  ask("POST", "/v1/completions", R"({"model":"m","prompt":")" + prompt + "more\"}");
  EXPECT_THAT(ask_admin("/metrics").body,
              HasSubstr("warmpath_shadow_choices_total{choice=\"same\",model=\"m\",shadow=\"ours\"} 1"));
}

TEST(RoutingRulesConfig, MistakesAreNamed) {
  const auto error_of = [](const std::string& model) {
    return parse_config(gateway_schema(),
                        "models:\n  - {name: m, aliases: [org/m], endpoints: [\"unix:/a\"], " + model + "}\n", "g.yaml")
        .error_text();
  };
  EXPECT_EQ(error_of("policy_rules: [{match: {models: [org/m, m]}, policy: random}]"), "");
  EXPECT_THAT(error_of("policy_rules: [{match: {models: [org/n]}, policy: random}]"),
              HasSubstr("nobody asks for m as \"org/n\"; did you mean \"org/m\"?"));
  EXPECT_THAT(error_of("shadow_policies: [random, random]"), HasSubstr("give one of them a label"));
  EXPECT_EQ(error_of("shadow_policies: [random, {name: random, label: other}]"), "");
  EXPECT_THAT(error_of("policy: {name: random, label: \"a b\"}"), HasSubstr("visible ASCII"));
  EXPECT_THAT(error_of("policy_rules: [{match: {header: {a: b}}, policy: random}]"),
              HasSubstr("did you mean \"headers\"?"));
}

}  // namespace
}  // namespace warmpath
