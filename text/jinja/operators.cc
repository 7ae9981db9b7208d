#include "text/jinja/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "text/jinja/error.h"
#include "text/jinja/python_text.h"
#include "text/jinja/string_format.h"
#include "text/jinja/text_ops.h"

namespace warmpath::jinja {
namespace {

using Kind = Value::Kind;

// "x" * n and [x] * n beyond this many bytes or items are refused before they are built.
constexpr uint64_t kMaxRepeated = uint64_t{64} << 20;

std::string_view sign_of(BinaryOp operation) {
  static constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};
  return kSigns[static_cast<size_t>(operation)];
}

bool is_whole(const Value& value) { return value.is_int() || value.is_bool(); }
int64_t whole(const Value& value) { return value.is_bool() ? int64_t{value.as_bool()} : value.as_int(); }

double real(const Value& value) {
  if (value.kind() == Kind::kFloat) return value.as_real();
  if (value.kind() == Kind::kBigInt) throw TemplateError("arithmetic beyond 64-bit integers is not supported");
  return static_cast<double>(whole(value));
}

[[noreturn]] void unsupported(BinaryOp operation, const Value& left, const Value& right) {
  throw TemplateError(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", sign_of(operation),
                                  type_name(left), type_name(right)));
}

[[noreturn]] void overflow() { throw TemplateError("integer beyond 64 bits"); }

Value whole_arithmetic(BinaryOp operation, int64_t left, int64_t right) {
  int64_t result = 0;
  switch (operation) {
    case BinaryOp::kAdd:
      if (__builtin_add_overflow(left, right, &result)) overflow();
      return Value::integer(result);
    case BinaryOp::kSubtract:
      if (__builtin_sub_overflow(left, right, &result)) overflow();
      return Value::integer(result);
    case BinaryOp::kMultiply:
      if (__builtin_mul_overflow(left, right, &result)) overflow();
      return Value::integer(result);
    case BinaryOp::kDivide:
      if (right == 0) throw TemplateError("division by zero");
      return Value::real(static_cast<double>(left) / static_cast<double>(right));
    case BinaryOp::kFloorDivide:
    case BinaryOp::kModulo: {
      if (right == 0) throw TemplateError("integer division or modulo by zero");
      if (left == std::numeric_limits<int64_t>::min() && right == -1) overflow();
      const int64_t remainder = left % right;
      const bool floor_down = remainder != 0 && (remainder < 0) != (right < 0);
      if (operation == BinaryOp::kModulo) return Value::integer(remainder + (floor_down ? right : 0));
      return Value::integer(left / right - (floor_down ? 1 : 0));
    }
    case BinaryOp::kPower: {
      if (right < 0) return Value::real(std::pow(static_cast<double>(left), static_cast<double>(right)));
      result = 1;
      for (int64_t base = left; right > 0; right >>= 1) {
        if ((right & 1) != 0 && __builtin_mul_overflow(result, base, &result)) overflow();
        if (right > 1 && __builtin_mul_overflow(base, base, &base)) overflow();
      }
      return Value::integer(result);
    }
  }
  return {};
}

Value real_arithmetic(BinaryOp operation, double left, double right) {
  switch (operation) {
    case BinaryOp::kAdd:
      return Value::real(left + right);
    case BinaryOp::kSubtract:
      return Value::real(left - right);
    case BinaryOp::kMultiply:
      return Value::real(left * right);
    case BinaryOp::kDivide:
      if (right == 0) throw TemplateError("float division by zero");
      return Value::real(left / right);
    case BinaryOp::kFloorDivide:
      if (right == 0) throw TemplateError("float floor division by zero");
      return Value::real(std::floor(left / right));
    case BinaryOp::kModulo: {
      if (right == 0) throw TemplateError("float modulo by zero");
      double remainder = std::fmod(left, right);
      if (remainder != 0 && (remainder < 0) != (right < 0)) remainder += right;
      return Value::real(remainder);
    }
    case BinaryOp::kPower:
      return Value::real(std::pow(left, right));
  }
  return {};
}

Value repeat(const Value& value, int64_t times) {
  const bool empty = value.is_string() ? value.as_text().empty() : value.as_list().items.empty();
  const auto count = empty ? 0 : static_cast<uint64_t>(std::max<int64_t>(times, 0));
  const uint64_t unit = value.is_string() ? value.as_text().size() : value.as_list().weight;
  if (count > 0 && count > kMaxRepeated / unit) throw TemplateLimit("a repeated string or list would be too large");
  if (value.is_string()) {
    const size_t size = count * unit;
    std::string text = count > 0 ? value.as_text().to_string() : std::string();
    text.reserve(size);
    while (text.size() < size) text.append(text, 0, std::min(text.size(), size - text.size()));
    return Value::string(std::move(text), value.as_text().origin());
  }
  const ValueList& list = value.as_list();
  std::vector<Value> items;
  for (uint64_t index = 0; index < count; ++index) items.insert(items.end(), list.items.begin(), list.items.end());
  return Value::sequence(list.type, std::move(items));
}

Value add_sequences(Value left, const Value& right) {
  if (left.is_string()) {
    if (!right.is_string()) {
      throw TemplateError(fmt::format("can only concatenate str (not \"{}\") to str", type_name(right)));
    }
    if (MarkedText* own = left.exclusive_text()) {
      own->append(right.as_text());
      return left;
    }
    MarkedText both = left.as_text();
    both.append(right.as_text());
    return Value::string(std::move(both));
  }
  if (!right.is_list() || left.as_list().type != right.as_list().type || left.as_list().type > SequenceKind::kTuple) {
    const std::string_view name = type_name(left);
    throw TemplateError(fmt::format("can only concatenate {} (not \"{}\") to {}", name, type_name(right), name));
  }
  std::vector<Value> items = left.as_list().items;
  items.insert(items.end(), right.as_list().items.begin(), right.as_list().items.end());
  return Value::sequence(left.as_list().type, std::move(items));
}

}  // namespace

void require_defined(const Value& value) {
  if (!value.is_undefined()) return;
  const std::string_view reason = value.undefined_reason();
  throw TemplateError(reason.empty() ? "an undefined value is used" : std::string(reason));
}

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return value.as_bool();
    case Kind::kInt:
      return value.as_int() != 0;
    case Kind::kFloat:
      return value.as_real() != 0;
    case Kind::kString:
      return !value.as_text().empty();
    case Kind::kList:
      return value.as_list().type == SequenceKind::kGenerator || !value.as_list().items.empty();
    case Kind::kDict:
      return !value.as_dict().entries.empty();
    case Kind::kBigInt:
    case Kind::kObject:
      return true;
  }
  return true;
}

Value apply_binary(BinaryOp operation, Value left, const Value& right) {
  require_defined(left);
  if (operation == BinaryOp::kModulo && left.is_string()) return percent_format(left, right);
  require_defined(right);
  if (left.is_number() && right.is_number()) {
    if (is_whole(left) && is_whole(right)) return whole_arithmetic(operation, whole(left), whole(right));
    return real_arithmetic(operation, real(left), real(right));
  }
  const bool left_sequence = left.is_string() || (left.is_list() && left.as_list().type <= SequenceKind::kTuple);
  if (operation == BinaryOp::kAdd && left_sequence) return add_sequences(std::move(left), right);
  if (operation == BinaryOp::kMultiply) {
    if (left_sequence && is_whole(right)) return repeat(left, whole(right));
    if (is_whole(left) && (right.is_string() || (right.is_list() && right.as_list().type <= SequenceKind::kTuple)))
      return repeat(right, whole(left));
  }
  unsupported(operation, left, right);
}

Value negate(const Value& value) {
  require_defined(value);
  if (is_whole(value)) return whole_arithmetic(BinaryOp::kSubtract, 0, whole(value));
  if (value.kind() == Kind::kFloat) return Value::real(-value.as_real());
  throw TemplateError(fmt::format("bad operand type for unary -: '{}'", type_name(value)));
}

bool less_than(const Value& left, const Value& right, std::string_view operation, int depth) {
  require_defined(left);
  require_defined(right);
  if (left.is_number() && right.is_number()) {
    if (is_whole(left) && is_whole(right)) return whole(left) < whole(right);
    return real(left) < real(right);
  }
  if (left.is_string() && right.is_string()) {
    std::string left_scratch;
    std::string right_scratch;
    // Bytes of UTF-8 order as code points do.
    return left.as_text().view(left_scratch) < right.as_text().view(right_scratch);
  }
  if (left.is_list() && right.is_list() && depth < Value::kMaxDepth) {
    const auto& a = left.as_list().items;
    const auto& b = right.as_list().items;
    for (size_t index = 0; index < std::min(a.size(), b.size()); ++index) {
      if (!values_equal(a[index], b[index])) return less_than(a[index], b[index], operation, depth + 1);
    }
    return a.size() < b.size();
  }
  throw TemplateError(fmt::format("'{}' not supported between instances of '{}' and '{}'", operation, type_name(left),
                                  type_name(right)));
}

bool compare(Comparison comparison, const Value& left, const Value& right) {
  switch (comparison) {
    case Comparison::kEqual:
      return values_equal(left, right);
    case Comparison::kNotEqual:
      return !values_equal(left, right);
    case Comparison::kLess:
      return less_than(left, right, "<");
    case Comparison::kGreater:
      return less_than(right, left, ">");
    // Written so that a NaN is neither.
    case Comparison::kLessEqual:
      return less_than(left, right, "<=") || values_equal(left, right);
    case Comparison::kGreaterEqual:
      return less_than(right, left, ">=") || values_equal(left, right);
    case Comparison::kIn:
      return contains(right, left);
    case Comparison::kNotIn:
      return !contains(right, left);
  }
  return false;
}

bool contains(const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kString: {
      if (!item.is_string()) {
        throw TemplateError(fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
      }
      std::string text;
      std::string wanted;
      return container.as_text().view(text).find(item.as_text().view(wanted)) != std::string_view::npos;
    }
    case Kind::kList: {
      const auto& items = container.as_list().items;
      return std::any_of(items.begin(), items.end(), [&item](const Value& each) { return values_equal(each, item); });
    }
    case Kind::kDict:
      return container.as_dict().find(item) != nullptr;
    default:
      throw TemplateError(fmt::format("argument of type '{}' is not iterable", type_name(container)));
  }
}

int64_t length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return static_cast<int64_t>(char_count(value.as_text()));
    case Kind::kList:
      if (value.as_list().type == SequenceKind::kGenerator) throw TemplateError("object of type 'generator' has no len()");
      return static_cast<int64_t>(value.as_list().items.size());
    case Kind::kDict:
      return static_cast<int64_t>(value.as_dict().entries.size());
    default:
      throw TemplateError(fmt::format("object of type '{}' has no len()", type_name(value)));
  }
}

std::vector<Value> items_of(const Value& iterable) {
  switch (iterable.kind()) {
    case Kind::kUndefined:
      return {};
    case Kind::kString:
      return characters_of(iterable.as_text());
    case Kind::kList:
      if (iterable.as_list().type == SequenceKind::kGenerator) return std::exchange(iterable.as_list().items, {});
      return iterable.as_list().items;
    case Kind::kDict: {
      std::vector<Value> keys;
      for (const auto& [key, value] : iterable.as_dict().entries) keys.push_back(key);
      return keys;
    }
    default:
      throw TemplateError(fmt::format("'{}' object is not iterable", type_name(iterable)));
  }
}

Value slice(const Value& value, const Value& start, const Value& stop, const Value& step) {
  require_defined(value);
  if (!value.is_string() && !(value.is_list() && value.as_list().type <= SequenceKind::kRange)) {
    throw TemplateError(fmt::format("'{}' object is not subscriptable with a slice", type_name(value)));
  }
  const auto bound = [](const Value& part, std::string_view what) -> std::optional<int64_t> {
    if (part.is_none()) return std::nullopt;
    return to_integer(part, what);
  };
  const int64_t stride = bound(step, "a slice's step").value_or(1);
  if (stride == 0) throw TemplateError("slice step cannot be zero");
  const int64_t length = length_of(value);
  // Python's slice.indices().
  const int64_t lowest = stride < 0 ? -1 : 0;
  const int64_t highest = stride < 0 ? length - 1 : length;
  const auto clip = [&](std::optional<int64_t> index, int64_t fallback) {
    if (!index) return fallback;
    const int64_t from_start = *index < 0 ? std::max(*index, -length - 1) + length : *index;
    return std::clamp(from_start, lowest, highest);
  };
  const int64_t first = clip(bound(start, "a slice's start"), stride < 0 ? highest : lowest);
  const int64_t end = clip(bound(stop, "a slice's end"), stride < 0 ? lowest : highest);
  if (value.is_string() && stride == 1) {
    return Value::string(
        char_slice(value.as_text(), static_cast<size_t>(first), static_cast<size_t>(std::max(first, end))));
  }
  const std::vector<Value> all = items_of(value);
  std::vector<Value> kept;
  for (int64_t at = first; stride > 0 ? at < end : at > end;) {
    kept.push_back(all[static_cast<size_t>(at)]);
    if (__builtin_add_overflow(at, stride, &at)) break;
  }
  if (value.is_list()) return Value::sequence(value.as_list().type, std::move(kept));
  MarkedText text;
  for (const Value& character : kept) text.append(character.as_text());
  return Value::string(std::move(text));
}

int64_t to_integer(const Value& value, std::string_view what) {
  if (is_whole(value)) return whole(value);
  throw TemplateError(fmt::format("{} must be an integer, not {}", what, type_name(value)));
}

}  // namespace warmpath::jinja
