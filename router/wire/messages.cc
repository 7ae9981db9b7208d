// parse_messages(): the fields of the body.
#include "router/wire/messages.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/wire/json_reader.h"

namespace warmpath {

namespace {

constexpr size_t kMaxTools = 4096;

struct Pending {
  int64_t max_tokens = -1;
  bool has_messages = false;
};

// Fields that mean the same here and on the other wires.
constexpr std::string_view kShared[] = {"model", "stream",     "temperature", "top_p",
                                        "top_k", "cache_salt", "min_p",       "seed"};

bool read_member_text(const JsonField& field, std::string_view key, JsonValue& value, std::string& out) {
  const std::string path = fmt::format("{}.{}", field.name, key);
  return JsonField{value, path, field.failure}.text(out);
}

bool read_thinking(const JsonField& field, MessagesRequest& request) {
  std::string kind;
  const bool read = field.members([&](std::string_view key, JsonValue& value) {
    return key != "type" || read_member_text(field, key, value, kind);
  });
  if (!read) return false;
  if (kind != "enabled" && kind != "disabled" && kind != "adaptive") {
    return field.refuse("must have type \"enabled\", \"adaptive\" or \"disabled\"");
  }
  request.thinking = kind == "disabled" ? 0 : 1;
  return true;
}

bool read_output_config(const JsonField& field, MessagesRequest& request) {
  return field.members([&](std::string_view key, JsonValue& value) {
    if (key == "effort") return read_member_text(field, key, value, request.effort);
    if (key != "format") return true;
    const JsonField format{value, "output_config.format", field.failure};
    JsonType type{};
    if (!format.type(type)) return false;
    return type == JsonType::null || read_response_format(format, request.options.rules);
  });
}

// The session inside metadata.user_id: {"session_id": "..."} as a string of JSON, or ..._session_UUID.
std::string session_of(std::string_view user_id) {
  for (const std::string_view mark : {"\"session_id\":\"", "\"session_id\": \"", "_session_"}) {
    const size_t at = user_id.find(mark);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = user_id.substr(at + mark.size());
    return std::string(rest.substr(0, rest.find('"')));
  }
  return {};
}

bool read_metadata(const JsonField& field, MessagesRequest& request) {
  return field.members([&](std::string_view key, JsonValue& value) {
    if (key != "user_id") return true;
    const JsonField user{value, "metadata.user_id", field.failure};
    JsonType type{};
    if (!user.type(type)) return false;
    if (type != JsonType::string) return type == JsonType::null || user.refuse("must be a string");
    std::string_view text;
    if (!user.text(text)) return false;
    request.options.prompt_cache_key = session_of(text);
    return true;
  });
}

bool read_system(const JsonField& field, MessagesRequest& request) {
  JsonType type{};
  if (!field.type(type)) return false;
  if (type == JsonType::string) {
    request.has_system_text = true;
    return field.text(request.system_text);
  }
  if (type != JsonType::array) return field.refuse("must be a string or an array of text blocks");
  return field.raw(request.system_blocks);
}

bool read_field(const JsonField& field, MessagesRequest& request, Pending& pending) {
  const std::string_view name = field.name;
  if (name == "messages") {
    pending.has_messages = true;
    return field.objects(SIZE_MAX, request.messages);
  }
  if (name == "tools") return field.objects(kMaxTools, request.tools);
  if (name == "system") return read_system(field, request);
  if (name == "max_tokens") return field.integer(1, INT32_MAX, pending.max_tokens);
  if (name == "tool_choice") return read_anthropic_tool_choice(field, request.options.rules);
  if (name == "thinking") return read_thinking(field, request);
  if (name == "output_config") return read_output_config(field, request);
  if (name == "output_format") return read_response_format(field, request.options.rules);
  if (name == "metadata") return read_metadata(field, request);
  if (name == "stop_sequences") return read_stop(field, request.options);
  if (std::find(std::begin(kShared), std::end(kShared), name) != std::end(kShared)) {
    return read_shared_field(field, request.options) != FieldOutcome::kRefused;
  }
  return true;  // cache_control, context_management, betas, ...: nothing that changes the answer
}

}  // namespace

bool parse_messages(std::string_view body, bool counting, MessagesRequest& request, WireError& error) {
  Pending pending;
  if (!parse_body(body, error, [&](const JsonField& field) { return read_field(field, request, pending); })) {
    return false;
  }
  const auto missing = [&](std::string_view name) {
    error = bad_request(name, fmt::format("{}: Field required", name));
    return false;
  };
  if (!pending.has_messages) return missing("messages");
  if (request.messages.empty()) {
    error = bad_request("messages", "messages: at least one message is required");
    return false;
  }
  if (pending.max_tokens < 0 && !counting) return missing("max_tokens");
  request.options.sampling.max_tokens = static_cast<int32_t>(pending.max_tokens);
  request.options.include_usage = true;
  if (request.options.rules.calls == OutputRules::Calls::kNone) request.tools.clear();
  return true;
}

}  // namespace warmpath
