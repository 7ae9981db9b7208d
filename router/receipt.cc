#include "router/receipt.h"

#include <algorithm>
#include <cmath>

#include "router/wire/json_writer.h"

namespace warmpath {

namespace {

// Milliseconds would do, but seconds are the unit everywhere; six digits keep microseconds.
void append_seconds(std::string& out, double seconds) { append_json_number(out, std::round(seconds * 1e6) / 1e6); }

class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) { out_ += '{'; }
  void text(std::string_view key, std::string_view value) {
    name(key);
    append_json_string(out_, value);
  }
  void number(std::string_view key, int64_t value) {
    name(key);
    append_json_number(out_, value);
  }
  void seconds(std::string_view key, double value) {
    name(key);
    append_seconds(out_, value);
  }
  void flag(std::string_view key, bool value) {
    name(key);
    out_ += value ? "true" : "false";
  }
  void name(std::string_view key) {
    if (!first_) out_ += ',';
    first_ = false;
    append_json_string(out_, key);
    out_ += ':';
  }
  void close() { out_ += '}'; }

 private:
  std::string& out_;
  bool first_ = true;
};

void append_candidate(std::string& out, const ReceiptCandidate& candidate) {
  ObjectWriter object(out);
  object.text("replica", candidate.replica);
  object.text("trust", trust_name(candidate.trust));
  object.flag("eligible", candidate.eligible);
  object.number("running", candidate.running);
  object.number("queued", candidate.queued);
  object.number("device_tokens", candidate.device_tokens);
  object.number("host_tokens", candidate.host_tokens);
  object.number("disk_tokens", candidate.disk_tokens);
  object.number("placed_tokens", candidate.placed_tokens);
  object.name("cost");
  ObjectWriter cost(out);
  cost.seconds("queue_s", candidate.cost.queue_s);
  cost.seconds("prefill_s", candidate.cost.prefill_s);
  cost.seconds("fetch_s", candidate.cost.fetch_s);
  cost.seconds("price_s", candidate.cost.price_s);
  cost.seconds("decode_s", candidate.cost.decode_s);
  cost.seconds("base_credit_s", candidate.cost.base_credit_s);
  cost.seconds("patience_credit_s", candidate.cost.patience_credit_s);
  cost.seconds("total", candidate.cost.total);
  cost.close();
  object.close();
}

}  // namespace

std::string_view loss_reason_name(LossReason reason) {
  switch (reason) {
    case LossReason::kNone:
      return "none";
    case LossReason::kCold:
      return "cold";
    case LossReason::kEvicted:
      return "evicted";
    case LossReason::kWrongReplica:
      return "wrong_replica";
    case LossReason::kStaleIndex:
      return "stale_index";
    case LossReason::kTokenMismatch:
      return "token_mismatch";
  }
  return "unknown";
}

size_t Receipt::bytes() const {
  size_t total = sizeof(Receipt) + request_id.size() + tenant.size() + model.size() + replica.size() + policy.size();
  for (const ReceiptShadow& shadow : shadows) total += sizeof shadow + shadow.policy.size() + shadow.replica.size();
  for (const ReceiptCandidate& candidate : candidates) total += sizeof candidate + candidate.replica.size();
  return total;
}

void describe_route(const Route& route, Receipt& receipt) {
  receipt.policy = route.policy;
  receipt.reason = route.decision.reason;
  receipt.replica = route.replica ? route.replica->name() : "";
  receipt.predicted_tokens = route.predicted_tokens;
  receipt.best_tokens = route.best_tokens;
  receipt.base_tokens = route.base_tokens;
  receipt.decide_s = route.decide_s;
  receipt.shadows.clear();
  for (const ShadowChoice& choice : route.shadows) {
    receipt.shadows.push_back(
        {choice.policy, choice.candidate ? route.replicas[*choice.candidate]->name() : "", choice.regret_s});
  }
  receipt.candidates.clear();
  receipt.candidates.reserve(route.candidates.size());
  for (size_t n = 0; n < route.candidates.size(); ++n) {
    const Candidate& from = route.candidates[n];
    ReceiptCandidate& to = receipt.candidates.emplace_back();
    to.replica = route.replicas[n]->name();
    to.trust = from.trust;
    to.running = from.running;
    to.queued = from.queued;
    to.device_tokens = from.device_tokens;
    to.host_tokens = from.host_tokens;
    to.disk_tokens = from.disk_tokens;
    to.placed_tokens = from.placed_tokens;
    if (n < route.decision.costs.size()) to.cost = route.decision.costs[n];
    to.eligible = from.healthy && !from.draining;
  }
}

void attribute_loss(const LossFacts& facts, Receipt& receipt) {
  // Whole blocks are what caches hold; the last prompt token is always computed.
  const auto whole = [](int64_t tokens) { return std::max<int64_t>(tokens, 0) / kBlockTokens * kBlockTokens; };
  const int64_t delivered = whole(receipt.delivered_tokens);
  const int64_t predicted = whole(receipt.predicted_tokens);
  const int64_t best = whole(receipt.best_tokens);
  const int64_t earlier = std::min(receipt.earlier_tokens, whole(receipt.prompt_tokens - 1));
  receipt.lost_tokens = {};
  const auto lose = [&](LossReason reason, int64_t tokens) {
    receipt.lost_tokens[static_cast<size_t>(reason)] += std::max<int64_t>(tokens, 0);
  };
  lose(receipt.rewritten ? LossReason::kTokenMismatch : LossReason::kEvicted,
       earlier - std::max({best, predicted, delivered}));
  lose(LossReason::kWrongReplica, best - std::max(predicted, delivered));
  if (predicted > delivered) {
    const bool held_came_true = delivered >= whole(receipt.predicted_tokens - facts.placed_tokens);
    LossReason reason = LossReason::kTokenMismatch;
    if (facts.trust != Trust::kExact || (facts.placed_tokens > 0 && held_came_true)) {
      reason = LossReason::kStaleIndex;
    } else if (facts.may_have_gone) {
      reason = LossReason::kEvicted;
    }
    lose(reason, predicted - delivered);
  }
  if (delivered == 0 && best == 0 && earlier == 0) lose(LossReason::kCold, whole(receipt.prompt_tokens));
  const auto most = std::max_element(receipt.lost_tokens.begin(), receipt.lost_tokens.end());
  receipt.loss = *most > 0 ? static_cast<LossReason>(most - receipt.lost_tokens.begin()) : LossReason::kNone;
}

std::string receipt_json(const Receipt& receipt) {
  std::string out;
  ObjectWriter object(out);
  object.text("request_id", receipt.request_id);
  object.seconds("at", receipt.at_s);
  object.text("tenant", receipt.tenant);
  object.text("model", receipt.model);
  object.text("replica", receipt.replica);
  object.text("policy", receipt.policy);
  object.text("reason", receipt.reason);
  object.number("attempt", receipt.attempt);
  object.number("prompt", receipt.prompt);
  object.text("outcome", receipt.outcome);
  object.number("prompt_tokens", receipt.prompt_tokens);
  object.number("predicted_cached_tokens", receipt.predicted_tokens);
  object.number("delivered_cached_tokens", receipt.delivered_tokens);
  object.number("delivered_tail_tokens", receipt.tail_tokens);
  object.number("best_cached_tokens", receipt.best_tokens);
  object.number("base_cached_tokens", receipt.base_tokens);
  object.number("earlier_tokens", receipt.earlier_tokens);
  object.text("lost", loss_reason_name(receipt.loss));
  object.name("lost_tokens");
  ObjectWriter lost(out);
  for (size_t reason = 0; reason < kLossReasons; ++reason) {
    if (receipt.lost_tokens[reason] == 0) continue;
    lost.number(loss_reason_name(static_cast<LossReason>(reason)), receipt.lost_tokens[reason]);
  }
  lost.close();
  object.number("completion_tokens", receipt.completion_tokens);
  object.number("resumed_tokens", receipt.resumed_tokens);
  object.seconds("decide_s", receipt.decide_s);
  object.seconds("admission_s", receipt.admission_s);
  object.seconds("queue_s", receipt.queue_s);
  object.seconds("prefill_s", receipt.prefill_s);
  object.seconds("first_token_s", receipt.first_token_s);
  object.seconds("total_s", receipt.total_s);
  object.name("candidates");
  out += '[';
  for (size_t n = 0; n < receipt.candidates.size(); ++n) {
    if (n > 0) out += ',';
    append_candidate(out, receipt.candidates[n]);
  }
  out += ']';
  object.name("shadows");
  out += '[';
  for (size_t n = 0; n < receipt.shadows.size(); ++n) {
    if (n > 0) out += ',';
    ObjectWriter shadow(out);
    shadow.text("policy", receipt.shadows[n].policy);
    shadow.text("replica", receipt.shadows[n].replica);
    shadow.seconds("regret_s", receipt.shadows[n].regret_s);
    shadow.close();
  }
  out += ']';
  object.close();
  return out;
}

}  // namespace warmpath
