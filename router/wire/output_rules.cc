#include "router/wire/output_rules.h"

#include <fmt/format.h>

#include <utility>

#include "router/wire/json_reader.h"

namespace warmpath {

namespace {

// White space at one place of an answer in JSON: room for lines and indentation.
constexpr int32_t kFormatSpace = 16;
constexpr size_t kMaxChoiceStrings = 4096;
constexpr size_t kMaxNames = 4096;

JsonField member_of(const JsonField& field, JsonValue& value, const std::string& path) {
  return JsonField{value, path, field.failure};
}

bool set_format(const JsonField& field, OutputRules& rules, Grammar format) {
  if (!rules.format.empty()) {
    return field.refuse(fmt::format("and '{}' both say what the answer must look like: send one", rules.format_param));
  }
  rules.format = std::move(format);
  rules.format_param = field.name;
  return true;
}

// A schema: an object, a boolean, or (as vLLM takes it) a string that holds JSON.
bool read_schema(const JsonField& field, std::string& schema) {
  JsonType type{};
  if (!field.type(type)) return false;
  if (type == JsonType::string) return field.text(schema);
  if (type == JsonType::boolean) {
    bool flag = false;
    if (!field.boolean(flag)) return false;
    schema = flag ? "true" : "false";
    return true;
  }
  if (type != JsonType::object) return field.refuse("must be a JSON schema");
  std::string_view raw;
  if (!field.raw(raw)) return false;
  schema = raw;
  return true;
}

Grammar any_object() { return Grammar::json_schema(R"({"type":"object"})", kFormatSpace); }

bool read_choices(const JsonField& field, OutputRules& rules) {
  std::vector<Grammar> choices;
  const bool read = field.elements([&](JsonValue& value, size_t position) {
    if (position == kMaxChoiceStrings) return field.refuse(fmt::format("has more than {} entries", kMaxChoiceStrings));
    std::string_view text;
    if (!field.item(value).text(text)) return false;
    if (text.empty()) return field.refuse("must not hold an empty string");
    choices.push_back(Grammar::literal(text));
    return true;
  });
  if (!read) return false;
  if (choices.empty()) return field.refuse("must hold at least one string");
  return set_format(field, rules, Grammar::any_of(std::move(choices)));
}

bool read_pattern(const JsonField& field, OutputRules& rules, Grammar (*make)(std::string_view)) {
  std::string_view text;
  if (!field.text(text)) return false;
  if (text.empty()) return true;  // some clients send what they leave unset
  return set_format(field, rules, make(text));
}

bool read_json(const JsonField& field, OutputRules& rules) {
  std::string schema;
  return read_schema(field, schema) && set_format(field, rules, Grammar::json_schema(schema, kFormatSpace));
}

// One tool of a choice: {"type": "function", "function": {"name"}} or {"type", "name", "namespace"?}.
struct NamedTool {
  std::string type;
  std::string name;
  std::string name_space;
};

bool read_named_tool(const JsonField& field, std::string_view key, JsonValue& value, NamedTool& tool) {
  const std::string path = fmt::format("{}.{}", field.name, key);
  if (key == "type") return member_of(field, value, path).text(tool.type);
  if (key == "name") return member_of(field, value, path).text(tool.name);
  if (key == "namespace") {
    const JsonField inner = member_of(field, value, path);
    JsonType type{};
    if (!inner.type(type)) return false;
    return type == JsonType::null || inner.text(tool.name_space);
  }
  if (key != "function" && key != "custom") return true;
  return member_of(field, value, path).members([&](std::string_view inner, JsonValue& inner_value) {
    return inner != "name" || member_of(field, inner_value, path + ".name").text(tool.name);
  });
}

// As the model knows it (router/wire/response_tools.h).
std::string name_of(const NamedTool& tool) {
  return tool.name_space.empty() ? tool.name : tool.name_space + "__" + tool.name;
}

bool read_allowed_tools(const JsonField& field, OutputRules& rules) {
  return field.elements([&](JsonValue& value, size_t position) {
    if (position == kMaxNames) return field.refuse(fmt::format("has more than {} entries", kMaxNames));
    NamedTool tool;
    const JsonField item = field.item(value);
    const bool read =
        item.members([&](std::string_view key, JsonValue& member) { return read_named_tool(item, key, member, tool); });
    if (!read) return false;
    if (tool.name.empty()) return field.refuse("must name tools");
    rules.only.push_back(name_of(tool));
    return true;
  });
}

}  // namespace

bool read_tool_choice(const JsonField& field, OutputRules& rules) {
  JsonType type{};
  if (!field.type(type)) return false;
  if (type == JsonType::string) {
    std::string_view word;
    if (!field.text(word)) return false;
    if (word == "required") {
      rules.calls = OutputRules::Calls::kRequired;
    } else if (word == "none") {
      rules.calls = OutputRules::Calls::kNone;
    } else if (word != "auto") {
      return field.refuse("must be \"auto\", \"none\", \"required\" or name a tool");
    }
    return true;
  }
  if (type != JsonType::object) return field.refuse("must be \"auto\", \"none\", \"required\" or name a tool");
  NamedTool tool;
  std::string mode = "auto";
  const auto read_member = [&](auto&& self, const JsonField& at, std::string_view key, JsonValue& value) -> bool {
    const std::string path = fmt::format("{}.{}", at.name, key);
    if (key == "mode") return member_of(at, value, path).text(mode);
    if (key == "tools") return read_allowed_tools(member_of(at, value, path), rules);
    if (key == "allowed_tools") {
      const JsonField inner = member_of(at, value, path);
      return inner.members([&](std::string_view inner_key, JsonValue& inner_value) {
        return self(self, inner, inner_key, inner_value);
      });
    }
    return read_named_tool(at, key, value, tool);
  };
  if (!field.members(
          [&](std::string_view key, JsonValue& value) { return read_member(read_member, field, key, value); })) {
    return false;
  }
  if (tool.type == "allowed_tools") {
    if (mode != "required") {
      return field.refuse(
          unsupported("tool_choice",
                      "'tool_choice' of type 'allowed_tools' is supported with mode \"required\" only; send the tools "
                      "that may be called"));
    }
    if (rules.only.empty()) return field.refuse("must name the allowed tools");
  } else if (tool.type == "function" || tool.type == "custom") {
    if (tool.name.empty()) return field.refuse("must name a tool");
    rules.only = {name_of(tool)};
  } else {
    return field.refuse(
        unsupported("tool_choice", fmt::format("'tool_choice' of type '{}' is not supported: such tools "
                                               "do not run here",
                                               tool.type.substr(0, 64))));
  }
  rules.calls = OutputRules::Calls::kRequired;
  return true;
}

bool read_anthropic_tool_choice(const JsonField& field, OutputRules& rules) {
  std::string kind, name;
  const bool read = field.members([&](std::string_view key, JsonValue& value) {
    const std::string path = fmt::format("{}.{}", field.name, key);
    const JsonField member = member_of(field, value, path);
    if (key == "type") return member.text(kind);
    if (key == "name") return member.text(name);
    if (key != "disable_parallel_tool_use") return true;
    bool disabled = false;
    if (!member.boolean(disabled)) return false;
    rules.parallel = !disabled;
    return true;
  });
  if (!read) return false;
  if (kind == "any" || kind == "tool") {
    rules.calls = OutputRules::Calls::kRequired;
    if (kind == "any") return true;
    if (name.empty()) return field.refuse("must name a tool");
    rules.only = {name};
  } else if (kind == "none") {
    rules.calls = OutputRules::Calls::kNone;
  } else if (kind != "auto") {
    return field.refuse("must have type \"auto\", \"any\", \"tool\" or \"none\"");
  }
  return true;
}

bool read_response_format(const JsonField& field, OutputRules& rules) {
  std::string kind, schema, pattern;
  const bool read = field.members([&](std::string_view key, JsonValue& value) {
    const std::string path = fmt::format("{}.{}", field.name, key);
    const JsonField member = member_of(field, value, path);
    if (key == "type") return member.text(kind);
    if (key == "schema") return read_schema(member, schema);  // where the format is flat
    if (key == "pattern" || key == "grammar") return member.text(pattern);
    if (key != "json_schema") return true;
    return member.members([&](std::string_view inner, JsonValue& inner_value) {
      return inner != "schema" || read_schema(member_of(field, inner_value, path + ".schema"), schema);
    });
  });
  if (!read) return false;
  if (kind == "text") return true;
  if (kind == "json_object") {
    // llama.cpp takes a schema with it.
    return set_format(field, rules, schema.empty() ? any_object() : Grammar::json_schema(schema, kFormatSpace));
  }
  if (kind == "json_schema") {
    if (schema.empty()) return field.refuse("of type 'json_schema' must hold a 'schema'");
    return set_format(field, rules, Grammar::json_schema(schema, kFormatSpace));
  }
  if ((kind == "regex" || kind == "ebnf" || kind == "grammar") && !pattern.empty()) {
    return set_format(field, rules, kind == "regex" ? Grammar::regex(pattern) : Grammar::ebnf(pattern));
  }
  return field.refuse(unsupported(
      field.name, fmt::format("'{}' of type '{}' is not supported by this server; 'text', 'json_object' and "
                              "'json_schema' are",
                              field.name, kind.substr(0, 64))));
}

bool read_structured_outputs(const JsonField& field, OutputRules& rules) {
  return field.members([&](std::string_view key, JsonValue& value) {
    const std::string path = fmt::format("{}.{}", field.name, key);
    const JsonField member = member_of(field, value, path);
    JsonType type{};
    if (!member.type(type)) return false;
    if (type == JsonType::null) return true;
    if (key == "json") return read_json(member, rules);
    if (key == "regex") return read_pattern(member, rules, Grammar::regex);
    if (key == "choice") return read_choices(member, rules);
    if (key == "grammar") return read_pattern(member, rules, Grammar::ebnf);
    if (key == "json_object") {
      bool wanted = false;
      return member.boolean(wanted) && (!wanted || set_format(member, rules, any_object()));
    }
    if (key == "structural_tag")
      return member.refuse(unsupported(path, fmt::format("'{}' is not supported by this server", path)));
    return true;  // how another server is to do it
  });
}

bool read_guided(const JsonField& field, OutputRules& rules, bool& known) {
  known = true;
  if (field.name == "guided_json" || field.name == "json_schema") return read_json(field, rules);
  if (field.name == "guided_regex") return read_pattern(field, rules, Grammar::regex);
  if (field.name == "guided_choice") return read_choices(field, rules);
  if (field.name == "guided_grammar" || field.name == "grammar") return read_pattern(field, rules, Grammar::ebnf);
  if (field.name == "structured_outputs") return read_structured_outputs(field, rules);
  if (field.name == "response_format") return read_response_format(field, rules);
  known = false;
  return false;
}

}  // namespace warmpath
