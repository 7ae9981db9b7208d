// The interpreter's half that executes statements, loops and macros.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "text/jinja/interpreter_guards.h"
#include "text/jinja/macro.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"

namespace warmpath::jinja {

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
