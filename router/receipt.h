// Receipt: the record of one routing decision, and what came of it. No prompt text, no keys.
// Thread safety: a value; receipt_json() is pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policies/policy.h"
#include "router/served_model.h"

namespace warmpath {

// Where cached tokens went that some replica held and this request did not get.
enum class LossReason : uint8_t {
  kNone,          // it got the best there was
  kCold,          // nobody held any of it
  kOtherReplica,  // another replica held more, and the policy found it dearer
  kEvicted,       // the chosen replica had held more by its own events, and no longer did
  kExpectation,   // more was expected of it (a placement, or no event stream) than it turned out to hold
};
inline constexpr int kLossReasons = 5;
std::string_view loss_reason_name(LossReason reason);

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

struct Receipt {
  std::string request_id;
  double at_s = 0;  // seconds since 1970
  std::string tenant;
  std::string model;
  std::string replica;      // empty: nobody took it
  std::string_view policy;  // static text, as all views here
  std::string_view reason;  // the policy's one word
  int attempt = 1;          // 2 and up: after a failover
  int prompt = 0;           // index of the prompt within the request
  std::vector<ReceiptCandidate> candidates;
  int64_t prompt_tokens = 0;
  int64_t predicted_tokens = 0;
  int64_t delivered_tokens = 0;
  int64_t tail_tokens = 0;  // beyond those: copied from a block that only begins alike
  int64_t best_tokens = 0;
  int64_t base_tokens = 0;  // every usable replica held these
  LossReason loss = LossReason::kNone;
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
// From predicted, delivered and best tokens; `trust` is the chosen replica's at decision time.
LossReason explain_loss(const Receipt& receipt, Trust trust);

std::string receipt_json(const Receipt& receipt);

}  // namespace warmpath
