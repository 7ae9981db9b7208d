#include "policies/policy_rules.h"

#include <algorithm>

namespace warmpath {

namespace {

bool lists(const std::vector<std::string>& list, std::string_view word) {
  return list.empty() || std::find(list.begin(), list.end(), word) != list.end();
}

class RuledPolicy final : public Policy {
 public:
  RuledPolicy(const PolicyConfig& config, const std::vector<PolicyRule>& rules)
      : config_(config), otherwise_(make_policy(config)) {
    for (const PolicyRule& rule : rules) arms_.push_back({rule, make_policy(rule.policy)});
  }

  std::string_view name() const override { return otherwise_->name(); }

  Decision decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                  MonotonicNs now) override {
    for (const Arm& arm : arms_) {
      if (!arm.rule.match.holds(request)) continue;
      Decision decision = arm.policy->decide(request, candidates, rng, now);
      decision.policy = arm.rule.policy.shown_name();
      return decision;
    }
    Decision decision = otherwise_->decide(request, candidates, rng, now);
    decision.policy = config_.shown_name();
    return decision;
  }

  void forget(ReplicaId replica) override {
    for (const Arm& arm : arms_) arm.policy->forget(replica);
    otherwise_->forget(replica);
  }

 private:
  struct Arm {
    PolicyRule rule;
    std::unique_ptr<Policy> policy;
  };

  const PolicyConfig config_;
  const std::unique_ptr<Policy> otherwise_;
  std::vector<Arm> arms_;
};

}  // namespace

bool PolicyMatch::holds(const RequestView& request) const {
  if (!lists(tenants, request.tenant) || !lists(models, request.model)) return false;
  if (min_prompt_tokens && request.prompt_tokens < *min_prompt_tokens) return false;
  if (max_prompt_tokens && request.prompt_tokens > *max_prompt_tokens) return false;
  return std::all_of(headers.begin(), headers.end(), [&](const auto& wanted) {
    const std::string_view value = request.header ? request.header(wanted.first) : std::string_view();
    return !value.empty() && (wanted.second == "*" || wanted.second == value);
  });
}

StructSchema<PolicyRule> policy_rule_schema() {
  StructSchema<PolicyMatch> match("Which requests; all that is written must hold.");
  match
      .field("tenants", &PolicyMatch::tenants,
             {.doc = "Requests with a key of one of these tenants.", .max_items = 10'000, .default_note = "any"})
      .field("models", &PolicyMatch::models,
             {.doc = "Requests that ask for the model by one of these names.",
              .max_items = 1000,
              .default_note = "its name and its aliases"})
      .field("headers", &PolicyMatch::headers,
             {.doc = "Requests with these header fields; the value must be equal, or is `*` for any.",
              .max_items = 100,
              .default_note = "any"})
      .field("min_prompt_tokens", &PolicyMatch::min_prompt_tokens,
             {.doc = "Prompts of at least so many tokens.", .min = 0, .unit = "tokens"})
      .field("max_prompt_tokens", &PolicyMatch::max_prompt_tokens,
             {.doc = "Prompts of at most so many tokens.", .min = 0, .unit = "tokens"})
      .check([](const PolicyMatch& read, CheckContext& context) {
        if (read == PolicyMatch{}) context.error("", "matches every request; write what it is to match");
        if (read.min_prompt_tokens && read.max_prompt_tokens && *read.min_prompt_tokens > *read.max_prompt_tokens) {
          context.error("max_prompt_tokens", "is below min_prompt_tokens, so no prompt has such a length");
        }
      });
  StructSchema<PolicyRule> rule("Another policy for some requests. The first rule that matches decides.");
  rule.section("match", &PolicyRule::match, match, {.doc = "Which requests.", .required = true})
      .section("policy", &PolicyRule::policy, policy_schema(), {.doc = "Who decides for them.", .required = true});
  return rule;
}

std::unique_ptr<Policy> make_policy(const PolicyConfig& config, const std::vector<PolicyRule>& rules) {
  if (rules.empty()) return make_policy(config);
  return std::make_unique<RuledPolicy>(config, rules);
}

}  // namespace warmpath
