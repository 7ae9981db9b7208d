// Any bytes as a request body of any wire: parsing must survive them, and so must reading the messages and writing
// the error. The first byte picks the wire.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "router/wire/chat.h"
#include "router/wire/completions.h"
#include "router/wire/messages.h"
#include "router/wire/responses.h"

namespace {

void check_error(const warmpath::WireError& error) {
  if (error.status < 400 || error.message.empty() || warmpath::error_body(error).empty() ||
      warmpath::anthropic_error_body(error, "r").empty())
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static warmpath::MessageCache cache(size_t{1} << 20);
  std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  body.reserve(body.size() + 64);
  warmpath::WireError error;
  warmpath::Conversation conversation;
  std::vector<std::string> left_out;
  bool good = false;
  if (data[0] % 4 == 0) {
    warmpath::ChatRequest request;
    good =
        warmpath::parse_chat(body, request, error) && warmpath::read_conversation(request, cache, conversation, error);
  } else if (data[0] % 4 == 1) {
    warmpath::CompletionRequest request;
    good = warmpath::parse_completion(body, request, error);
  } else if (data[0] % 4 == 2) {
    warmpath::MessagesRequest request;
    good = warmpath::parse_messages(body, false, request, error) &&
           warmpath::read_messages(request, cache, conversation, left_out, error);
  } else {
    warmpath::ResponsesRequest request;
    std::shared_ptr<const warmpath::ResponseTools> tools;
    good = warmpath::parse_responses(body, request, error) &&
           warmpath::read_responses(request, cache, conversation, tools, left_out, error);
  }
  if (!good) check_error(error);
  return 0;
}
