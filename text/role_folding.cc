#include "text/role_folding.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace warmpath {
namespace {

bool has_role(const Value& message, std::string_view role) {
  const Value* found = message.find("role");
  return found != nullptr && found->is_string() && found->as_text() == role;
}

bool has_calls(const Value& message) {
  const Value* calls = message.find("tool_calls");
  return calls != nullptr && calls->is_list() && !calls->as_list().items.empty();
}

// A string, or text parts with a line break between them.
MarkedText text_of(const Value& message) {
  const Value* content = message.find("content");
  if (content == nullptr) return {};
  if (content->is_string()) return content->as_text();
  MarkedText text;
  if (!content->is_list()) return text;
  for (const Value& part : content->as_list().items) {
    const Value* words = part.find("text");
    if (words == nullptr || !words->is_string()) continue;
    if (!text.empty()) text.append(MarkedText("\n", Origin::kMessage));
    text.append(words->as_text());
  }
  return text;
}

// `message` with the text of `more` behind its own; its other entries, and `more`'s that it lacks, are kept.
Value joined(const Value& message, const Value& more) {
  MarkedText text = text_of(message);
  const MarkedText behind = text_of(more);
  if (!text.empty() && !behind.empty()) text.append(MarkedText("\n\n", Origin::kMessage));
  text.append(behind);
  Value copy = Value::dict();
  for (const auto& [key, value] : message.as_dict().entries) copy.as_dict().set(key, value);
  copy.as_dict().set("content", Value::string(std::move(text)));
  if (!has_role(more, "system")) {
    for (const auto& [key, value] : more.as_dict().entries) {
      if (copy.as_dict().find(key) == nullptr) copy.as_dict().set(key, value);
    }
  }
  copy.as_dict().frozen = true;
  return copy;
}

Value as_user(const Value& message) {
  Value copy = Value::dict();
  for (const auto& [key, value] : message.as_dict().entries) copy.as_dict().set(key, value);
  copy.as_dict().set("role", Value::string("user", Origin::kMessage));
  copy.as_dict().frozen = true;
  return copy;
}

bool same_speaker(const Value& before, const Value& message) {
  for (const std::string_view role : {"user", "assistant"}) {
    if (has_role(before, role) && has_role(message, role)) return !has_calls(before);
  }
  return false;
}

}  // namespace

bool fold_roles(const TemplateAbilities& abilities, std::vector<Value>& messages) {
  if (abilities.several_systems && abilities.late_system && abilities.repeated_roles) return false;
  std::vector<Value> folded;
  folded.reserve(messages.size());
  bool changed = false;
  bool leading = true;  // nothing but system messages so far
  for (const Value& original : messages) {
    Value message = original;
    const bool is_system = has_role(message, "system");
    leading = leading && is_system;
    if (leading && !folded.empty() && !abilities.several_systems) {
      folded.back() = joined(folded.back(), message);
      changed = true;
      continue;
    }
    if (is_system && !leading && !abilities.late_system) {
      changed = true;
      if (has_role(folded.back(), "user") || has_role(folded.back(), "tool")) {
        folded.back() = joined(folded.back(), message);
        continue;
      }
      message = as_user(message);
    }
    if (!abilities.repeated_roles && !folded.empty() && same_speaker(folded.back(), message)) {
      folded.back() = joined(folded.back(), message);
      changed = true;
      continue;
    }
    folded.push_back(std::move(message));
  }
  if (changed) messages = std::move(folded);
  return changed;
}

}  // namespace warmpath
