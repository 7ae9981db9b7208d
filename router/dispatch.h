// Dispatch: one prompt on its way: a replica is chosen, the prompt sent, the answer followed; if the replica fails
// before anything of the answer was used, another one is tried; if it dies later, another one goes on from the tokens
// that came (one choice only: they are the next one's output_prefix); if every replica is full, the prompt waits.
//
// Thread safety: all methods and all calls to the listener on the exchange's I/O thread. Upstream threads only reach
// the relay inside, which carries their messages over.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proto/generate.h"
#include "router/http.h"
#include "router/receipt.h"
#include "router/services.h"

namespace warmpath {

class DispatchListener {
 public:
  virtual ~DispatchListener() = default;
  virtual void on_update(int prompt, GenerateUpdate& update) = 0;
  // The replica failed. True if all that came for this prompt can be taken back (nothing of it was shown), and has
  // been.
  virtual bool take_back(int prompt) = 0;
  // The last call: ok, or why there will be no (more) answer. Not after cancel().
  virtual void on_finished(int prompt, const Status& status) = 0;
};

struct DispatchJob {
  std::shared_ptr<ServedModel> model;
  int prompt_number = 0;
  GenerateRequest request;  // request_id and deadline_s are set here
  std::vector<Hash128> chain;
  RequestView view;
  MonotonicNs arrived_ns = 0;
  MonotonicNs deadline_ns = 0;  // 0 = none
  // For rules and the receipt.
  std::string request_id;
  std::string tenant;
  std::string asked_model;  // as the client wrote it
};

class Dispatch : public std::enable_shared_from_this<Dispatch> {
 public:
  Dispatch(Services& services, std::shared_ptr<HttpExchange> exchange, std::shared_ptr<DispatchListener> listener,
           DispatchJob job);

  void start();
  // The client has left, or nobody wants the answer any more: the replica's slot is freed. No further listener calls.
  // `outcome` is what the receipt says.
  void cancel(std::string_view outcome);

  // The latest decision, for headers and the access log.
  const Receipt& receipt() const { return *receipt_; }
  Trust trust() const { return trust_; }
  int attempts() const { return attempts_; }

 private:
  class Relay;

  void ask_admission();
  void wait_for_admission();
  void on_admitted();
  void leave_admission();
  AdmissionTurn admission_turn() const;
  void begin();
  void begin_round();
  void attempt();
  void send(Route route);
  void nobody();
  void wait_for_room();
  void look_for_room_later();
  void give_up_place();
  bool can_resume(const Status& status) const;
  void on_relayed(int attempt, std::vector<GenerateUpdate> updates, const std::optional<Status>& done);
  void take_update(GenerateUpdate& update);
  void on_failed(const Status& status);
  void finish(const Status& status);
  void close_receipt(std::string_view outcome);
  void explain_loss();
  double since_arrival_s() const;

  Services& services_;
  const std::shared_ptr<HttpExchange> exchange_;
  std::shared_ptr<DispatchListener> listener_;  // null once finished
  DispatchJob job_;
  std::shared_ptr<Receipt> receipt_;  // of the attempt under way; not touched again once the ring has it
  Trust trust_ = Trust::kPredicted;
  int64_t placed_tokens_ = 0;  // of what was predicted of the replica
  RecentRemovals::Mark removals_mark_ = 0;
  int attempts_ = 0;
  std::shared_ptr<Replica> replica_;
  std::shared_ptr<UpstreamCall> call_;
  std::vector<std::shared_ptr<Replica>> tried_;  // and those that cannot do what the request asks for
  bool filtered_ = false;                        // the policy's strict filters left nobody
  bool some_full_ = false;                       // one of `tried_` refused for want of room
  WaitingRoom::Ticket place_ = 0;                // in the waiting room; kept until the prompt seems accepted
  bool waiting_ = false;                         // stands there, and no replica is being asked
  bool looking_later_ = false;                   // a timer is set
  MonotonicNs waiting_since_ns_ = 0;
  Status last_failure_;
  std::vector<TokenId> said_;  // of the answer, while it may be resumed
  bool resumed_ = false;       // the replica goes on from another's output

  // --- session admission; null where there is none ---
  std::shared_ptr<AdmissionDesk> desk_;
  AdmissionDesk::Ticket ticket_ = 0;  // waits, as long as it is not 0
  bool admitted_ = false;
  MonotonicNs asked_ns_ = 0;
};

}  // namespace warmpath
