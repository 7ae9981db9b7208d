// Interpreter: evaluates one template once. Throws TemplateError, TemplateRefusal or TemplateLimit.
// Thread safety: one rendering, one thread; the Syntax is shared and must outlive it.
#pragma once

#include <boost/container/small_vector.hpp>
#include <ctime>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/limits.h"
#include "text/jinja/loop_recorder.h"
#include "text/jinja/objects.h"
#include "text/marked_text.h"
#include "text/value.h"

namespace warmpath::jinja {

class Interpreter {
 public:
  // `recorder` may be null.
  Interpreter(const Syntax& syntax, const RenderLimits& limits, const std::tm& now, LoopRecorder* recorder = nullptr);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // A variable of the template; names it never mentions cost nothing.
  void set_variable(std::string_view name, Value value);
  MarkedText run();

  // --- for built-ins
  // Accounts for work; throws TemplateLimit when the budget is spent.
  void charge(uint64_t steps) {
    if (steps > steps_left_) out_of_steps();
    steps_left_ -= steps;
  }
  // Checks a new value against the limits and accounts for it.
  Value checked(Value value);
  Value call(const Value& callable, const Arguments& arguments);
  Value apply_filter(std::string_view name, const Value& input, const Arguments& arguments);
  bool apply_test(std::string_view name, const Value& input, const Arguments& arguments);
  // object.name, and object[key], with Jinja2's fallbacks from one to the other.
  Value attribute(const Value& object, std::string_view name);
  Value item(const Value& object, const Value& key);
  // Namespaces, and lists that were changed, may hold themselves in the end; they are emptied when the rendering ends.
  Value new_namespace();
  // A list, to change; whatever else holds it sees the change. Throws ChangesRequest for one that is frozen.
  ValueList& list_to_change(const Value& value);
  const std::tm& now();
  // The state of an object that outlives a round of a loop changed.
  void changed_unknown() {
    if (recording()) recorder_->changed_unknown();
  }

 private:
  friend class Macro;
  enum class Flow : uint8_t { kNormal, kBreak, kContinue };

  struct Scope {
    Scope* parent = nullptr;
    boost::container::small_vector<std::pair<Symbol, Value>, 6> variables;
    bool captured = false;  // a macro was defined in it: it must live on
  };
  class ScopeGuard;
  class DepthGuard;
  class Capture;

  Scope* new_scope(Scope* parent);
  void release_scope(Scope* scope);
  void assign(Symbol symbol, Value value);
  Value lookup(Symbol symbol);
  // A variable of the outermost scope that no inner scope hides; null when there is none.
  const Value* outer_variable(Symbol symbol) const;
  bool recording() const { return recorder_ != nullptr && recorder_->active(); }
  void capture_scopes();

  Value eval(const Expr& expr);
  Value eval_unplaced(const Expr& expr);
  Value eval_compare(const Expr& expr);
  Value eval_concat(const Expr& expr);
  Value eval_call(const Expr& expr);
  Value eval_subscript(const Expr& expr);
  // The same for a variable of the outermost scope, while a round is recorded.
  Value eval_outer_subscript(const Expr& expr, Value list);
  // A comparison with an integer that the recorder can follow; nullopt when it is none.
  std::optional<bool> compare_measured(const Expr& expr);
  std::optional<LoopRecorder::Measure> measure_of(const Expr& expr);
  Arguments eval_arguments(const Expr& expr);

  Flow exec(const Body& body);
  Flow exec(const Stmt& stmt);
  Flow exec_for(const Stmt& stmt);
  // The loop over `items`; `depth` counts recursive loops.
  Flow run_loop(const Stmt& stmt, const Value& iterable, int depth);
  // Its rounds.
  Flow run_rounds(const Stmt& stmt, const std::vector<Value>& items, Loop* loop, ScopeGuard& scope);
  Flow run_recorded_rounds(const Stmt& stmt, const std::vector<Value>& items, Loop* loop, ScopeGuard& scope);
  void begin_round(const Stmt& stmt, const Value& item, size_t index, Loop* loop);
  void exec_call_block(const Stmt& stmt);
  void emit(const MarkedText& text);
  void assign_target(const Expr& target, Value value);
  Value call_macro(const Stmt& stmt, Scope* closure, const Arguments& arguments);
  MarkedText capture_body(const Body& body);

  // Accounts for all that a list or dict holds, by walking it.
  void charge_walk(const Value& value, int depth = 0);
  [[noreturn]] void out_of_steps() const;
  [[noreturn]] void out_of_bytes() const;

  const Syntax& syntax_;
  const RenderLimits limits_;
  const std::tm now_;
  uint64_t steps_left_;
  int depth_ = 0;
  std::deque<Scope> scopes_;
  std::vector<Scope*> free_scopes_;
  Scope* scope_ = nullptr;
  MarkedText* out_ = nullptr;
  const Value* filter_input_ = nullptr;  // of a filter block's chain
  // A list inside another was changed: what containers know of their depth and weight may be wrong since.
  bool reshaped_ = false;
  LoopRecorder* const recorder_;
  std::vector<boost::intrusive_ptr<Namespace>> outer_namespaces_;  // by their ordinal
  std::vector<boost::intrusive_ptr<Namespace>> inner_namespaces_;  // of rounds that were recorded
  std::vector<boost::intrusive_ptr<ValueList>> adopted_;
};

}  // namespace warmpath::jinja
