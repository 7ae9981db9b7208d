// Answer: one completion request from its arrival to its last byte: prepare, dispatch every prompt, relay what comes,
// account. Streamed or whole.
//
// What the client has seen decides what a failure becomes. Before the headers: an error with its own status. After them
// but before any text: another replica, silently. After text: the connection is aborted, never ended cleanly, because a
// clean end would pass for a finished answer.
// Thread safety: everything on the exchange's I/O thread, except that prepare() may run on a worker.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "router/answer_choices.h"
#include "router/dispatch.h"
#include "router/prepared_request.h"
#include "router/wire/answer_writer.h"

namespace warmpath {

class Answer final : public DispatchListener, public std::enable_shared_from_this<Answer> {
 public:
  Answer(Services& services, std::shared_ptr<HttpExchange> exchange, Wire wire, Identity identity,
         std::string request_id, std::shared_ptr<const LiveSettings> settings);

  // Takes a place among the requests in progress, or answers 429. All the rest follows by itself.
  void begin();

 private:
  void on_update(int prompt, GenerateUpdate& update) override;
  bool take_back(int prompt) override;
  void on_finished(int prompt, const Status& status) override;

  void prepare_body();
  void launch();
  DispatchJob job_for(size_t prompt);
  void relay_news();
  void finish_well();
  void fail(const WireError& error, std::string_view outcome = {});
  void client_gone();
  void drain_over();
  // `outcome` for the log, `cut` for the receipts of prompts that are still with a replica.
  void over(int status, std::string_view outcome, std::string_view cut = "cancelled");

  void arm_timer();
  void on_timer();
  void open_stream();
  AnswerUsage usage() const;  // so far
  HttpHeaders headers(std::string_view content_type) const;
  double since_arrival_s() const;

  Services& services_;
  const std::shared_ptr<HttpExchange> exchange_;
  const Wire wire_;
  const Identity identity_;
  const std::string request_id_;
  const std::shared_ptr<const LiveSettings> settings_;
  const MonotonicNs arrived_ns_;
  MonotonicNs deadline_ns_ = 0;

  PreparedRequest prepared_;
  // A worker has `prepared_` and `prepare_error_` to itself until launch() runs.
  bool preparing_ = false;
  bool client_left_ = false;  // meanwhile
  bool drain_over_ = false;   // meanwhile
  bool prepared_well_ = false;
  WireError prepare_error_;

  std::unique_ptr<AnswerWriter> writer_;
  std::vector<std::shared_ptr<Dispatch>> dispatches_;
  std::optional<AnswerChoices> choices_;  // once prepared
  size_t prompts_open_ = 0;
  bool streaming_ = false;  // headers are sent
  bool over_ = false;
  bool in_progress_ = false;
  MonotonicNs last_write_ns_ = 0;
};

}  // namespace warmpath
