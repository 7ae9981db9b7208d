// Requests that released agents really sent (recordings beside the source tree): every one is accepted, and within a session
// each prompt begins with the whole one before it, to the token.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "router/wire/chat.h"
#include "router/wire/json_reader.h"
#include "router/wire/messages.h"
#include "router/wire/responses.h"
#include "text/prompt_encoder.h"
#include "text/vocabulary.h"

namespace warmpath {
namespace {

namespace fs = std::filesystem;

struct Recorded {
  std::string name;
  std::string path;   // of the URL
  std::string body;   // followed by padding
  std::string tools;  // as they stand in it
};

fs::path folder() { return fs::path(WARMPATH_SOURCE_DIR) / "../shared/agent_requests"; }

void read_recorded(const fs::path& file, std::vector<Recorded>& out) {
  std::ifstream in(file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  text.reserve(text.size() + 64);
  Recorded recorded;
  recorded.name = file.parent_path().filename().string() + "/" + file.filename().string();
  std::string_view body;
  WireError error;
  ASSERT_TRUE(parse_body(text, error,
                         [&](const JsonField& field) {
                           if (field.name == "path") return field.text(recorded.path);
                           JsonType type{};
                           if (field.name != "body" || !field.type(type) || type != JsonType::object) return true;
                           return field.raw(body);
                         }))
      << file << error.message;
  if (body.empty()) return;  // a GET
  recorded.body = body;
  recorded.body.reserve(recorded.body.size() + 64);
  ASSERT_TRUE(parse_body(recorded.body, error, [&](const JsonField& field) {
    std::string_view tools;
    if (field.name != "tools" || !field.raw(tools)) return true;
    recorded.tools = tools;
    return true;
  }));
  out.push_back(std::move(recorded));
}

std::vector<Recorded> all_recorded() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder())) {
    if (entry.path().extension() == ".json" && entry.path().filename() != "index.json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Recorded> recorded;
  for (const fs::path& file : files) read_recorded(file, recorded);
  return recorded;
}

bool read(const Recorded& recorded, MessageCache& cache, Conversation& conversation, WireError& error) {
  std::vector<std::string> left_out;
  if (recorded.path.find("/messages") != std::string::npos) {
    MessagesRequest request;
    const bool counting = recorded.path.ends_with("count_tokens");
    return parse_messages(recorded.body, counting, request, error) &&
           read_messages(request, cache, conversation, left_out, error);
  }
  if (recorded.path.ends_with("/responses")) {
    ResponsesRequest request;
    std::shared_ptr<const ResponseTools> tools;
    return parse_responses(recorded.body, request, error) &&
           read_responses(request, cache, conversation, tools, left_out, error);
  }
  ChatRequest request;
  return parse_chat(recorded.body, request, error) && read_conversation(request, cache, conversation, error);
}

TEST(RecordedRequests, AreAcceptedAndContinueEachOther) {
  if (!fs::exists(folder())) GTEST_SKIP() << "no recorded requests beside the source tree (../shared/agent_requests)";
  const auto tokenizer = Tokenizer::create(synthetic_vocabulary()).value();
  const auto chat_template = ChatTemplate::compile(tokenizer->vocabulary().chat_template, "", "<|im_end|>").value();
  PromptEncoder encoder(tokenizer, chat_template, {});
  size_t accepted = 0;
  size_t transitions = 0;
  std::map<std::string, std::pair<std::string, std::vector<TokenId>>> last;  // by session: who, and the prompt
  for (const Recorded& recorded : all_recorded()) {
    Conversation conversation;
    WireError error;
    ASSERT_TRUE(read(recorded, encoder.messages(), conversation, error)) << recorded.name << ": " << error.message;
    Result<EncodedPrompt> prompt = encoder.encode_conversation(conversation);
    ASSERT_TRUE(prompt.ok()) << recorded.name << ": " << prompt.status().message();
    ++accepted;
    const size_t number =
        recorded.name.find(".0") != std::string::npos ? recorded.name.find(".0") : recorded.name.find(".1");
    const std::string scenario = recorded.name.substr(0, number);
    if (scenario.find("/long") == std::string::npos || recorded.tools.size() < 3) continue;
    // Helpers of the same run (titles, memory) have other tools.
    auto& [before, tokens] = last[scenario + recorded.tools];
    if (!tokens.empty()) {
      ++transitions;
      const bool continues =
          tokens.size() <= prompt->tokens.size() && std::equal(tokens.begin(), tokens.end(), prompt->tokens.begin());
      EXPECT_TRUE(continues) << recorded.name << " does not continue " << before;
    }
    before = recorded.name;
    tokens = std::move(prompt->tokens);
  }
  EXPECT_GE(accepted, 160u);
  EXPECT_GE(transitions, 70u);
}

}  // namespace
}  // namespace warmpath
