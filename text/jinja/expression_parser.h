// ExpressionParser: the expression half of the parser, with Jinja2's precedences:
//   if-else < or < and < not < comparisons < + - < ~ < * / // % < unary - + < ** < postfix, filters and tests
// and the token helpers that statements use too. Internal to jinja/parser.cc. Thread safety: none.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/jinja/ast.h"

namespace warmpath::jinja {

class ExpressionParser {
 public:
  ExpressionParser(Syntax& syntax, int max_depth);

 protected:
  // Counts nesting; throws beyond the limit.
  class DepthGuard {
   public:
    explicit DepthGuard(ExpressionParser& parser) : parser_(parser) {
      if (++parser_.depth_ > parser_.max_depth_) {
        --parser_.depth_;
        parser_.fail("nested too deeply");
      }
    }
    ~DepthGuard() { --parser_.depth_; }
    DepthGuard(const DepthGuard&) = delete;
    DepthGuard& operator=(const DepthGuard&) = delete;

   private:
    ExpressionParser& parser_;
  };

  // --- tokens
  const Token& peek(size_t ahead = 0) const;
  Token take();
  bool at_end() const { return peek().kind == TokenKind::kEnd; }
  bool peek_operator(std::string_view text) const;
  bool peek_name(std::string_view text) const;
  bool take_if_operator(std::string_view text);
  bool take_if_name(std::string_view text);
  void expect_operator(std::string_view text);
  Token take_name(std::string_view what);
  static std::string describe(const Token& token);
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_at(Place place, const std::string& message) const;

  // --- names and constants
  Symbol symbol_of(std::string_view name);
  size_t uses_of(Symbol symbol) const { return uses_[symbol]; }
  // A string that shares the template's own bytes.
  Value template_string(std::string_view text) const;

  // --- expressions
  // One expression, or several with commas between, which make a tuple. `stops`: names that end it.
  ExprPtr parse_tuple(bool conditional = true, std::initializer_list<std::string_view> stops = {});
  ExprPtr parse_expression(bool conditional = true);
  // A name, a tuple of names, or name.attribute, to assign to.
  ExprPtr parse_target(bool until_in);
  // upper | replace(...) and so on, without what they apply to.
  ExprPtr parse_filter_chain();

 private:
  ExprPtr make(ExprKind kind, Place place) const;
  // Counts the height of a tree whose children are in place; throws beyond the limit.
  ExprPtr finish(ExprPtr expr) const;
  ExprPtr binary(BinaryOp operation, ExprPtr left, ExprPtr right, Place place) const;
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filters);
  ExprPtr parse_primary();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_number();
  ExprPtr parse_postfix(ExprPtr node);
  ExprPtr parse_filters_and_tests(ExprPtr node);
  ExprPtr parse_call(ExprPtr callee);
  ExprPtr parse_filter(ExprPtr input);
  ExprPtr parse_test(ExprPtr node);
  ExprPtr parse_subscript(ExprPtr node);
  ExprPtr parse_subscript_part();
  void parse_arguments(Expr& call);
  ExprPtr parse_one_target();

  Syntax& syntax_;
  size_t at_ = 0;
  int depth_ = 0;
  const int max_depth_;
  std::unordered_map<std::string, Symbol> symbol_ids_;
  std::vector<size_t> uses_;  // of each symbol, so far
};

}  // namespace warmpath::jinja
