#include "text/value.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace warmpath {
namespace {

struct TextNode final : ValueNode {
  MarkedText text;
};
struct DigitsNode final : ValueNode {
  std::string digits;
};

const MarkedText& empty_text() {
  static const MarkedText empty;
  return empty;
}

// Accounts for `item` becoming a part of `container`.
template <typename Container>
void enclose(const Value& item, Container& container) {
  container.depth = std::max(container.depth, item.depth() + 1);
  const uint64_t weight = uint64_t{container.weight} + item.weight();
  container.weight = static_cast<uint32_t>(std::min<uint64_t>(weight, std::numeric_limits<uint32_t>::max()));
  if (item.is_list() && !item.as_list().frozen) item.as_list().contained = true;
}

}  // namespace

Value Value::boolean(bool flag) {
  Value value(Kind::kBool);
  value.payload_.flag = flag;
  return value;
}

Value Value::integer(int64_t number) {
  Value value(Kind::kInt);
  value.payload_.integer = number;
  return value;
}

Value Value::real(double number) {
  Value value(Kind::kFloat);
  value.payload_.real = number;
  return value;
}

Value Value::big_integer(std::string digits) {
  auto node = boost::intrusive_ptr<DigitsNode>(new DigitsNode);
  node->digits = std::move(digits);
  Value value(Kind::kBigInt);
  value.payload_.node = node.detach();
  return value;
}

Value Value::string(MarkedText text) {
  auto node = boost::intrusive_ptr<TextNode>(new TextNode);
  node->text = std::move(text);
  Value value(Kind::kString);
  value.payload_.node = node.detach();
  return value;
}

Value Value::list(std::vector<Value> items) {
  auto node = boost::intrusive_ptr<ValueList>(new ValueList);
  for (const Value& item : items) enclose(item, *node);
  node->items = std::move(items);
  Value value(Kind::kList);
  value.payload_.node = node.detach();
  return value;
}

Value Value::sequence(SequenceKind type, std::vector<Value> items) {
  Value value = list(std::move(items));
  value.as_list().type = type;
  return value;
}

Value Value::dict() {
  Value value(Kind::kDict);
  value.payload_.node = boost::intrusive_ptr<ValueDict>(new ValueDict).detach();
  return value;
}

Value Value::object(boost::intrusive_ptr<ValueNode> node) {
  Value value(Kind::kObject);
  value.payload_.node = node.detach();
  return value;
}

Value Value::undefined(std::string reason) {
  Value value = string(std::move(reason), Origin::kTemplate);
  value.kind_ = Kind::kUndefined;
  return value;
}

Value::Value(const Value& other) noexcept : kind_(other.kind_), payload_(other.payload_) {
  if (counted()) intrusive_ptr_add_ref(payload_.node);
}

Value::~Value() {
  if (counted()) intrusive_ptr_release(payload_.node);
}

const MarkedText& Value::as_text() const { return static_cast<const TextNode*>(payload_.node)->text; }
const std::string& Value::as_digits() const { return static_cast<const DigitsNode*>(payload_.node)->digits; }
ValueList& Value::as_list() const { return *static_cast<ValueList*>(payload_.node); }
ValueDict& Value::as_dict() const { return *static_cast<ValueDict*>(payload_.node); }

std::string_view Value::undefined_reason() const {
  const bool named = is_undefined() && payload_.node != nullptr;
  const MarkedText& text = named ? static_cast<const TextNode*>(payload_.node)->text : empty_text();
  return text.empty() ? std::string_view() : text.parts()[0].bytes;
}

std::string Value::string_or_empty() const { return is_string() ? as_text().to_string() : std::string(); }

const Value* Value::find(std::string_view key) const { return is_dict() ? as_dict().find(key) : nullptr; }

int Value::depth() const {
  if (is_list()) return as_list().depth;
  if (is_dict()) return as_dict().depth;
  return 0;
}

uint32_t Value::weight() const {
  if (is_list()) return as_list().weight;
  if (is_dict()) return as_dict().weight;
  return 1;
}

MarkedText* Value::exclusive_text() {
  if (!is_string() || payload_.node->use_count() != 1) return nullptr;
  return &static_cast<TextNode*>(payload_.node)->text;
}

void ValueList::append(Value item) {
  enclose(item, *this);
  items.push_back(std::move(item));
}

void ValueDict::set(Value key, Value value) {
  enclose(value, *this);
  const size_t at = position_of(key);
  if (at < entries.size()) {
    entries[at].second = std::move(value);
    return;
  }
  entries.emplace_back(std::move(key), std::move(value));
  if (entries.size() < kIndexFrom) return;
  const size_t first_unindexed = entries.size() == kIndexFrom ? 0 : entries.size() - 1;
  for (size_t index = first_unindexed; index < entries.size(); ++index) {
    if (entries[index].first.is_string()) index_.emplace(entries[index].first.as_text().to_string(), index);
  }
}

void ValueDict::set(std::string_view key, Value value) {
  set(Value::string(std::string(key), Origin::kTemplate), std::move(value));
}

size_t ValueDict::position_of(std::string_view key) const {
  if (entries.size() >= kIndexFrom) {
    const auto found = index_.find(std::string(key));
    return found == index_.end() ? entries.size() : found->second;
  }
  size_t at = 0;
  while (at < entries.size() && !(entries[at].first.is_string() && entries[at].first.as_text() == key)) ++at;
  return at;
}

size_t ValueDict::position_of(const Value& key) const {
  if (key.is_string()) {
    std::string scratch;
    return position_of(key.as_text().view(scratch));
  }
  size_t at = 0;
  while (at < entries.size() && !values_equal(entries[at].first, key)) ++at;
  return at;
}

const Value* ValueDict::find(std::string_view key) const {
  const size_t at = position_of(key);
  return at < entries.size() ? &entries[at].second : nullptr;
}

const Value* ValueDict::find(const Value& key) const {
  const size_t at = position_of(key);
  return at < entries.size() ? &entries[at].second : nullptr;
}

namespace {

bool numbers_equal(const Value& left, const Value& right) {
  if (left.kind() == Value::Kind::kBigInt || right.kind() == Value::Kind::kBigInt) {
    return left.kind() == right.kind() && left.as_digits() == right.as_digits();
  }
  const auto whole = [](const Value& value) { return value.is_bool() ? int64_t{value.as_bool()} : value.as_int(); };
  const bool left_real = left.kind() == Value::Kind::kFloat;
  const bool right_real = right.kind() == Value::Kind::kFloat;
  if (!left_real && !right_real) return whole(left) == whole(right);
  if (left_real && right_real) return left.as_real() == right.as_real();
  const double real = left_real ? left.as_real() : right.as_real();
  const int64_t integer = whole(left_real ? right : left);
  // Exact: a double equals an integer only when it is one and is in range (2^63 bounds int64).
  return std::trunc(real) == real && real >= -9223372036854775808.0 && real < 9223372036854775808.0 &&
         static_cast<int64_t>(real) == integer;
}

}  // namespace

bool values_equal(const Value& left, const Value& right, int depth) {
  if (depth > Value::kMaxDepth) return false;
  if (left.is_number() && right.is_number()) return numbers_equal(left, right);
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Value::Kind::kUndefined:
    case Value::Kind::kNone:
      return true;
    case Value::Kind::kString:
      return left.as_text() == right.as_text();
    case Value::Kind::kList: {
      const ValueList& a = left.as_list();
      const ValueList& b = right.as_list();
      return &a == &b || (a.type == b.type && std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(),
                                                         [depth](const Value& x, const Value& y) {
                                                           return values_equal(x, y, depth + 1);
                                                         }));
    }
    case Value::Kind::kDict: {
      const ValueDict& a = left.as_dict();
      const ValueDict& b = right.as_dict();
      if (&a == &b) return true;
      if (a.entries.size() != b.entries.size()) return false;
      for (const auto& [key, value] : a.entries) {
        const Value* other = b.find(key);
        if (other == nullptr || !values_equal(value, *other, depth + 1)) return false;
      }
      return true;
    }
    default:
      return left.as_node() == right.as_node();
  }
}

namespace {

bool texts_identical(const MarkedText& left, const MarkedText& right) {
  const auto same = [](const MarkedText::Part& a, const MarkedText::Part& b) {
    return a.origin == b.origin &&
           (a.bytes.data() == b.bytes.data() ? a.bytes.size() == b.bytes.size() : a.bytes == b.bytes);
  };
  const auto a = left.parts();
  const auto b = right.parts();
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

}  // namespace

bool values_identical(const Value& left, const Value& right) {
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Value::Kind::kNone:
      return true;
    case Value::Kind::kUndefined:
      return left.undefined_reason() == right.undefined_reason();
    case Value::Kind::kBool:
      return left.as_bool() == right.as_bool();
    case Value::Kind::kInt:
      return left.as_int() == right.as_int();
    case Value::Kind::kFloat: {
      const double a = left.as_real();
      const double b = right.as_real();
      return std::memcmp(&a, &b, sizeof(double)) == 0;
    }
    case Value::Kind::kBigInt:
      return left.as_digits() == right.as_digits();
    case Value::Kind::kString:
      return left.as_node() == right.as_node() || texts_identical(left.as_text(), right.as_text());
    case Value::Kind::kList: {
      const ValueList& a = left.as_list();
      const ValueList& b = right.as_list();
      if (a.type != b.type || a.type == SequenceKind::kGenerator) return false;
      return &a == &b || std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), values_identical);
    }
    case Value::Kind::kDict: {
      const ValueDict& a = left.as_dict();
      const ValueDict& b = right.as_dict();
      const auto same = [](const auto& x, const auto& y) {
        return values_identical(x.first, y.first) && values_identical(x.second, y.second);
      };
      return &a == &b || std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(), same);
    }
    case Value::Kind::kObject:
      return false;
  }
  return false;
}

}  // namespace warmpath
