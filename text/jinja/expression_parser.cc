#include "text/jinja/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>
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

}  // namespace warmpath::jinja
