// Receipt: the record of one routing decision, and what came of it. No prompt text, no keys.
// Thread safety: a value; receipt_json() is pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policies/policy.h"
#include "router/served_model.h"

namespace warmpath {

// Why tokens of this prompt had to be computed although somebody had computed them before.
enum class LossReason : uint8_t {
  kNone,           // they had not
  kCold,           // nobody held anything of the prompt, and its conversation has not been here before
  kEvicted,        // its conversation's last prompt had them, and nobody holds them any more; or the chosen replica let
                   // go of them between the decision and the prefill
  kWrongReplica,   // another replica held more, and the policy found it dearer
  kStaleIndex,     // the chosen replica was believed to hold more: by a placement that did not come true, or without a
                   // complete event stream
  kTokenMismatch,  // the prompt no longer begins with its conversation's last one; or the chosen replica says that it
                   // holds these identities, has not let go of them, and did not find them
};
inline constexpr size_t kLossReasons = 6;
std::string_view loss_reason_name(LossReason reason);
using LostTokens = std::array<int64_t, kLossReasons>;  // by reason

struct ReceiptCandidate {
  std::string replica;
  Trust trust = Trust::kPredicted;
  bool eligible = false;
  int32_t running = 0;
  int32_t queued = 0;
  int64_t device_tokens = 0;
  int64_t host_tokens = 0;
  int64_t disk_tokens = 0;
  int64_t placed_tokens = 0;
  CandidateCost cost;
};

struct ReceiptShadow {
  std::string policy;
  std::string replica;  // empty: nobody
  double regret_s = 0;  // ShadowChoice
};

struct Receipt {
  std::string request_id;
  double at_s = 0;  // seconds since 1970
  std::string tenant;
  std::string model;
  std::string replica;      // empty: nobody took it
  std::string policy;       // its label, or its name
  std::string_view reason;  // the policy's one word; static text, as all views here
  int attempt = 1;          // 2 and up: after a failover
  int prompt = 0;           // index of the prompt within the request
  std::vector<ReceiptCandidate> candidates;
  std::vector<ReceiptShadow> shadows;
  int64_t prompt_tokens = 0;
  int64_t predicted_tokens = 0;
  int64_t delivered_tokens = 0;
  int64_t tail_tokens = 0;  // beyond those: copied from a block that only begins alike
  int64_t best_tokens = 0;
  int64_t base_tokens = 0;     // every usable replica held these
  int64_t earlier_tokens = 0;  // its conversation's last prompt had these: what one boundless cache would have held
  bool rewritten = false;      // but this prompt does not begin with them
  LossReason loss = LossReason::kNone;  // the one with the most tokens
  LostTokens lost_tokens{};
  int64_t completion_tokens = 0;
  std::string_view outcome;  // "ok", a status code's name, or "drain_over"; of static text
  double decide_s = 0;
  double queue_s = 0;        // at the replica
  double prefill_s = 0;      // at the replica
  double first_token_s = 0;  // from arrival at the gateway
  double total_s = 0;        // likewise

  size_t bytes() const;  // about what it occupies
};

// Fills everything known at decision time.
void describe_route(const Route& route, Receipt& receipt);

// Of the replica that was asked.
struct LossFacts {
  Trust trust = Trust::kPredicted;  // when it was chosen
  int64_t placed_tokens = 0;        // of what was predicted, only expected
  bool may_have_gone = false;       // the first block predicted and not delivered, since then
};
// Fills `loss` and `lost_tokens` from the other tokens, in whole blocks.
void attribute_loss(const LossFacts& facts, Receipt& receipt);

std::string receipt_json(const Receipt& receipt);

}  // namespace warmpath
