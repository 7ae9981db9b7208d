// The language's tests (`x is defined`), and the look-up of filters by name.
#include <fmt/format.h>

#include <unordered_map>

#include "text/jinja/builtins.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/text_ops.h"

namespace warmpath::jinja {
namespace {

using Kind = Value::Kind;

const Value& only(const Arguments& arguments, std::string_view test) {
  if (arguments.positional.size() != 1) throw TemplateError(fmt::format("test '{}' takes one argument", test));
  return arguments.positional[0];
}

template <Comparison kComparison>
bool compares(Interpreter&, const Value& input, const Arguments& arguments) {
  return compare(kComparison, input, only(arguments, "comparison"));
}

bool is_callable(const Value& input) {
  return input.kind() == Kind::kObject && static_cast<const Object*>(input.as_node())->callable();
}

bool same_as(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is_string() || a.is_list() || a.is_dict() || a.kind() == Kind::kObject) return a.as_node() == b.as_node();
  return values_equal(a, b);
}

template <bool kUpper>
bool is_case(Interpreter&, const Value& input, const Arguments&) {
  const MarkedText text = to_text(input);
  const MarkedText upper = change_case(text, CaseChange::kUpper);
  const MarkedText lower = change_case(text, CaseChange::kLower);
  return !(upper == lower) && text == (kUpper ? upper : lower);
}

bool divisible(const Value& input, const Value& by) { return !truthy(apply_binary(BinaryOp::kModulo, input, by)); }

// Has a length and can be indexed; Jinja2's undefined does both.
bool is_sequence(const Value& value) {
  return value.is_undefined() || value.is_string() || value.is_dict() ||
         (value.is_list() && value.as_list().type <= SequenceKind::kRange);
}

using TestTable = std::unordered_map<std::string_view, Test>;

const TestTable& tests() {
  static const TestTable table = {
      {"defined", [](Interpreter&, const Value& v, const Arguments&) { return !v.is_undefined(); }},
      {"undefined", [](Interpreter&, const Value& v, const Arguments&) { return v.is_undefined(); }},
      {"none", [](Interpreter&, const Value& v, const Arguments&) { return v.is_none(); }},
      {"boolean", [](Interpreter&, const Value& v, const Arguments&) { return v.is_bool(); }},
      {"true", [](Interpreter&, const Value& v, const Arguments&) { return v.is_bool() && v.as_bool(); }},
      {"false", [](Interpreter&, const Value& v, const Arguments&) { return v.is_bool() && !v.as_bool(); }},
      {"integer",
       [](Interpreter&, const Value& v, const Arguments&) { return v.is_int() || v.kind() == Kind::kBigInt; }},
      {"float", [](Interpreter&, const Value& v, const Arguments&) { return v.kind() == Kind::kFloat; }},
      {"number", [](Interpreter&, const Value& v, const Arguments&) { return v.is_number(); }},
      {"string", [](Interpreter&, const Value& v, const Arguments&) { return v.is_string(); }},
      {"mapping", [](Interpreter&, const Value& v, const Arguments&) { return v.is_dict(); }},
      {"sequence", [](Interpreter&, const Value& v, const Arguments&) { return is_sequence(v); }},
      {"iterable", [](Interpreter&, const Value& v,
                      const Arguments&) { return v.is_undefined() || v.is_string() || v.is_list() || v.is_dict(); }},
      {"callable", [](Interpreter&, const Value& v, const Arguments&) { return is_callable(v); }},
      {"escaped", [](Interpreter&, const Value&, const Arguments&) { return false; }},
      {"odd", [](Interpreter&, const Value& v, const Arguments&) { return !divisible(v, Value::integer(2)); }},
      {"even", [](Interpreter&, const Value& v, const Arguments&) { return divisible(v, Value::integer(2)); }},
      {"divisibleby",
       [](Interpreter&, const Value& v, const Arguments& a) { return divisible(v, only(a, "divisibleby")); }},
      {"sameas", [](Interpreter&, const Value& v, const Arguments& a) { return same_as(v, only(a, "sameas")); }},
      {"in", [](Interpreter&, const Value& v, const Arguments& a) { return contains(only(a, "in"), v); }},
      {"lower", is_case<false>},
      {"upper", is_case<true>},
      {"filter",
       [](Interpreter&, const Value& v, const Arguments&) { return find_filter(v.string_or_empty()) != nullptr; }},
      {"test",
       [](Interpreter&, const Value& v, const Arguments&) { return find_test(v.string_or_empty()) != nullptr; }},
      {"==", compares<Comparison::kEqual>},
      {"eq", compares<Comparison::kEqual>},
      {"equalto", compares<Comparison::kEqual>},
      {"!=", compares<Comparison::kNotEqual>},
      {"ne", compares<Comparison::kNotEqual>},
      {"<", compares<Comparison::kLess>},
      {"lt", compares<Comparison::kLess>},
      {"lessthan", compares<Comparison::kLess>},
      {"<=", compares<Comparison::kLessEqual>},
      {"le", compares<Comparison::kLessEqual>},
      {">", compares<Comparison::kGreater>},
      {"gt", compares<Comparison::kGreater>},
      {"greaterthan", compares<Comparison::kGreater>},
      {">=", compares<Comparison::kGreaterEqual>},
      {"ge", compares<Comparison::kGreaterEqual>},
  };
  return table;
}

std::unordered_map<std::string_view, Filter> all_filters() {
  std::unordered_map<std::string_view, Filter> table;
  for (const auto& rows : {text_filters(), sequence_filters()}) {
    for (const NamedFilter& row : rows) table.emplace(row.name, row.filter);
  }
  return table;
}

}  // namespace

Test find_test(std::string_view name) {
  const auto found = tests().find(name);
  return found == tests().end() ? nullptr : found->second;
}

Filter find_filter(std::string_view name) {
  static const std::unordered_map<std::string_view, Filter> table = all_filters();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace warmpath::jinja
