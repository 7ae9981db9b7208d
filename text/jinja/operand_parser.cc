// What operators stand between: literals and names with all that follows them (attributes, subscripts, calls, filters,
// tests), and targets of assignments.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "text/jinja/expression_parser.h"

namespace warmpath::jinja {

ExprPtr ExpressionParser::parse_primary() {
  const Token token = peek();
  if (token.kind == TokenKind::kName) {
    take();
    if (token.text == "true" || token.text == "True" || token.text == "false" || token.text == "False") {
      ExprPtr expr = make(ExprKind::kConstant, token.place);
      expr->constant = Value::boolean(token.text[0] == 't' || token.text[0] == 'T');
      return expr;
    }
    if (token.text == "none" || token.text == "None") {
      ExprPtr expr = make(ExprKind::kConstant, token.place);
      expr->constant = Value::none();
      return expr;
    }
    ExprPtr expr = make(ExprKind::kName, token.place);
    expr->symbol = symbol_of(token.text);
    return expr;
  }
  if (token.kind == TokenKind::kString) {
    std::string text(take().text);
    while (peek().kind == TokenKind::kString) text += take().text;  // neighbours are one string
    ExprPtr expr = make(ExprKind::kConstant, token.place);
    expr->constant = Value::string(std::move(text), Origin::kTemplate);
    return expr;
  }
  if (token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat) return parse_number();
  if (peek_operator("(")) {
    const DepthGuard guard(*this);
    take();
    if (take_if_operator(")")) return make(ExprKind::kTuple, token.place);
    ExprPtr inner = parse_tuple();
    expect_operator(")");
    return inner;
  }
  if (peek_operator("[")) return parse_list();
  if (peek_operator("{")) return parse_dict();
  fail(fmt::format("unexpected {}", describe(token)));
}

ExprPtr ExpressionParser::parse_number() {
  const Token token = take();
  ExprPtr expr = make(ExprKind::kConstant, token.place);
  std::string digits(token.text);
  std::erase(digits, '_');
  if (token.kind == TokenKind::kFloat) {
    double number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    expr->constant = Value::real(number);
    return expr;
  }
  int base = 10;
  size_t skip = 0;
  if (digits.size() > 1 && digits[0] == '0' && digits[1] > '9') {
    base = (digits[1] | 0x20) == 'x' ? 16 : (digits[1] | 0x20) == 'o' ? 8 : 2;
    skip = 2;
  }
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(digits.data() + skip, digits.data() + digits.size(), number, base);
  if (stop != digits.data() + digits.size() && error == std::errc()) fail_at(token.place, "malformed number " + digits);
  if (error == std::errc::invalid_argument) fail_at(token.place, "malformed number " + digits);
  if (error == std::errc::result_out_of_range && base != 10) fail_at(token.place, "number beyond 64 bits: " + digits);
  expr->constant = error == std::errc() ? Value::integer(number) : Value::big_integer(digits);
  return expr;
}

ExprPtr ExpressionParser::parse_list() {
  const DepthGuard guard(*this);
  ExprPtr list = make(ExprKind::kList, take().place);
  while (!peek_operator("]")) {
    if (!list->items.empty()) expect_operator(",");
    if (peek_operator("]")) break;
    list->items.push_back(parse_expression());
  }
  expect_operator("]");
  return finish(std::move(list));
}

ExprPtr ExpressionParser::parse_dict() {
  const DepthGuard guard(*this);
  ExprPtr dict = make(ExprKind::kDict, take().place);
  while (!peek_operator("}")) {
    if (!dict->items.empty()) expect_operator(",");
    if (peek_operator("}")) break;
    dict->items.push_back(parse_expression());
    expect_operator(":");
    dict->items.push_back(parse_expression());
  }
  expect_operator("}");
  return finish(std::move(dict));
}

ExprPtr ExpressionParser::parse_postfix(ExprPtr node) {
  while (true) {
    if (peek_operator(".") || peek_operator("[")) {
      node = parse_subscript(std::move(node));
    } else if (peek_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::parse_filters_and_tests(ExprPtr node) {
  while (true) {
    if (peek_operator("|")) {
      take();
      node = parse_filter(std::move(node));
    } else if (peek_name("is")) {
      node = parse_test(std::move(node));
    } else if (peek_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

// What a name, a subscript, a filter or a test has given may be called.
ExprPtr ExpressionParser::parse_call(ExprPtr callee) {
  ExprPtr call = make(ExprKind::kCall, peek().place);
  call->first = std::move(callee);
  parse_arguments(*call);
  return finish(std::move(call));
}

ExprPtr ExpressionParser::parse_filter(ExprPtr input) {
  const Token name = take_name("a filter's name");
  ExprPtr filter = make(ExprKind::kFilter, name.place);
  filter->text = name.text;
  while (take_if_operator(".")) filter->text += "." + std::string(take_name("a filter's name").text);
  filter->first = std::move(input);
  if (peek_operator("(")) parse_arguments(*filter);
  return finish(std::move(filter));
}

ExprPtr ExpressionParser::parse_filter_chain() {
  ExprPtr node = parse_filter(nullptr);
  while (take_if_operator("|")) node = parse_filter(std::move(node));
  return node;
}

ExprPtr ExpressionParser::parse_test(ExprPtr node) {
  take();  // is
  const bool negated = take_if_name("not");
  const Token name = take_name("a test's name");
  ExprPtr test = make(ExprKind::kTest, name.place);
  test->text = name.text;
  while (take_if_operator(".")) test->text += "." + std::string(take_name("a test's name").text);
  test->first = std::move(node);
  const Token& next = peek();
  const bool value_follows = next.kind == TokenKind::kString || next.kind == TokenKind::kInteger ||
                             next.kind == TokenKind::kFloat || peek_operator("[") || peek_operator("{") ||
                             (next.kind == TokenKind::kName && next.text != "else" && next.text != "or" &&
                              next.text != "and" && next.text != "if");
  if (peek_operator("(")) {
    parse_arguments(*test);
  } else if (value_follows) {
    if (next.text == "is" && next.kind == TokenKind::kName) fail("You cannot chain multiple tests with is");
    test->items.push_back(parse_postfix(parse_primary()));
  }
  test = finish(std::move(test));
  if (!negated) return test;
  ExprPtr expr = make(ExprKind::kNot, name.place);
  expr->first = std::move(test);
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::parse_subscript(ExprPtr node) {
  const Token token = take();
  if (token.text == ".") {
    const Token name = take();
    if (name.kind == TokenKind::kName) {
      ExprPtr expr = make(ExprKind::kAttribute, name.place);
      expr->text = name.text;
      expr->constant = template_string(name.text);
      expr->first = std::move(node);
      return finish(std::move(expr));
    }
    if (name.kind != TokenKind::kInteger) fail_at(name.place, "expected name or number");
    ExprPtr expr = make(ExprKind::kSubscript, name.place);
    expr->first = std::move(node);
    expr->second = make(ExprKind::kConstant, name.place);
    int64_t number = 0;
    std::from_chars(name.text.data(), name.text.data() + name.text.size(), number);
    expr->second->constant = Value::integer(number);
    return finish(std::move(expr));
  }
  const DepthGuard guard(*this);
  ExprPtr expr = make(ExprKind::kSubscript, token.place);
  expr->first = std::move(node);
  std::vector<ExprPtr> parts;
  while (!peek_operator("]")) {
    if (!parts.empty()) expect_operator(",");
    parts.push_back(parse_subscript_part());
  }
  expect_operator("]");
  if (parts.empty()) fail_at(token.place, "expected a subscript");
  if (parts.size() == 1) {
    expr->second = std::move(parts.front());
  } else {
    expr->second = make(ExprKind::kTuple, token.place);
    expr->second->items = std::move(parts);
    expr->second = finish(std::move(expr->second));
  }
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::parse_subscript_part() {
  const Place place = peek().place;
  ExprPtr start;
  if (!peek_operator(":")) {
    start = parse_expression();
    if (!peek_operator(":")) return start;
  }
  take();  // :
  ExprPtr slice = make(ExprKind::kSlice, place);
  slice->first = std::move(start);
  const auto bound = [this]() -> ExprPtr {
    return peek_operator(":") || peek_operator("]") || peek_operator(",") ? nullptr : parse_expression();
  };
  slice->second = bound();
  if (take_if_operator(":")) slice->third = bound();
  return finish(std::move(slice));
}

void ExpressionParser::parse_arguments(Expr& call) {
  const DepthGuard guard(*this);
  expect_operator("(");
  bool first = true;
  while (!peek_operator(")")) {
    if (!std::exchange(first, false)) {
      expect_operator(",");
      if (peek_operator(")")) break;
    }
    const bool is_keyword =
        peek().kind == TokenKind::kName && peek(1).kind == TokenKind::kOperator && peek(1).text == "=";
    if (take_if_operator("**")) {
      if (call.double_star) fail("only one ** argument is possible");
      call.double_star = parse_expression();
    } else if (take_if_operator("*")) {
      if (call.star) fail("only one * argument is possible");
      call.star = parse_expression();
    } else if (is_keyword) {
      const std::string name(take().text);
      take();  // =
      call.keywords.emplace_back(name, parse_expression());
    } else {
      if (!call.keywords.empty() || call.double_star) fail("a positional argument follows a keyword argument");
      call.items.push_back(parse_expression());
    }
  }
  expect_operator(")");
}

ExprPtr ExpressionParser::parse_one_target() {
  if (take_if_operator("(")) {
    ExprPtr inner = parse_target(true);
    expect_operator(")");
    return inner;
  }
  const Token name = take_name("a name to assign to");
  ExprPtr expr = make(ExprKind::kName, name.place);
  expr->symbol = symbol_of(name.text);
  if (peek_operator(".")) {
    take();
    const Token attribute = take_name("an attribute's name");
    ExprPtr member = make(ExprKind::kAttribute, name.place);
    member->text = attribute.text;
    member->first = std::move(expr);
    return member;
  }
  for (const std::string_view fixed : {"true", "True", "false", "False", "none", "None"}) {
    if (name.text == fixed) fail_at(name.place, fmt::format("can't assign to '{}'", name.text));
  }
  return expr;
}

ExprPtr ExpressionParser::parse_target(bool until_in) {
  const DepthGuard guard(*this);
  const Place place = peek().place;
  ExprPtr first = parse_one_target();
  if (!peek_operator(",")) return first;
  ExprPtr tuple = make(ExprKind::kTuple, place);
  tuple->items.push_back(std::move(first));
  while (take_if_operator(",")) {
    if (peek_operator("=") || peek_operator(")") || (until_in && peek_name("in"))) break;
    tuple->items.push_back(parse_one_target());
  }
  return tuple;
}

}  // namespace warmpath::jinja
