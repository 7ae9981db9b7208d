// The messages and the responses wire: how their requests become conversations, and what is refused.
#include <gmock/gmock.h>

#include "router/wire/messages.h"
#include "router/wire/responses.h"
#include "text/jinja/python_text.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;

std::string padded(std::string body) {
  body.reserve(body.size() + 64);
  return body;
}

struct Read {
  bool ok = false;
  std::string messages;
  std::string tools;
  std::string kwargs;
  std::vector<std::string> left_out;
  std::shared_ptr<const ResponseTools> names;
  GenerationOptions options;
  WireError error;
};

void show(const Conversation& conversation, Read& read) {
  read.messages = jinja::to_json(conversation.messages, {}).to_string();
  read.tools = jinja::to_json(conversation.tools, {}).to_string();
  read.kwargs = jinja::to_json(conversation.kwargs, {}).to_string();
}

// Members after "model" and "max_tokens".
Read messages(const std::string& members) {
  static MessageCache cache;
  const std::string body = padded(R"({"model":"m","max_tokens":9,)" + members + "}");
  Read read;
  MessagesRequest request;
  Conversation conversation;
  read.ok = parse_messages(body, false, request, read.error) &&
            read_messages(request, cache, conversation, read.left_out, read.error);
  read.options = request.options;
  show(conversation, read);
  return read;
}

Read responses(const std::string& members) {
  static MessageCache cache;
  const std::string body = padded(R"({"model":"m",)" + members + "}");
  Read read;
  ResponsesRequest request;
  Conversation conversation;
  read.ok = parse_responses(body, request, read.error) &&
            read_responses(request, cache, conversation, read.names, read.left_out, read.error);
  read.options = request.options;
  show(conversation, read);
  return read;
}

TEST(MessagesWire, BlocksBecomeChatMessages) {
  const Read read = messages(R"("system":[{"type":"text","text":"x-anthropic-billing-header: cch=1;"},
      {"type":"text","text":"Be good.","cache_control":{"type":"ephemeral"}}],
    "messages":[{"role":"user","content":"hi"},
      {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Look."},
        {"type":"tool_use","id":"t1","name":"read","input":{"path":"a"}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"A"}]},
        {"type":"text","text":"more","cache_control":{"type":"ephemeral"}}]},
      {"role":"system","content":"Mind this."}])");
  ASSERT_TRUE(read.ok) << read.error.message;
  EXPECT_EQ(read.messages,
            R"([{"role": "system", "content": "Be good."}, {"role": "user", "content": "hi"}, )"
            R"({"role": "assistant", "content": "Look.", "reasoning_content": "hm", "tool_calls": [{"id": "t1", )"
            R"("type": "function", "function": {"name": "read", "arguments": {"path": "a"}}}]}, )"
            R"({"role": "tool", "tool_call_id": "t1", "content": "A"}, {"role": "user", "content": "more"}, )"
            R"({"role": "system", "content": "Mind this."}])");
}

TEST(MessagesWire, AStringAndOneTextBlockAreEqual) {
  EXPECT_EQ(messages(R"("messages":[{"role":"user","content":"a"}])").messages,
            messages(R"("messages":[{"role":"user","content":[{"type":"text","text":"a"}]}])").messages);
}

TEST(MessagesWire, ToolsOfServersAreLeftOut) {
  const Read read = messages(R"("messages":[{"role":"user","content":"a"}],"tools":[
      {"type":"web_search_20250305","name":"web_search","max_uses":5},
      {"name":"read","description":"d","input_schema":{"type":"object"},"eager_input_streaming":true}])");
  ASSERT_TRUE(read.ok) << read.error.message;
  EXPECT_EQ(
      read.tools,
      R"([{"type": "function", "function": {"name": "read", "description": "d", "parameters": {"type": "object"}}}])");
  EXPECT_EQ(read.left_out, std::vector<std::string>{"web_search"});
}

TEST(MessagesWire, OptionsAndUnknownFields) {
  const Read read = messages(R"("messages":[{"role":"user","content":"a"}],"stop_sequences":["x"],"temperature":0.5,
      "thinking":{"type":"enabled","budget_tokens":1024},"context_management":{"edits":[]},"service_tier":"auto",
      "output_config":{"effort":"low"},"metadata":{"user_id":"{\"session_id\":\"s1\"}"},"stream":true)");
  ASSERT_TRUE(read.ok) << read.error.message;
  EXPECT_EQ(read.options.sampling.max_tokens, 9);
  EXPECT_EQ(read.options.sampling.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(read.options.prompt_cache_key, "s1");
  EXPECT_TRUE(read.options.stream);
  EXPECT_EQ(read.kwargs, R"({"enable_thinking": true, "reasoning_effort": "low"})");
  EXPECT_EQ(messages(R"("messages":[{"role":"user","content":"a"}],"metadata":{"user_id":"user_a_session_b-1"})")
                .options.prompt_cache_key,
            "b-1");
}

TEST(MessagesWire, RefusalsNameThePlace) {
  const auto user = [](const std::string& block) {
    return R"("messages":[{"role":"user","content":"a"},{"role":"user","content":[)" + block + "]}]";
  };
  const std::pair<std::string, const char*> rows[] = {
      {user(R"({"type":"image","source":{}})"), "messages[1].content[0]"},
      {user(R"({"type":"text"})"), "messages[1].content[0].text"},
      {user(R"({"type":"tool_result","content":"x"})"), "messages[1].content[0].tool_use_id"},
      {user(R"({"type":"tool_result","tool_use_id":"t","content":[{"type":"image"}]})"),
       "messages[1].content[0].content[0]"},
      {R"("messages":[{"role":"robot","content":"a"}])", "messages[0].role"},
      {R"("messages":[{"role":"user"}])", "messages[0].content"},
      {R"("messages":[])", "messages"},
      {R"("system":"x")", "messages"},
      {user("") + R"(,"tool_choice":{"type":"tool"})", "tool_choice"},
      {user("") + R"(,"tool_choice":{"type":"all"})", "tool_choice"},
      {user("") + R"(,"output_config":{"format":{"type":"xml"}})", "output_config.format"},
      {user("") + R"(,"tools":[{"description":"x"}])", "tools[0].name"},
      {user("") + R"(,"temperature":7)", "temperature"},
  };
  for (const auto& [members, param] : rows) {
    const Read read = messages(members);
    EXPECT_FALSE(read.ok) << members;
    EXPECT_EQ(read.error.param, param) << read.error.message;
    EXPECT_THAT(anthropic_error_body(read.error, "req_1"),
                HasSubstr(R"({"type":"error","error":{"type":"invalid_request_error")"));
  }
}

TEST(MessagesWire, ErrorsHaveItsShape) {
  EXPECT_EQ(
      anthropic_error_body(context_overflow("messages", 100, 150, 0), "r"),
      R"({"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 150 tokens > 100 maximum"},"request_id":"r"})");
  EXPECT_EQ(anthropic_status(nobody_to_serve("x", 2)), 529);
  EXPECT_THAT(anthropic_error_body(nobody_to_serve("x", 2), "r"), HasSubstr("overloaded_error"));
  EXPECT_THAT(anthropic_error_body(too_busy("x", 2), "r"), HasSubstr("rate_limit_error"));
}

TEST(ResponsesWire, ItemsBecomeChatMessages) {
  const Read read = responses(R"("instructions":"Be good.","input":[
      {"type":"message","id":"msg_1","role":"developer","content":[{"type":"input_text","text":"Mind."}]},
      {"role":"user","content":[{"type":"input_text","text":"hi"}]},
      {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":null},
      {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Look.","annotations":[]}]},
      {"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":"{\"path\":\"a\"}"},
      {"type":"function_call","call_id":"c2","name":"spawn","namespace":"agents","arguments":""},
      {"type":"function_call_output","call_id":"c1","output":"A"},
      {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"B"}]},
      {"type":"custom_tool_call","call_id":"c3","name":"patch","input":"*** x"},
      {"type":"custom_tool_call_output","call_id":"c3","output":"ok"},
      {"type":"web_search_call","id":"ws"}])");
  ASSERT_TRUE(read.ok) << read.error.message;
  EXPECT_EQ(
      read.messages,
      R"([{"role": "system", "content": "Be good."}, {"role": "system", "content": "Mind."}, )"
      R"({"role": "user", "content": "hi"}, {"role": "assistant", "content": "Look.", "reasoning_content": "hm", )"
      R"("tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": {"path": "a"}}}, )"
      R"({"id": "c2", "type": "function", "function": {"name": "agents__spawn", "arguments": {}}}]}, )"
      R"({"role": "tool", "tool_call_id": "c1", "content": "A"}, {"role": "tool", "tool_call_id": "c2", "content": "B"}, )"
      R"({"role": "assistant", "content": null, "tool_calls": [{"id": "c3", "type": "function", "function": )"
      R"({"name": "patch", "arguments": {"input": "*** x"}}}]}, {"role": "tool", "tool_call_id": "c3", "content": "ok"}])");
}

TEST(ResponsesWire, ToolsOfEveryKind) {
  const Read read = responses(R"("input":"hi","reasoning":{"effort":"high","summary":"auto"},"tools":[
      {"type":"function","name":"read","description":"d","strict":false,"parameters":{"type":"object"}},
      {"type":"namespace","name":"agents","tools":[{"type":"function","name":"spawn","parameters":{}}]},
      {"type":"custom","name":"patch","description":"p","format":{"type":"grammar","syntax":"lark","definition":"start: x"}},
      {"type":"web_search","external_web_access":true},{"type":"tool_search","execution":"client","parameters":{}}])");
  ASSERT_TRUE(read.ok) << read.error.message;
  EXPECT_THAT(read.tools, HasSubstr(R"("function": {"name": "agents__spawn", "parameters": {}})"));
  EXPECT_THAT(read.tools,
              HasSubstr(R"("name": "patch", "description": "p\n\n`input` must follow this lark grammar:\nstart: x")"));
  EXPECT_EQ(read.left_out, (std::vector<std::string>{"web_search", "tool_search"}));
  EXPECT_EQ(read.kwargs, R"({"reasoning_effort": "high"})");
  const ResponseTools::Tool spawn = read.names->find("agents__spawn");
  EXPECT_EQ(spawn.name, "spawn");
  EXPECT_EQ(spawn.name_space, "agents");
  EXPECT_TRUE(read.names->find("patch").custom);
  EXPECT_EQ(read.names->find("read").name, "read");
}

TEST(ResponsesWire, RefusalsNameThePlace) {
  const std::pair<std::string, const char*> rows[] = {
      {R"("tools":[])", "input"},
      {R"("input":[])", "input"},
      {R"("input":7)", "input"},
      {R"("input":"a","previous_response_id":"resp_1")", "previous_response_id"},
      {R"("input":"a","background":true)", "background"},
      {R"("input":"a","tool_choice":"must")", "tool_choice"},
      {R"("input":"a","tool_choice":{"type":"web_search_preview"})", "tool_choice"},
      {R"("input":"a","text":{"format":{"type":"json_schema"}})", "text.format"},
      {R"("input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}])", "input[0].content[0]"},
      {R"("input":[{"type":"function_call","call_id":"c","arguments":"{}"}])", "input[0].name"},
      {R"("input":[{"type":"function_call_output","output":"x"}])", "input[0].call_id"},
      {R"("input":[{"type":"item_reference","id":"x"}])", "input[0].type"},
      {R"("input":[{"type":"magic"}])", "input[0].type"},
      {R"("input":"a","max_output_tokens":0)", "max_output_tokens"},
  };
  for (const auto& [members, param] : rows) {
    const Read read = responses(members);
    EXPECT_FALSE(read.ok) << members;
    EXPECT_EQ(read.error.param, param) << read.error.message;
  }
  EXPECT_TRUE(responses(R"("input":"a","store":true,"include":["x"],"client_metadata":{"a":"b"},
      "text":{"verbosity":"low"},"previous_response_id":null,"background":false,"truncation":"auto")")
                  .ok);
}

}  // namespace
}  // namespace warmpath
