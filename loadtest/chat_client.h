// ChatClient: one streamed chat completion as an agent would send it, with what the load tests want to know of it.
// Thread safety: one thread at a time, but for interrupt().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "loadtest/http_client.h"

namespace warmpath {

struct ChatMessage {
  std::string role;
  std::string content;
};

struct ChatTurn {
  std::string text;
  std::string finish_reason;
  std::string replica;  // the gateway's routing header
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
  double first_token_s = 0;  // request sent to the first event with content
  double total_s = 0;
  std::vector<double> token_times_s;  // of every event with content, since the request was sent
};

class ChatClient {
 public:
  using Headers = HttpClient::Headers;

  ChatClient(std::string host, uint16_t port, double timeout_s) : http_(std::move(host), port, timeout_s) {}

  // Temperature 0. `exactly`: max_tokens tokens whatever the model says. A reply other than 200, or a stream that ends
  // without [DONE], is an error that carries what came.
  Result<ChatTurn> ask(std::string_view model, const std::vector<ChatMessage>& messages, int max_tokens,
                       const Headers& headers = {}, bool exactly = false);

  // From any thread: an ask() in progress fails soon.
  void interrupt() { http_.interrupt(); }

 private:
  HttpClient http_;
};

}  // namespace warmpath
