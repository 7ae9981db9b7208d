#include "loadtest/mock_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fstream>
#include <iterator>

namespace warmpath {

namespace {

namespace json = boost::json;

// The code with that name; kOk when there is none.
StatusCode status_code_named(std::string_view name) {
  for (int code = 1; code <= static_cast<int>(StatusCode::kInternal); ++code) {
    if (status_code_name(static_cast<StatusCode>(code)) == name) return static_cast<StatusCode>(code);
  }
  return StatusCode::kOk;
}

Status read_text(const json::value& value, std::string_view field, std::string& text) {
  if (!value.is_string()) return invalid_argument(fmt::format("'{}' must be a string", field));
  text = value.get_string();
  return {};
}

Status read_count(const json::value& value, std::string_view field, int64_t low, int64_t& count) {
  if (!value.is_int64() || value.get_int64() < low || value.get_int64() > INT32_MAX) {
    return invalid_argument(fmt::format("'{}' must be a number from {} on", field, low));
  }
  count = value.get_int64();
  return {};
}

Status read_fault(const std::string& name, MockReply::Fault& fault) {
  using Fault = MockReply::Fault;
  for (const auto& [known, value] : {std::pair<std::string_view, Fault>{"refuse", Fault::kRefuse},
                                     {"error", Fault::kError},
                                     {"hang", Fault::kHang},
                                     {"exit", Fault::kExit}}) {
    if (name == known) {
      fault = value;
      return {};
    }
  }
  return invalid_argument(fmt::format("fault '{}' is not known; use refuse, error, hang or exit", name));
}

// Each call as models of the Hermes family write it, a line apart.
Status read_calls(const json::value& value, std::string& text) {
  if (!value.is_array()) return invalid_argument("'calls' must be an array");
  for (const json::value& call : value.get_array()) {
    const json::object* object = call.if_object();
    const json::value* name = object != nullptr ? object->if_contains("name") : nullptr;
    const json::value* arguments = object != nullptr ? object->if_contains("arguments") : nullptr;
    if (name == nullptr || !name->is_string() || (arguments != nullptr && !arguments->is_object())) {
      return invalid_argument("'calls' must hold {\"name\": \"...\", \"arguments\": {...}}");
    }
    text += fmt::format("\n<tool_call>\n{{\"name\": {}, \"arguments\": {}}}\n</tool_call>", json::serialize(*name),
                        arguments != nullptr ? json::serialize(*arguments) : "{}");
  }
  return {};
}

}  // namespace

Status MockScript::parse_line(std::string_view text, Line& line) {
  boost::system::error_code error;
  const json::value value = json::parse(json::string_view(text.data(), text.size()), error);
  if (error || !value.is_object()) return invalid_argument("it is not a JSON object");
  MockReply& reply = line.reply;
  std::string word;
  int64_t count = 0;
  StatusCode code = reply.status.code();
  std::string message = reply.status.message();
  std::string reasoning;
  std::string calls;
  for (const json::key_value_pair& pair : value.get_object()) {
    const std::string_view field(pair.key().data(), pair.key().size());
    if (field == "when") {
      WARMPATH_RETURN_IF_ERROR(read_text(pair.value(), field, reply.when));
    } else if (field == "unless") {
      WARMPATH_RETURN_IF_ERROR(read_text(pair.value(), field, reply.unless));
    } else if (field == "times") {
      WARMPATH_RETURN_IF_ERROR(read_count(pair.value(), field, 1, count));
      line.limited = true;
      line.left = count;
    } else if (field == "reply") {
      WARMPATH_RETURN_IF_ERROR(read_text(pair.value(), field, reply.reply.emplace()));
    } else if (field == "reasoning") {
      WARMPATH_RETURN_IF_ERROR(read_text(pair.value(), field, reasoning));
    } else if (field == "calls") {
      WARMPATH_RETURN_IF_ERROR(read_calls(pair.value(), calls));
    } else if (field == "fault") {
      WARMPATH_RETURN_IF_ERROR(read_text(pair.value(), field, word));
      WARMPATH_RETURN_IF_ERROR(read_fault(word, reply.fault));
    } else if (field == "after_tokens") {
      WARMPATH_RETURN_IF_ERROR(read_count(pair.value(), field, 0, count));
      reply.after_tokens = static_cast<int32_t>(count);
    } else if (field == "status") {
      WARMPATH_RETURN_IF_ERROR(read_text(pair.value(), field, word));
      code = status_code_named(word);
      if (code == StatusCode::kOk) return invalid_argument(fmt::format("status '{}' is not known", word));
    } else if (field == "message") {
      WARMPATH_RETURN_IF_ERROR(read_text(pair.value(), field, message));
    } else {
      return invalid_argument(fmt::format(
          "field '{}' is not known; use when, unless, times, reply, reasoning, calls, fault, after_tokens, status and "
          "message",
          field));
    }
  }
  if (!reasoning.empty() || !calls.empty()) {
    if (!reasoning.empty()) reasoning = "<think>\n" + reasoning + "\n</think>\n\n";
    reply.reply = reasoning + reply.reply.value_or("") + calls;
  }
  reply.status = {code, std::move(message)};
  return {};
}

Result<std::shared_ptr<const MockScript>> MockScript::parse(std::string_view text) {
  auto script = std::make_shared<MockScript>();
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t start = line.find_first_not_of(" \t\r");
    if (start == std::string_view::npos || line[start] == '#') continue;
    const Status parsed = parse_line(line, script->lines_.emplace_back());
    if (!parsed.ok()) return invalid_argument(fmt::format("script line {}: {}", number, parsed.message()));
    const MockReply& reply = script->lines_.back().reply;
    script->needs_text_ = script->needs_text_ || !reply.when.empty() || !reply.unless.empty();
  }
  return std::shared_ptr<const MockScript>(std::move(script));
}

Result<std::shared_ptr<const MockScript>> MockScript::read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return not_found(fmt::format("the script {} cannot be read", path));
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  auto script = parse(text);
  if (!script.ok()) return invalid_argument(fmt::format("{}: {}", path, script.status().message()));
  return script;
}

const MockReply* MockScript::pick(std::string_view prompt_text) const {
  for (const Line& line : lines_) {
    if (!line.reply.when.empty() && prompt_text.find(line.reply.when) == std::string_view::npos) continue;
    if (!line.reply.unless.empty() && prompt_text.find(line.reply.unless) != std::string_view::npos) continue;
    if (line.limited && line.left.fetch_sub(1) <= 0) continue;
    return &line.reply;
  }
  return nullptr;
}

}  // namespace warmpath
