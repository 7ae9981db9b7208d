// Any bytes as a request body of either wire: parsing must survive them, and so must reading the messages and writing
// the error. The first byte picks the wire.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "router/wire/chat.h"
#include "router/wire/completions.h"

namespace {

void check_error(const warmpath::WireError& error) {
  if (error.status < 400 || error.message.empty() || warmpath::error_body(error).empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static warmpath::MessageCache cache(size_t{1} << 20);
  std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  body.reserve(body.size() + 64);
  warmpath::WireError error;
  if (data[0] % 2 == 0) {
    warmpath::ChatRequest request;
    warmpath::Conversation conversation;
    if (!warmpath::parse_chat(body, request, error) ||
        !warmpath::read_conversation(request, cache, conversation, error)) {
      check_error(error);
    }
  } else {
    warmpath::CompletionRequest request;
    if (!warmpath::parse_completion(body, request, error)) check_error(error);
  }
  return 0;
}
