#include "text/jinja/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "text/jinja/builtins.h"
#include "text/jinja/macro.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"

namespace warmpath::jinja {

class Interpreter::DepthGuard {
 public:
  explicit DepthGuard(Interpreter& interpreter) : interpreter_(interpreter) {
    if (interpreter_.depth_ >= interpreter_.limits_.depth) throw TemplateLimit("evaluation nested too deeply");
    ++interpreter_.depth_;
  }
  ~DepthGuard() { --interpreter_.depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  Interpreter& interpreter_;
};

// A scope inside the current one (or inside `parent`), for as long as the guard lives.
class Interpreter::ScopeGuard {
 public:
  explicit ScopeGuard(Interpreter& interpreter) : ScopeGuard(interpreter, interpreter.scope_) {}
  ScopeGuard(Interpreter& interpreter, Scope* parent) : interpreter_(interpreter), before_(interpreter.scope_) {
    interpreter_.scope_ = interpreter_.new_scope(parent);
  }
  ~ScopeGuard() {
    interpreter_.release_scope(interpreter_.scope_);
    interpreter_.scope_ = before_;
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;
  // An empty scope for the next round of a loop.
  void renew() {
    Scope* parent = interpreter_.scope_->parent;
    interpreter_.release_scope(interpreter_.scope_);
    interpreter_.scope_ = interpreter_.new_scope(parent);
  }

 private:
  Interpreter& interpreter_;
  Scope* before_;
};

// Output goes into `text` for as long as the guard lives.
class Interpreter::Capture {
 public:
  Capture(Interpreter& interpreter, MarkedText& text) : interpreter_(interpreter), before_(interpreter.out_) {
    interpreter_.out_ = &text;
  }
  ~Capture() { interpreter_.out_ = before_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  Interpreter& interpreter_;
  MarkedText* before_;
};

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

// --- expressions

Value Interpreter::eval(const Expr& expr) {
  charge(1);
  const DepthGuard guard(*this);
  try {
    if (!reshaped_) return eval_unplaced(expr);
    Value value = eval_unplaced(expr);
    charge_walk(value);
    return value;
  } catch (TemplateError& error) {
    if (!error.has_place()) error.set_place(expr.place);
    throw;
  }
}

Value Interpreter::eval_unplaced(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kConstant:
      return expr.constant;
    case ExprKind::kName:
      return lookup(expr.symbol);
    case ExprKind::kList:
    case ExprKind::kTuple: {
      std::vector<Value> items;
      items.reserve(expr.items.size());
      for (const ExprPtr& item : expr.items) items.push_back(eval(*item));
      return checked(expr.kind == ExprKind::kList ? Value::list(std::move(items)) : Value::tuple(std::move(items)));
    }
    case ExprKind::kDict: {
      Value dict = Value::dict();
      for (size_t index = 0; index < expr.items.size(); index += 2) {
        Value key = eval(*expr.items[index]);
        if ((key.is_list() && key.as_list().type != SequenceKind::kTuple) || key.is_dict()) {
          throw TemplateError(fmt::format("unhashable type: '{}'", type_name(key)));
        }
        dict.as_dict().set(std::move(key), eval(*expr.items[index + 1]));
      }
      return checked(std::move(dict));
    }
    case ExprKind::kAttribute:
      return attribute(eval(*expr.first), expr.text);
    case ExprKind::kSubscript:
      return eval_subscript(expr);
    case ExprKind::kSlice:
      throw TemplateError("a slice stands outside of [ ]");
    case ExprKind::kCall:
      return eval_call(expr);
    case ExprKind::kFilter: {
      const Value input = expr.first ? eval(*expr.first) : *filter_input_;
      return apply_filter(expr.text, input, eval_arguments(expr));
    }
    case ExprKind::kTest: {
      const Value input = eval(*expr.first);
      return Value::boolean(apply_test(expr.text, input, eval_arguments(expr)));
    }
    case ExprKind::kNot:
      return Value::boolean(!truthy(eval(*expr.first)));
    case ExprKind::kNegative:
      return negate(eval(*expr.first));
    case ExprKind::kPositive: {
      Value value = eval(*expr.first);
      require_defined(value);
      if (value.is_number()) return value;
      throw TemplateError(fmt::format("bad operand type for unary +: '{}'", type_name(value)));
    }
    case ExprKind::kAnd: {
      Value left = eval(*expr.first);
      return truthy(left) ? eval(*expr.second) : left;
    }
    case ExprKind::kOr: {
      Value left = eval(*expr.first);
      return truthy(left) ? left : eval(*expr.second);
    }
    case ExprKind::kConditional:
      if (truthy(eval(*expr.second))) return eval(*expr.first);
      if (expr.third) return eval(*expr.third);
      return Value::undefined("the inline if-expression evaluated to false and no else section was defined");
    case ExprKind::kCompare:
      return eval_compare(expr);
    case ExprKind::kConcat:
      return eval_concat(expr);
    case ExprKind::kBinary: {
      Value left = eval(*expr.first);
      const Value right = eval(*expr.second);
      return checked(apply_binary(expr.operation, std::move(left), right));
    }
  }
  return {};
}

Value Interpreter::eval_compare(const Expr& expr) {
  if (recording()) {
    if (const auto result = compare_measured(expr)) return Value::boolean(*result);
  }
  Value left = eval(*expr.first);
  for (size_t index = 0; index < expr.items.size(); ++index) {
    Value right = eval(*expr.items[index]);
    if (left.is_string()) charge(left.as_text().size() / 256);
    if (right.is_string()) charge(right.as_text().size() / 256);
    charge((left.weight() + right.weight()) / 16);
    if (!compare(expr.comparisons[index], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::eval_concat(const Expr& expr) {
  MarkedText text;
  for (const ExprPtr& item : expr.items) text.append(to_text(eval(*item)));
  return checked(Value::string(std::move(text)));
}

Arguments Interpreter::eval_arguments(const Expr& expr) {
  Arguments arguments;
  for (const ExprPtr& item : expr.items) arguments.positional.push_back(eval(*item));
  if (expr.star) {
    for (Value& item : items_of(eval(*expr.star))) {
      charge(1);
      arguments.positional.push_back(std::move(item));
    }
  }
  for (const auto& [name, value] : expr.keywords) arguments.keywords.emplace_back(name, eval(*value));
  if (expr.double_star) {
    const Value extra = eval(*expr.double_star);
    if (!extra.is_dict())
      throw TemplateError(fmt::format("argument after ** must be a mapping, not {}", type_name(extra)));
    for (const auto& [key, value] : extra.as_dict().entries)
      arguments.keywords.emplace_back(key.string_or_empty(), value);
  }
  return arguments;
}

Value Interpreter::eval_call(const Expr& expr) {
  const Expr& callee = *expr.first;
  if (callee.kind == ExprKind::kAttribute) {
    const Value self = eval(*callee.first);
    if (has_method(self, callee.text)) {
      charge(self.is_string() ? self.as_text().size() / 256 : self.weight() / 16);
      return checked(call_method(*this, self, callee.text, eval_arguments(expr)));
    }
    const Value function = attribute(self, callee.text);
    return call(function, eval_arguments(expr));
  }
  const Value function = eval(callee);
  return call(function, eval_arguments(expr));
}

Value Interpreter::eval_subscript(const Expr& expr) {
  if (expr.first->kind == ExprKind::kName && recording()) {
    const Value* variable = outer_variable(expr.first->symbol);
    if (variable != nullptr && variable->is_list() && variable->as_list().type <= SequenceKind::kTuple) {
      return eval_outer_subscript(expr, *variable);
    }
  }
  const Value object = eval(*expr.first);
  if (expr.second->kind != ExprKind::kSlice) return item(object, eval(*expr.second));
  const auto part = [this](const ExprPtr& bound) { return bound ? eval(*bound) : Value::none(); };
  const Value start = part(expr.second->first);
  const Value stop = part(expr.second->second);
  const Value step = part(expr.second->third);
  if (object.is_string()) charge(object.as_text().size() / 256);
  return checked(slice(object, start, stop, step));
}

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

// --- statements

void Interpreter::emit(const MarkedText& text) {
  if (out_->size() + text.size() > limits_.output_bytes) out_of_bytes();
  charge(text.parts().size());
  for (const MarkedText::Part& part : text.parts()) out_->append(part);
}

MarkedText Interpreter::capture_body(const Body& body) {
  MarkedText text;
  const Capture capture(*this, text);
  const ScopeGuard scope(*this);
  exec(body);
  return text;
}

Interpreter::Flow Interpreter::exec(const Body& body) {
  for (const auto& stmt : body) {
    const Flow flow = exec(*stmt);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::exec(const Stmt& stmt) {
  charge(1);
  const DepthGuard guard(*this);
  switch (stmt.kind) {
    case StmtKind::kData:
      emit(stmt.constant.as_text());
      return Flow::kNormal;
    case StmtKind::kOutput: {
      const Value value = eval(*stmt.value);
      emit(value.is_string() ? value.as_text() : to_text(value));
      return Flow::kNormal;
    }
    case StmtKind::kIf:
      return exec(truthy(eval(*stmt.value)) ? stmt.body : stmt.otherwise);
    case StmtKind::kFor:
      return exec_for(stmt);
    case StmtKind::kSet:
      assign_target(*stmt.target, eval(*stmt.value));
      return Flow::kNormal;
    case StmtKind::kSetBlock:
    case StmtKind::kFilterBlock: {
      Value text = checked(Value::string(capture_body(stmt.body)));
      if (stmt.value) {
        const Value* before = std::exchange(filter_input_, &text);
        Value filtered = eval(*stmt.value);
        filter_input_ = before;
        text = std::move(filtered);
      }
      if (stmt.kind == StmtKind::kSetBlock) {
        assign_target(*stmt.target, std::move(text));
      } else {
        emit(to_text(text));
      }
      return Flow::kNormal;
    }
    case StmtKind::kMacro:
      capture_scopes();
      assign(stmt.symbol, Value::object(new Macro(stmt, scope_, scope_->parent == nullptr)));
      return Flow::kNormal;
    case StmtKind::kCallBlock:
      exec_call_block(stmt);
      return Flow::kNormal;
    case StmtKind::kWith: {
      std::vector<Value> values;
      for (const auto& [target, value] : stmt.bindings) values.push_back(eval(*value));
      const ScopeGuard scope(*this);
      for (size_t index = 0; index < values.size(); ++index) {
        assign_target(*stmt.bindings[index].first, std::move(values[index]));
      }
      return exec(stmt.body);
    }
    case StmtKind::kScope: {
      const ScopeGuard scope(*this);
      return exec(stmt.body);
    }
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::exec_for(const Stmt& stmt) { return run_loop(stmt, eval(*stmt.value), 0); }

Interpreter::Flow Interpreter::run_loop(const Stmt& stmt, const Value& iterable, int depth) {
  std::vector<Value> items;
  try {
    items = items_of(iterable);
  } catch (TemplateError& error) {
    error.set_place(stmt.value->place);
    throw;
  }
  charge(items.size() / 8);
  if (stmt.condition) {
    std::vector<Value> kept;
    for (Value& candidate : items) {
      const ScopeGuard scope(*this);
      assign_target(*stmt.target, candidate);
      if (truthy(eval(*stmt.condition))) kept.push_back(std::move(candidate));
    }
    items = std::move(kept);
  }
  if (items.empty()) {
    const ScopeGuard scope(*this);
    return exec(stmt.otherwise);
  }
  Scope* outer = scope_;
  ScopeGuard scope(*this);
  boost::intrusive_ptr<Loop> loop;
  if (stmt.uses_loop) {
    std::function<Value(const Value&)> recurse;
    if (stmt.recursive) {
      recurse = [this, &stmt, outer, depth](const Value& inner) {
        MarkedText text;
        const Capture capture(*this, text);
        const ScopeGuard inner_scope(*this, outer);
        run_loop(stmt, inner, depth + 1);
        return Value::string(std::move(text));
      };
    }
    loop = new Loop(items, depth, std::move(recurse));
  }
  // loop.changed() may have been given the loop itself.
  const std::unique_ptr<Loop, void (*)(Loop*)> forgetting(loop.get(), [](Loop* ended) { ended->forget(); });
  const bool outermost = outer->parent == nullptr && !stmt.recursive;
  return outermost && recorder_ != nullptr ? run_recorded_rounds(stmt, items, loop.get(), scope)
                                           : run_rounds(stmt, items, loop.get(), scope);
}

void Interpreter::begin_round(const Stmt& stmt, const Value& item, size_t index, Loop* loop) {
  if (loop != nullptr) {
    loop->set_index(index);
    assign(kLoopSymbol, Value::object(loop));
  }
  assign_target(*stmt.target, item);
}

Interpreter::Flow Interpreter::run_rounds(const Stmt& stmt, const std::vector<Value>& items, Loop* loop,
                                          ScopeGuard& scope) {
  for (size_t index = 0; index < items.size(); ++index) {
    if (index > 0) scope.renew();
    begin_round(stmt, items[index], index, loop);
    if (exec(stmt.body) == Flow::kBreak) break;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_recorded_rounds(const Stmt& stmt, const std::vector<Value>& items, Loop* loop,
                                                   ScopeGuard& scope) {
  const uint64_t steps_before = steps_left_;
  uint32_t known = 0;
  const auto mark =
      recorder_->begin_loop(stmt, items, {scope_->parent->variables, outer_namespaces_, now_}, *out_, known);
  charge(mark.steps);
  if (out_->size() > limits_.output_bytes) out_of_bytes();
  for (size_t index = known; index < items.size(); ++index) {
    recorder_->begin_round(loop);
    begin_round(stmt, items[index], index, loop);
    if (exec(stmt.body) == Flow::kBreak) break;
    scope.renew();
    recorder_->end_round(*out_, steps_before - steps_left_);
  }
  recorder_->end_loop(*out_);
  return Flow::kNormal;
}

void Interpreter::exec_call_block(const Stmt& stmt) {
  capture_scopes();
  const Expr& expr = *stmt.value;
  const Value function = eval(*expr.first);
  Arguments arguments = eval_arguments(expr);
  arguments.keywords.emplace_back("caller", Value::object(new Macro(stmt, scope_, scope_->parent == nullptr)));
  try {
    emit(to_text(call(function, arguments)));
  } catch (TemplateError& error) {
    if (!error.has_place()) error.set_place(stmt.place);
    throw;
  }
}

void Interpreter::assign_target(const Expr& target, Value value) {
  if (target.kind == ExprKind::kName) return assign(target.symbol, std::move(value));
  if (target.kind == ExprKind::kAttribute) {
    const Value space = eval(*target.first);
    auto* object = space.kind() == Value::Kind::kObject ? dynamic_cast<Namespace*>(space.as_node()) : nullptr;
    if (object == nullptr) throw TemplateError(target.place, "cannot assign attribute on non-namespace object");
    if (recording()) recorder_->wrote_attribute(*object, target.text);
    return object->set(target.text, std::move(value));
  }
  std::vector<Value> items = items_of(value);
  if (items.size() != target.items.size()) {
    throw TemplateError(
        target.place,
        items.size() < target.items.size()
            ? fmt::format("not enough values to unpack (expected {}, got {})", target.items.size(), items.size())
            : fmt::format("too many values to unpack (expected {})", target.items.size()));
  }
  for (size_t index = 0; index < items.size(); ++index) assign_target(*target.items[index], std::move(items[index]));
}

// --- macros

Value Macro::call(Interpreter& interpreter, const Arguments& arguments) {
  return interpreter.call_macro(stmt_, static_cast<Interpreter::Scope*>(closure_), arguments);
}

Value Interpreter::call_macro(const Stmt& stmt, Scope* closure, const Arguments& arguments) {
  const std::string_view name = stmt.text.empty() ? "caller" : std::string_view(stmt.text);
  const ScopeGuard scope(*this, closure);
  std::vector<bool> given(stmt.parameters.size(), false);
  const size_t in_place = std::min(arguments.positional.size(), stmt.parameters.size());
  for (size_t index = 0; index < in_place; ++index) {
    assign(stmt.parameters[index].symbol, arguments.positional[index]);
    given[index] = true;
  }
  if (arguments.positional.size() > in_place && !stmt.uses_varargs) {
    throw TemplateError(fmt::format("macro '{}' takes not more than {} argument(s)", name, stmt.parameters.size()));
  }
  Value kwargs = Value::dict();
  Value caller = Value::undefined("No caller defined");
  for (const auto& [key, value] : arguments.keywords) {
    const auto parameter = std::find_if(stmt.parameters.begin(), stmt.parameters.end(),
                                        [&key = key](const Parameter& each) { return each.name == key; });
    if (parameter != stmt.parameters.end()) {
      const auto index = static_cast<size_t>(parameter - stmt.parameters.begin());
      if (given[index]) throw TemplateError(fmt::format("macro '{}' got multiple values for argument '{}'", name, key));
      assign(parameter->symbol, value);
      given[index] = true;
    } else if (key == "caller" && stmt.uses_caller) {
      caller = value;
    } else if (stmt.uses_kwargs) {
      kwargs.as_dict().set(key, value);
    } else {
      throw TemplateError(fmt::format("macro '{}' takes no keyword argument '{}'", name, key));
    }
  }
  for (size_t index = 0; index < stmt.parameters.size(); ++index) {
    if (given[index]) continue;
    const Parameter& parameter = stmt.parameters[index];
    assign(parameter.symbol, parameter.fallback
                                 ? eval(*parameter.fallback)
                                 : Value::undefined(fmt::format("parameter '{}' was not provided", parameter.name)));
  }
  if (stmt.uses_varargs) {
    assign(kVarargsSymbol, Value::tuple({arguments.positional.begin() + static_cast<std::ptrdiff_t>(in_place),
                                         arguments.positional.end()}));
  }
  if (stmt.uses_kwargs) assign(kKwargsSymbol, std::move(kwargs));
  if (stmt.uses_caller) assign(kCallerSymbol, std::move(caller));
  MarkedText text;
  const Capture capture(*this, text);
  exec(stmt.body);
  return Value::string(std::move(text));
}

}  // namespace warmpath::jinja
