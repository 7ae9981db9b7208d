// The interpreter's half that evaluates expressions.
#include <fmt/format.h>

#include <utility>

#include "text/jinja/builtins.h"
#include "text/jinja/interpreter_guards.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"

namespace warmpath::jinja {

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

}  // namespace warmpath::jinja
