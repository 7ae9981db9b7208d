#include "text/answer/tool_schemas.h"

namespace warmpath {

namespace {

bool is_string(const Value* value, std::string_view text) {
  return value != nullptr && value->is_string() && value->as_text() == text;
}

// Schemas nest; deeper alternatives than these are taken for text.
constexpr int kMaxAlternatives = 4;

bool admits_text(const Value& schema, int depth) {
  if (const Value* type = schema.find("type")) {
    if (!type->is_list()) return is_string(type, "string");
    for (const Value& word : type->as_list().items) {
      if (is_string(&word, "string")) return true;
    }
    return false;
  }
  for (const std::string_view key : {"anyOf", "oneOf"}) {
    const Value* alternatives = schema.find(key);
    if (alternatives == nullptr || !alternatives->is_list() || depth == kMaxAlternatives) continue;
    for (const Value& alternative : alternatives->as_list().items) {
      if (admits_text(alternative, depth + 1)) return true;
    }
    return false;
  }
  return true;
}

}  // namespace

const Value* ToolSchemas::function(std::string_view tool) const {
  if (!tools_.is_list()) return nullptr;
  for (const Value& entry : tools_.as_list().items) {
    const Value* inner = entry.find("function");
    const Value* found = inner != nullptr ? inner : &entry;
    if (is_string(found->find("name"), tool)) return found;
  }
  return nullptr;
}

bool ToolSchemas::is_text(std::string_view tool, std::string_view parameter) const {
  const Value* found = function(tool);
  const Value* parameters = found != nullptr ? found->find("parameters") : nullptr;
  const Value* properties = parameters != nullptr ? parameters->find("properties") : nullptr;
  const Value* schema = properties != nullptr ? properties->find(parameter) : nullptr;
  return schema == nullptr || admits_text(*schema, 0);
}

}  // namespace warmpath
