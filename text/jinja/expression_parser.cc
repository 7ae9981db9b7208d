#include "text/jinja/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace warmpath::jinja {

ExpressionParser::ExpressionParser(Syntax& syntax, int max_depth) : syntax_(syntax), max_depth_(max_depth) {
  for (const std::string_view name : {"loop", "caller", "varargs", "kwargs"}) symbol_of(name);
  std::fill(uses_.begin(), uses_.end(), 0);
}

const Token& ExpressionParser::peek(size_t ahead) const {
  const auto& tokens = syntax_.tokens.tokens;
  return tokens[std::min(at_ + ahead, tokens.size() - 1)];
}

Token ExpressionParser::take() {
  const Token token = peek();
  if (token.kind != TokenKind::kEnd) ++at_;
  return token;
}

bool ExpressionParser::peek_operator(std::string_view text) const {
  return peek().kind == TokenKind::kOperator && peek().text == text;
}
bool ExpressionParser::peek_name(std::string_view text) const {
  return peek().kind == TokenKind::kName && peek().text == text;
}
bool ExpressionParser::take_if_operator(std::string_view text) {
  if (!peek_operator(text)) return false;
  take();
  return true;
}
bool ExpressionParser::take_if_name(std::string_view text) {
  if (!peek_name(text)) return false;
  take();
  return true;
}
void ExpressionParser::expect_operator(std::string_view text) {
  if (!take_if_operator(text)) fail(fmt::format("expected '{}', found {}", text, describe(peek())));
}
Token ExpressionParser::take_name(std::string_view what) {
  if (peek().kind != TokenKind::kName) fail(fmt::format("expected {}, found {}", what, describe(peek())));
  return take();
}

std::string ExpressionParser::describe(const Token& token) {
  if (token.kind == TokenKind::kEnd) return "the end of the template";
  if (token.kind == TokenKind::kString) return "a string";
  if (token.kind == TokenKind::kData) return "text";
  return fmt::format("'{}'", token.text);
}

void ExpressionParser::fail(const std::string& message) const { fail_at(peek().place, message); }
void ExpressionParser::fail_at(Place place, const std::string& message) const { throw TemplateError(place, message); }

Symbol ExpressionParser::symbol_of(std::string_view name) {
  const auto [found, added] = symbol_ids_.try_emplace(std::string(name), static_cast<Symbol>(syntax_.symbols.size()));
  if (added) {
    syntax_.symbols.emplace_back(name);
    uses_.push_back(0);
  }
  ++uses_[found->second];
  return found->second;
}

Value ExpressionParser::template_string(std::string_view text) const {
  const std::string& source = syntax_.tokens.source->bytes();
  const bool in_source = text.data() >= source.data() && text.data() + text.size() <= source.data() + source.size();
  if (!in_source) return Value::string(std::string(text), Origin::kTemplate);
  MarkedText marked;
  marked.append(MarkedText::Part{syntax_.tokens.source, text, Origin::kTemplate});
  return Value::string(std::move(marked));
}

ExprPtr ExpressionParser::make(ExprKind kind, Place place) const {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->place = place;
  return expr;
}

// Trees deeper than this could exhaust the stack of whoever walks them; real templates stay below 60.
static constexpr uint32_t kMaxHeight = 400;

ExprPtr ExpressionParser::finish(ExprPtr expr) const {
  uint32_t below = 0;
  const auto count = [&below](const ExprPtr& child) { below = child ? std::max(below, child->height) : below; };
  for (const ExprPtr* child : {&expr->first, &expr->second, &expr->third, &expr->star, &expr->double_star})
    count(*child);
  for (const ExprPtr& item : expr->items) count(item);
  for (const auto& [name, value] : expr->keywords) count(value);
  expr->height = below + 1;
  if (expr->height > kMaxHeight) fail_at(expr->place, "nested too deeply");
  return expr;
}

ExprPtr ExpressionParser::binary(BinaryOp operation, ExprPtr left, ExprPtr right, Place place) const {
  ExprPtr expr = make(ExprKind::kBinary, place);
  expr->operation = operation;
  expr->first = std::move(left);
  expr->second = std::move(right);
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::parse_tuple(bool conditional, std::initializer_list<std::string_view> stops) {
  const Place place = peek().place;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  const auto ends = [&] {
    const Token& token = peek();
    if (token.kind == TokenKind::kVariableEnd || token.kind == TokenKind::kBlockEnd || peek_operator(")")) return true;
    return token.kind == TokenKind::kName && std::find(stops.begin(), stops.end(), token.text) != stops.end();
  };
  while (true) {
    if (!items.empty()) {
      if (!peek_operator(",")) break;
      take();
      is_tuple = true;
    }
    if (ends()) break;
    items.push_back(parse_expression(conditional));
  }
  if (items.empty()) fail(fmt::format("Expected an expression, got {}", describe(peek())));
  if (!is_tuple) return std::move(items.front());
  ExprPtr tuple = make(ExprKind::kTuple, place);
  tuple->items = std::move(items);
  return finish(std::move(tuple));
}

ExprPtr ExpressionParser::parse_expression(bool conditional) {
  const DepthGuard guard(*this);
  ExprPtr node = parse_or();
  if (!conditional) return node;
  while (peek_name("if")) {
    const Place place = take().place;
    ExprPtr expr = make(ExprKind::kConditional, place);
    expr->first = std::move(node);
    expr->second = parse_or();
    if (take_if_name("else")) expr->third = parse_expression();
    node = finish(std::move(expr));
  }
  return node;
}

ExprPtr ExpressionParser::parse_or() {
  ExprPtr left = parse_and();
  while (peek_name("or")) {
    ExprPtr expr = make(ExprKind::kOr, take().place);
    expr->first = std::move(left);
    expr->second = parse_and();
    left = finish(std::move(expr));
  }
  return left;
}

ExprPtr ExpressionParser::parse_and() {
  ExprPtr left = parse_not();
  while (peek_name("and")) {
    ExprPtr expr = make(ExprKind::kAnd, take().place);
    expr->first = std::move(left);
    expr->second = parse_not();
    left = finish(std::move(expr));
  }
  return left;
}

ExprPtr ExpressionParser::parse_not() {
  if (!peek_name("not")) return parse_compare();
  const DepthGuard guard(*this);
  ExprPtr expr = make(ExprKind::kNot, take().place);
  expr->first = parse_not();
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::parse_compare() {
  ExprPtr left = parse_sum();
  ExprPtr compare;
  const auto comparison = [this]() -> std::optional<Comparison> {
    const Token& token = peek();
    if (token.kind == TokenKind::kOperator) {
      if (token.text == "==") return Comparison::kEqual;
      if (token.text == "!=") return Comparison::kNotEqual;
      if (token.text == "<") return Comparison::kLess;
      if (token.text == "<=") return Comparison::kLessEqual;
      if (token.text == ">") return Comparison::kGreater;
      if (token.text == ">=") return Comparison::kGreaterEqual;
    }
    if (peek_name("in")) return Comparison::kIn;
    if (peek_name("not") && peek(1).kind == TokenKind::kName && peek(1).text == "in") return Comparison::kNotIn;
    return std::nullopt;
  };
  while (const auto found = comparison()) {
    const Place place = take().place;
    if (*found == Comparison::kNotIn) take();
    if (!compare) {
      compare = make(ExprKind::kCompare, place);
      compare->first = std::move(left);
    }
    compare->comparisons.push_back(*found);
    compare->items.push_back(parse_sum());
  }
  return compare ? finish(std::move(compare)) : std::move(left);
}

ExprPtr ExpressionParser::parse_sum() {
  ExprPtr left = parse_concat();
  while (peek_operator("+") || peek_operator("-")) {
    const Token token = take();
    left =
        binary(token.text == "+" ? BinaryOp::kAdd : BinaryOp::kSubtract, std::move(left), parse_concat(), token.place);
  }
  return left;
}

ExprPtr ExpressionParser::parse_concat() {
  ExprPtr left = parse_product();
  if (!peek_operator("~")) return left;
  ExprPtr expr = make(ExprKind::kConcat, peek().place);
  expr->items.push_back(std::move(left));
  while (take_if_operator("~")) expr->items.push_back(parse_product());
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::parse_product() {
  ExprPtr left = parse_power();
  while (peek_operator("*") || peek_operator("/") || peek_operator("//") || peek_operator("%")) {
    const Token token = take();
    const BinaryOp operation = token.text == "*"    ? BinaryOp::kMultiply
                               : token.text == "/"  ? BinaryOp::kDivide
                               : token.text == "//" ? BinaryOp::kFloorDivide
                                                    : BinaryOp::kModulo;
    left = binary(operation, std::move(left), parse_power(), token.place);
  }
  return left;
}

ExprPtr ExpressionParser::parse_power() {
  ExprPtr left = parse_unary(true);
  while (peek_operator("**")) {
    const Place place = take().place;
    left = binary(BinaryOp::kPower, std::move(left), parse_unary(true), place);
  }
  return left;
}

ExprPtr ExpressionParser::parse_unary(bool with_filters) {
  ExprPtr node;
  if (peek_operator("-") || peek_operator("+")) {
    const DepthGuard guard(*this);
    const Token token = take();
    node = make(token.text == "-" ? ExprKind::kNegative : ExprKind::kPositive, token.place);
    node->first = parse_unary(false);
    node = finish(std::move(node));
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filters ? parse_filters_and_tests(std::move(node)) : std::move(node);
}

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
      ExprPtr call = make(ExprKind::kCall, peek().place);
      call->first = std::move(node);
      parse_arguments(*call);
      node = finish(std::move(call));
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
      // Calls are valid both after postfix expressions (getattr and getitem) as well as filters and tests.
      ExprPtr call = make(ExprKind::kCall, peek().place);
      call->first = std::move(node);
      parse_arguments(*call);
      node = finish(std::move(call));
    } else {
      return node;
    }
  }
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
