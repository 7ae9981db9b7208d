#include "loadtest/chat_client.h"

#include <simdjson.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>

namespace warmpath {

namespace {

std::string request_body(std::string_view model, const std::vector<ChatMessage>& messages, int max_tokens,
                         bool exactly) {
  boost::json::array list;
  for (const ChatMessage& message : messages) {
    list.push_back(boost::json::object{{"role", message.role}, {"content", message.content}});
  }
  boost::json::object body{{"messages", std::move(list)},
                           {"max_tokens", max_tokens},
                           {"temperature", 0},
                           {"stream", true},
                           {"stream_options", boost::json::object{{"include_usage", true}}}};
  if (exactly) body["min_tokens"] = max_tokens;
  if (!model.empty()) body["model"] = std::string(model);
  return boost::json::serialize(body);
}

// Splits a body into `data:` payloads, however the bytes were cut.
class EventReader {
 public:
  template <class OnData>
  void feed(std::string_view bytes, OnData on_data) {
    pending_.append(bytes);
    size_t start = 0;
    for (size_t end; (end = pending_.find('\n', start)) != std::string::npos; start = end + 1) {
      const std::string_view line(pending_.data() + start, end - start);
      if (line.rfind("data: ", 0) == 0) on_data(line.substr(6));
    }
    pending_.erase(0, start);
  }

 private:
  std::string pending_;
};

}  // namespace

Result<ChatTurn> ChatClient::ask(std::string_view model, const std::vector<ChatMessage>& messages, int max_tokens,
                                 const Headers& headers, bool exactly) {
  using Seconds = std::chrono::duration<double>;
  Headers all = headers;
  all.emplace_back("content-type", "application/json");
  const std::string body = request_body(model, messages, max_tokens, exactly);

  ChatTurn turn;
  EventReader events;
  simdjson::dom::parser parser;
  bool done = false;
  std::string raw;
  const auto start = std::chrono::steady_clock::now();
  const auto on_event = [&](std::string_view data) {
    if (data == "[DONE]") {
      done = true;
      return;
    }
    simdjson::dom::element event;
    if (parser.parse(simdjson::padded_string(data)).get(event) != simdjson::SUCCESS) return;
    std::string_view text;
    if (event.at_pointer("/choices/0/delta/content").get(text) == simdjson::SUCCESS && !text.empty()) {
      turn.text.append(text);
      turn.token_times_s.push_back(Seconds(std::chrono::steady_clock::now() - start).count());
    }
    if (event.at_pointer("/choices/0/finish_reason").get(text) == simdjson::SUCCESS) turn.finish_reason = text;
    int64_t number = 0;
    if (event.at_pointer("/usage/prompt_tokens").get(number) == simdjson::SUCCESS) turn.prompt_tokens = number;
    if (event.at_pointer("/usage/completion_tokens").get(number) == simdjson::SUCCESS) turn.completion_tokens = number;
    if (event.at_pointer("/usage/prompt_tokens_details/cached_tokens").get(number) == simdjson::SUCCESS) {
      turn.cached_tokens = number;
    }
  };
  auto reply = http_.request("POST", "/v1/chat/completions", all, body, [&](std::string_view bytes) {
    if (raw.size() < 4096) raw.append(bytes);
    events.feed(bytes, on_event);
    return true;
  });
  if (!reply.ok()) return reply.status();
  turn.total_s = Seconds(std::chrono::steady_clock::now() - start).count();
  if (reply->status != 200) return internal_error("HTTP " + std::to_string(reply->status) + ": " + raw);
  if (!done) return internal_error("the stream ended without [DONE]: " + raw);
  turn.first_token_s = turn.token_times_s.empty() ? turn.total_s : turn.token_times_s.front();
  turn.replica = reply->header("x-warmpath-replica");
  return turn;
}

}  // namespace warmpath
