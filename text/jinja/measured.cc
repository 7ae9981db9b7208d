// The interpreter's reads that a LoopRecorder follows more closely than as a whole: items of a list by their place, and
// comparisons of integers.
#include <limits>

#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"

namespace warmpath::jinja {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

bool is_length_filter(const Expr& expr) {
  return expr.kind == ExprKind::kFilter && (expr.text == "length" || expr.text == "count") && expr.first &&
         expr.items.empty() && expr.keywords.empty() && !expr.star && !expr.double_star;
}

// Whether evaluating it can change nothing.
bool is_plain(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kConstant:
    case ExprKind::kName:
      return true;
    case ExprKind::kAttribute:
      return is_plain(*expr.first);
    case ExprKind::kBinary:
      return is_plain(*expr.first) && is_plain(*expr.second);
    default:
      return is_length_filter(expr) && is_plain(*expr.first);
  }
}

Comparison mirrored(Comparison comparison) {
  switch (comparison) {
    case Comparison::kLess:
      return Comparison::kGreater;
    case Comparison::kLessEqual:
      return Comparison::kGreaterEqual;
    case Comparison::kGreater:
      return Comparison::kLess;
    case Comparison::kGreaterEqual:
      return Comparison::kLessEqual;
    default:
      return comparison;
  }
}

struct Range {
  int64_t low;  // both inclusive
  int64_t high;
};

// The integers x on `value`'s side for which `x comparison limit` is what it is for `value`.
Range like(int64_t value, Comparison comparison, int64_t limit) {
  const Range below = {kLowest, limit == kLowest ? limit : limit - 1};
  const Range above = {limit == kHighest ? limit : limit + 1, kHighest};
  switch (comparison) {
    case Comparison::kLess:
    case Comparison::kGreaterEqual:
      return value < limit ? below : Range{limit, kHighest};
    case Comparison::kGreater:
    case Comparison::kLessEqual:
      return value > limit ? above : Range{kLowest, limit};
    default:
      return value == limit ? Range{limit, limit} : value < limit ? below : above;
  }
}

}  // namespace

Value Interpreter::eval_outer_subscript(const Expr& expr, Value list) {
  const Symbol symbol = expr.first->symbol;
  const auto size = static_cast<int64_t>(list.as_list().items.size());
  const auto within = [size](const Value& value, int64_t end) {
    return value.is_int() && value.as_int() >= 0 && value.as_int() < size + end;
  };
  if (expr.second->kind != ExprKind::kSlice) {
    const Value key = eval(*expr.second);
    if (within(key, 0)) {
      recorder_->read_leading(symbol, static_cast<size_t>(key.as_int()) + 1);
    } else {
      recorder_->read_variable(symbol);
    }
    return item(list, key);
  }
  const auto part = [this](const ExprPtr& bound) { return bound ? eval(*bound) : Value::none(); };
  const Value start = part(expr.second->first);
  const Value stop = part(expr.second->second);
  const Value step = part(expr.second->third);
  if (within(stop, 1) && (start.is_none() || within(start, 1)) && step.is_none()) {
    recorder_->read_leading(symbol, static_cast<size_t>(stop.as_int()));
  } else {
    recorder_->read_variable(symbol);
  }
  return checked(slice(list, start, stop, step));
}

std::optional<LoopRecorder::Measure> Interpreter::measure_of(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kName: {
      const Value* value = outer_variable(expr.symbol);
      return value != nullptr && value->is_int() ? recorder_->measure_variable(expr.symbol) : std::nullopt;
    }
    case ExprKind::kFilter: {
      if (!is_length_filter(expr) || expr.first->kind != ExprKind::kName) return std::nullopt;
      const Value* value = outer_variable(expr.first->symbol);
      if (value == nullptr || !value->is_list()) return std::nullopt;
      const auto measure = recorder_->measure_variable(expr.first->symbol);
      // This very round may have changed the list.
      const bool is_current = measure && measure->measure == static_cast<int64_t>(value->as_list().items.size());
      return is_current ? measure : std::nullopt;
    }
    case ExprKind::kAttribute: {
      if (expr.first->kind != ExprKind::kName) return std::nullopt;
      if (expr.first->symbol != kLoopSymbol && outer_variable(expr.first->symbol) == nullptr) return std::nullopt;
      const Value object = lookup(expr.first->symbol);
      if (object.kind() != Value::Kind::kObject) return std::nullopt;
      if (const auto* space = dynamic_cast<const Namespace*>(object.as_node())) {
        return recorder_->measure_attribute(*space, expr.text);
      }
      if (expr.text != "length") return std::nullopt;
      return recorder_->measure_loop_length(*static_cast<const Object*>(object.as_node()));
    }
    case ExprKind::kBinary: {
      const bool adds = expr.operation == BinaryOp::kAdd;
      if (!adds && expr.operation != BinaryOp::kSubtract) return std::nullopt;
      if (expr.second->kind != ExprKind::kConstant || !expr.second->constant.is_int()) return std::nullopt;
      auto measure = measure_of(*expr.first);
      const int64_t change = expr.second->constant.as_int();
      const bool overflows = measure && (adds ? __builtin_add_overflow(measure->offset, change, &measure->offset)
                                              : __builtin_sub_overflow(measure->offset, change, &measure->offset));
      return overflows ? std::nullopt : measure;
    }
    default:
      return std::nullopt;
  }
}

std::optional<bool> Interpreter::compare_measured(const Expr& expr) {
  if (expr.items.size() != 1 || expr.comparisons[0] > Comparison::kGreaterEqual) return std::nullopt;
  if (!is_plain(*expr.first) || !is_plain(*expr.items[0])) return std::nullopt;
  auto measure = measure_of(*expr.first);
  const bool at_left = measure.has_value();
  if (!at_left) measure = measure_of(*expr.items[0]);
  int64_t left = 0;
  if (!measure || __builtin_add_overflow(measure->measure, measure->offset, &left)) return std::nullopt;
  const Value other = eval(at_left ? *expr.items[0] : *expr.first);
  if (!other.is_int()) return std::nullopt;
  const Comparison comparison = at_left ? expr.comparisons[0] : mirrored(expr.comparisons[0]);
  const Range range = like(left, comparison, other.as_int());
  recorder_->depend_on(*measure, range.low, range.high);
  return compare(comparison, Value::integer(left), other);
}

}  // namespace warmpath::jinja
