#include "text/jinja/parser.h"

#include <fmt/format.h>

#include <unordered_map>

#include "text/jinja/expression_parser.h"

namespace warmpath::jinja {
namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Body parse_body_until_end() {
    Body body = parse_body({});
    if (!at_end()) fail("unexpected end of a block");
    return body;
  }

 private:
  std::unique_ptr<Stmt> make(StmtKind kind, Place place) {
    auto stmt = std::make_unique<Stmt>();
    stmt->kind = kind;
    stmt->place = place;
    return stmt;
  }
  void expect_block_end() {
    if (peek().kind != TokenKind::kBlockEnd) fail(fmt::format("expected '%}}', found {}", describe(peek())));
    take();
  }

  // Statements up to a block tag whose name is one of `ends`, which is left to be read (after its '{%').
  Body parse_body(std::initializer_list<std::string_view> ends) {
    const DepthGuard guard(*this);
    Body body;
    while (!at_end()) {
      const Token token = peek();
      if (token.kind == TokenKind::kData) {
        take();
        auto stmt = make(StmtKind::kData, token.place);
        stmt->constant = template_string(token.text);
        body.push_back(std::move(stmt));
      } else if (token.kind == TokenKind::kVariableBegin) {
        take();
        auto stmt = make(StmtKind::kOutput, peek().place);
        stmt->value = parse_tuple();
        if (peek().kind != TokenKind::kVariableEnd) fail(fmt::format("expected '}}}}', found {}", describe(peek())));
        take();
        body.push_back(std::move(stmt));
      } else {
        take();  // {%
        const Token name = peek();
        if (name.kind != TokenKind::kName) fail("a block needs a name, such as 'for' or 'if'");
        for (const std::string_view end : ends) {
          if (name.text == end) return body;
        }
        take();
        body.push_back(parse_block(name));
      }
    }
    if (ends.size() > 0) fail(fmt::format("the template ends where '{{% {} %}}' is missing", *(ends.end() - 1)));
    return body;
  }
  Body parse_body_and_end(std::string_view end) {
    Body body = parse_body({end});
    take();
    expect_block_end();
    return body;
  }

  std::unique_ptr<Stmt> parse_block(const Token& name) {
    if (name.text == "if") return parse_if(name.place);
    if (name.text == "for") return parse_for(name.place);
    if (name.text == "set") return parse_set(name.place);
    if (name.text == "macro") return parse_macro(name.place);
    if (name.text == "call") return parse_call(name.place);
    if (name.text == "with") return parse_with(name.place);
    if (name.text == "filter") {
      auto stmt = make(StmtKind::kFilterBlock, name.place);
      stmt->value = parse_filter_chain();
      expect_block_end();
      stmt->body = parse_body_and_end("endfilter");
      return stmt;
    }
    if (name.text == "generation" || name.text == "block") {
      if (name.text == "block") take_name("a block's name");
      auto stmt = make(StmtKind::kScope, name.place);
      if (name.text == "block") {
        while (peek_name("scoped") || peek_name("required")) take();
      }
      expect_block_end();
      const bool is_block = name.text == "block";
      stmt->body = parse_body({is_block ? "endblock" : "endgeneration"});
      take();
      if (is_block && peek().kind == TokenKind::kName) take();
      expect_block_end();
      return stmt;
    }
    if (name.text == "break" || name.text == "continue") {
      if (loop_depth_ == 0) fail_at(name.place, fmt::format("'{}' outside of a loop", name.text));
      expect_block_end();
      return make(name.text == "break" ? StmtKind::kBreak : StmtKind::kContinue, name.place);
    }
    if (name.text == "include" || name.text == "import" || name.text == "from" || name.text == "extends") {
      fail_at(name.place,
              fmt::format("'{}' is not possible: a chat template is one text and can load no other", name.text));
    }
    fail_at(name.place, fmt::format("Encountered unknown tag '{}'.", name.text));
  }

  std::unique_ptr<Stmt> parse_if(Place place) {
    auto stmt = make(StmtKind::kIf, place);
    stmt->value = parse_tuple(/*conditional=*/false);
    expect_block_end();
    stmt->body = parse_body({"elif", "else", "endif"});
    const Token end = take();
    if (end.text == "elif") {
      const DepthGuard guard(*this);
      stmt->otherwise.push_back(parse_if(end.place));
      return stmt;
    }
    expect_block_end();
    if (end.text == "else") stmt->otherwise = parse_body_and_end("endif");
    return stmt;
  }

  std::unique_ptr<Stmt> parse_for(Place place) {
    auto stmt = make(StmtKind::kFor, place);
    stmt->target = parse_target(/*until_in=*/true);
    if (!take_if_name("in")) fail(fmt::format("expected 'in', found {}", describe(peek())));
    stmt->value = parse_tuple(/*conditional=*/false, {"recursive"});
    if (take_if_name("if")) stmt->condition = parse_expression();
    stmt->recursive = take_if_name("recursive");
    expect_block_end();
    const size_t uses_before = uses_of(kLoopSymbol);
    ++loop_depth_;
    stmt->body = parse_body({"else", "endfor"});
    --loop_depth_;
    stmt->uses_loop = stmt->recursive || uses_of(kLoopSymbol) != uses_before;
    const Token end = take();
    expect_block_end();
    if (end.text == "else") stmt->otherwise = parse_body_and_end("endfor");
    return stmt;
  }

  std::unique_ptr<Stmt> parse_set(Place place) {
    auto stmt = make(StmtKind::kSet, place);
    stmt->target = parse_target(/*until_in=*/false);
    if (take_if_operator("=")) {
      stmt->value = parse_tuple();
      expect_block_end();
      return stmt;
    }
    stmt->kind = StmtKind::kSetBlock;
    if (take_if_operator("|")) stmt->value = parse_filter_chain();
    expect_block_end();
    stmt->body = parse_body_and_end("endset");
    return stmt;
  }

  void parse_parameters(Stmt& stmt) {
    expect_operator("(");
    while (!peek_operator(")")) {
      if (!stmt.parameters.empty()) expect_operator(",");
      if (peek_operator(")")) break;
      const Token name = take_name("a parameter's name");
      Parameter parameter{symbol_of(name.text), std::string(name.text), nullptr};
      if (take_if_operator("=")) {
        parameter.fallback = parse_expression();
      } else if (!stmt.parameters.empty() && stmt.parameters.back().fallback != nullptr) {
        fail_at(name.place, "non-default argument follows default argument");
      }
      stmt.parameters.push_back(std::move(parameter));
    }
    expect_operator(")");
  }

  // The body of a macro or call block, noting which of the implicit names it uses.
  void parse_macro_body(Stmt& stmt, std::string_view end) {
    const size_t varargs = uses_of(kVarargsSymbol);
    const size_t kwargs = uses_of(kKwargsSymbol);
    const size_t caller = uses_of(kCallerSymbol);
    const int loop_depth = std::exchange(loop_depth_, 0);
    stmt.body = parse_body_and_end(end);
    loop_depth_ = loop_depth;
    stmt.uses_varargs = uses_of(kVarargsSymbol) != varargs;
    stmt.uses_kwargs = uses_of(kKwargsSymbol) != kwargs;
    stmt.uses_caller = uses_of(kCallerSymbol) != caller;
  }

  std::unique_ptr<Stmt> parse_macro(Place place) {
    auto stmt = make(StmtKind::kMacro, place);
    const Token name = take_name("a macro's name");
    stmt->symbol = symbol_of(name.text);
    stmt->text = name.text;
    parse_parameters(*stmt);
    expect_block_end();
    parse_macro_body(*stmt, "endmacro");
    return stmt;
  }

  std::unique_ptr<Stmt> parse_call(Place place) {
    auto stmt = make(StmtKind::kCallBlock, place);
    if (peek_operator("(")) parse_parameters(*stmt);
    stmt->value = parse_expression();
    if (stmt->value->kind != ExprKind::kCall) fail_at(place, "expected call");
    expect_block_end();
    parse_macro_body(*stmt, "endcall");
    return stmt;
  }

  std::unique_ptr<Stmt> parse_with(Place place) {
    auto stmt = make(StmtKind::kWith, place);
    while (peek().kind != TokenKind::kBlockEnd) {
      if (!stmt->bindings.empty()) expect_operator(",");
      ExprPtr target = parse_target(/*until_in=*/false);
      expect_operator("=");
      stmt->bindings.emplace_back(std::move(target), parse_expression());
    }
    expect_block_end();
    stmt->body = parse_body_and_end("endwith");
    return stmt;
  }

  int loop_depth_ = 0;
};

}  // namespace

Syntax parse_template(std::string_view source, int max_depth) {
  Syntax syntax;
  syntax.tokens = tokenize_template(source);
  Parser parser(syntax, max_depth);
  syntax.body = parser.parse_body_until_end();
  return syntax;
}

}  // namespace warmpath::jinja
