#include "text/jinja/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/jinja/builtins.h"
#include "text/jinja/interpreter_guards.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"

namespace warmpath::jinja {

Interpreter::Interpreter(const Syntax& syntax, const RenderLimits& limits, const std::tm& now, LoopRecorder* recorder)
    : syntax_(syntax), limits_(limits), now_(now), steps_left_(limits.steps), recorder_(recorder) {
  scope_ = new_scope(nullptr);
}

Interpreter::~Interpreter() {
  for (const auto& space : outer_namespaces_) space->clear();
  for (const auto& space : inner_namespaces_) space->clear();
  for (const auto& list : adopted_) list->items.clear();
}

void Interpreter::set_variable(std::string_view name, Value value) {
  const auto found = std::find(syntax_.symbols.begin(), syntax_.symbols.end(), name);
  if (found != syntax_.symbols.end()) assign(static_cast<Symbol>(found - syntax_.symbols.begin()), std::move(value));
}

MarkedText Interpreter::run() {
  MarkedText text;
  const Capture capture(*this, text);
  exec(syntax_.body);
  return text;
}

void Interpreter::out_of_steps() const {
  throw TemplateLimit(fmt::format("rendering takes more than {} steps", limits_.steps));
}

void Interpreter::out_of_bytes() const {
  throw TemplateLimit(fmt::format("the prompt exceeds {} bytes", limits_.output_bytes));
}

Value Interpreter::checked(Value value) {
  if (value.is_string()) {
    if (value.as_text().size() > limits_.output_bytes) {
      throw TemplateLimit(fmt::format("a string exceeds {} bytes", limits_.output_bytes));
    }
    charge(value.as_text().parts().size());
  } else if (value.is_list() || value.is_dict()) {
    if (value.depth() > Value::kMaxDepth) throw TemplateLimit("lists and dicts nested too deeply");
    charge(value.is_list() ? value.as_list().items.size() : value.as_dict().entries.size());
    if (value.weight() > limits_.steps) throw TemplateLimit("a list or dict is too large");
  }
  return value;
}

Value Interpreter::new_namespace() {
  const bool inner = recording();
  auto& spaces = inner ? inner_namespaces_ : outer_namespaces_;
  const auto ordinal = inner ? std::nullopt : std::optional(static_cast<uint32_t>(spaces.size()));
  spaces.emplace_back(new Namespace(ordinal));
  return Value::object(spaces.back());
}

const std::tm& Interpreter::now() {
  if (recording()) recorder_->read_clock();
  return now_;
}

ValueList& Interpreter::list_to_change(const Value& value) {
  ValueList& list = value.as_list();
  if (list.frozen) throw ChangesRequest();
  charge(1 + list.items.size() / 16);
  if (!std::exchange(list.adopted, true)) adopted_.emplace_back(&list);
  if (list.contained && !std::exchange(reshaped_, true) && recorder_ != nullptr) recorder_->abandon();
  if (recording()) recorder_->changed_list(list);
  return list;
}

void Interpreter::charge_walk(const Value& value, int depth) {
  if (!value.is_list() && !value.is_dict()) return;
  if (depth > Value::kMaxDepth) throw TemplateLimit("lists and dicts nested too deeply, or inside themselves");
  if (value.is_list()) {
    charge(1 + value.as_list().items.size());
    for (const Value& item : value.as_list().items) charge_walk(item, depth + 1);
  } else {
    charge(1 + value.as_dict().entries.size());
    for (const auto& [key, item] : value.as_dict().entries) {
      charge_walk(key, depth + 1);
      charge_walk(item, depth + 1);
    }
  }
}

// --- scopes

Interpreter::Scope* Interpreter::new_scope(Scope* parent) {
  Scope* scope;
  if (free_scopes_.empty()) {
    charge(8);  // captured scopes stay until the end: they count
    scope = &scopes_.emplace_back();
  } else {
    scope = free_scopes_.back();
    free_scopes_.pop_back();
  }
  scope->parent = parent;
  return scope;
}

void Interpreter::release_scope(Scope* scope) {
  if (scope->captured) return;
  scope->variables.clear();
  free_scopes_.push_back(scope);
}

void Interpreter::capture_scopes() {
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent) scope->captured = true;
}

void Interpreter::assign(Symbol symbol, Value value) {
  for (auto& [name, old] : scope_->variables) {
    if (name == symbol) {
      old = std::move(value);
      return;
    }
  }
  scope_->variables.emplace_back(symbol, std::move(value));
}

Value Interpreter::lookup(Symbol symbol) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    for (const auto& [name, value] : scope->variables) {
      if (name != symbol) continue;
      if (scope->parent == nullptr && recording()) recorder_->read_variable(symbol);
      return value;
    }
  }
  if (recording()) recorder_->read_variable(symbol);
  Value global = find_global(syntax_.symbols[symbol]);
  if (!global.is_undefined()) return global;
  return Value::undefined(fmt::format("'{}' is undefined", syntax_.symbols[symbol]));
}

const Value* Interpreter::outer_variable(Symbol symbol) const {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    for (const auto& [name, value] : scope->variables) {
      if (name == symbol) return scope->parent == nullptr ? &value : nullptr;
    }
  }
  return nullptr;
}

// --- values

Value Interpreter::call(const Value& callable, const Arguments& arguments) {
  require_defined(callable);
  if (callable.kind() != Value::Kind::kObject) {
    throw TemplateError(fmt::format("'{}' object is not callable", type_name(callable)));
  }
  const boost::intrusive_ptr<Object> object(static_cast<Object*>(callable.as_node()));
  const DepthGuard guard(*this);
  return checked(object->call(*this, arguments));
}

Value Interpreter::apply_filter(std::string_view name, const Value& input, const Arguments& arguments) {
  const Filter filter = find_filter(name);
  if (filter == nullptr) throw TemplateError(fmt::format("No filter named '{}'.", name));
  charge(input.is_string() ? input.as_text().size() / 256 : input.weight() / 16);
  return checked(filter(*this, input, arguments));
}

bool Interpreter::apply_test(std::string_view name, const Value& input, const Arguments& arguments) {
  const Test test = find_test(name);
  if (test == nullptr) throw TemplateError(fmt::format("No test named '{}'.", name));
  return test(*this, input, arguments);
}

Value Interpreter::attribute(const Value& object, std::string_view name) {
  require_defined(object);
  if (object.kind() == Value::Kind::kObject) {
    const auto* node = static_cast<const Object*>(object.as_node());
    if (recording()) {
      if (const auto* space = dynamic_cast<const Namespace*>(node)) {
        recorder_->read_attribute(*space, name);
      } else {
        recorder_->read_loop(*node, name);
      }
    }
    if (auto found = node->attribute(name)) return *std::move(found);
  } else if (has_method(object, name)) {
    std::string method(name);
    return make_function(method, [object, method](Interpreter& interpreter, const Arguments& arguments) {
      return call_method(interpreter, object, method, arguments);
    });
  } else if (const Value* entry = object.find(name)) {
    return *entry;
  }
  return Value::undefined(object.is_none() ? fmt::format("'None' has no attribute '{}'", name)
                                           : fmt::format("'{} object' has no attribute '{}'", type_name(object), name));
}

Value Interpreter::item(const Value& object, const Value& key) {
  require_defined(object);
  if (object.is_dict()) {
    if (const Value* entry = object.as_dict().find(key)) return *entry;
  } else if ((object.is_string() || (object.is_list() && object.as_list().type <= SequenceKind::kRange)) &&
             (key.is_int() || key.is_bool())) {
    const int64_t length = length_of(object);
    const int64_t index = key.is_bool() ? int64_t{key.as_bool()} : key.as_int();
    const int64_t at = index < 0 ? index + length : index;
    if (at >= 0 && at < length) {
      if (object.is_list()) return object.as_list().items[static_cast<size_t>(at)];
      charge(object.as_text().size() / 256);
      return slice(object, Value::integer(at), Value::integer(at + 1), Value::none());
    }
    return Value::undefined(fmt::format("{} object has no element {}", type_name(object), index));
  }
  if (key.is_string()) return attribute(object, key.as_text().to_string());
  std::string repr;
  append_repr(key, repr, 1);
  return Value::undefined(fmt::format("'{} object' has no item {}", type_name(object), repr));
}

}  // namespace warmpath::jinja
