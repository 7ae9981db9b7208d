// MockHttpAnswer: a RequestSink that turns tokens into the bytes of one HTTP reply of the OpenAI wire.
// Thread safety: as RequestSink, and tolerant of calls after the end.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "engine/request_sink.h"
#include "text/detokenizer.h"

namespace warmpath {

class MockHttpAnswer final : public RequestSink {
 public:
  struct Shape {
    std::string id;
    std::string model;
    bool chat = true;     // else text completions
    bool stream = false;  // server-sent events
    int64_t prompt_tokens = 0;
  };
  // `send` gets bytes of the reply as they become ready; `last` with the final ones.
  using Send = std::function<void(std::string bytes, bool last)>;

  MockHttpAnswer(Shape shape, const Tokenizer& tokenizer, Send send);

  void on_update(GenerateUpdate update) override;
  void on_done(Status status) override;

 private:
  std::string event(const std::string& delta_text, const char* finish_reason) const;
  std::string usage() const;

  const Shape shape_;
  const Send send_;
  std::mutex mutex_;
  Detokenizer detokenizer_;
  std::string text_;
  FinishReason reason_ = FinishReason::kStop;
  int64_t completion_tokens_ = 0;
  int64_t cached_tokens_ = 0;
  bool begun_ = false;  // the head of the streamed reply went out
  bool ended_ = false;
};

// A whole reply with a JSON body.
std::string http_json_reply(int status, const std::string& body);
std::string http_error_reply(const Status& status);

}  // namespace warmpath
