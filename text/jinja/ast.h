// The syntax tree of a template. Expressions and statements are one struct each: a kind and the children that the kind
// uses, listed beside it. Thread safety: immutable once parsed; evaluated by many threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/error.h"
#include "text/jinja/lexer.h"
#include "text/value.h"

namespace warmpath::jinja {

// An interned name.
using Symbol = uint32_t;

enum class ExprKind : uint8_t {
  kConstant,     // constant
  kName,         // symbol
  kList,         // items
  kTuple,        // items
  kDict,         // items: key, value, key, value, ...
  kAttribute,    // first . text
  kSubscript,    // first [ second ]
  kSlice,        // first : second : third, each may be null; only as the second of a kSubscript
  kCall,         // first ( items, keywords, *star, **double_star )
  kFilter,       // first (null inside a filter block) | text ( items, keywords, ... )
  kTest,         // first is text ( items, keywords, ... )
  kNot,          // first
  kNegative,     // first
  kPositive,     // first
  kAnd,          // first, second
  kOr,           // first, second
  kConditional,  // first if second else third (null: undefined)
  kCompare,      // first, then items with comparisons, left to right
  kConcat,       // items, joined by ~
  kBinary,       // first operation second
};

enum class BinaryOp : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class Comparison : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Expr {
  ExprKind kind;
  BinaryOp operation = BinaryOp::kAdd;
  Place place;
  uint32_t height = 1;
  Symbol symbol = 0;
  std::string text;  // of an attribute, a filter or a test: its name
  Value constant;    // also of kAttribute: the name as a string
  ExprPtr first;
  ExprPtr second;
  ExprPtr third;
  std::vector<ExprPtr> items;
  std::vector<Comparison> comparisons;
  std::vector<std::pair<std::string, ExprPtr>> keywords;
  ExprPtr star;
  ExprPtr double_star;
};

enum class StmtKind : uint8_t {
  kData,         // constant
  kOutput,       // value
  kIf,           // value, body, otherwise
  kFor,          // target, value, condition (may be null), body, otherwise, recursive
  kSet,          // target = value
  kSetBlock,     // target = body, through value (a filter chain) when not null
  kMacro,        // symbol, parameters, body
  kCallBlock,    // value (a call), parameters, body as its caller()
  kFilterBlock,  // value (a filter chain) over body
  kWith,         // bindings, body
  kScope,        // body in a scope of its own (generation, block)
  kBreak,
  kContinue,
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

struct Parameter {
  Symbol symbol;
  std::string name;
  ExprPtr fallback;  // may be null
};

struct Stmt {
  StmtKind kind;
  Place place;
  Symbol symbol = 0;
  std::string text;  // of a macro: its name
  Value constant;
  ExprPtr target;  // kName, kTuple of targets, or kAttribute of a kName (a namespace)
  ExprPtr value;
  ExprPtr condition;
  Body body;
  Body otherwise;
  std::vector<Parameter> parameters;
  std::vector<std::pair<ExprPtr, ExprPtr>> bindings;
  bool recursive = false;
  bool uses_loop = false;     // of a for: its body mentions `loop`
  bool uses_varargs = false;  // of a macro
  bool uses_kwargs = false;
  bool uses_caller = false;
};

struct Syntax {
  TokenStream tokens;  // owns the text that constants view
  std::vector<std::string> symbols;
  Body body;
};

// Symbols that mean something to the evaluator, interned first and in this order.
enum WellKnown : Symbol { kLoopSymbol, kCallerSymbol, kVarargsSymbol, kKwargsSymbol, kWellKnownCount };

}  // namespace warmpath::jinja
