// What the interpreter holds for the time of a block: depth, a scope, where output goes. Included by its own .cc files
// only. Thread safety: one rendering.
#pragma once

#include "text/jinja/interpreter.h"

namespace warmpath::jinja {

class Interpreter::DepthGuard {
 public:
  explicit DepthGuard(Interpreter& interpreter) : interpreter_(interpreter) {
    if (interpreter_.depth_ >= interpreter_.limits_.depth) throw TemplateLimit("evaluation nested too deeply");
    ++interpreter_.depth_;
  }
  ~DepthGuard() { --interpreter_.depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  Interpreter& interpreter_;
};

// A scope inside the current one (or inside `parent`), for as long as the guard lives.
class Interpreter::ScopeGuard {
 public:
  explicit ScopeGuard(Interpreter& interpreter) : ScopeGuard(interpreter, interpreter.scope_) {}
  ScopeGuard(Interpreter& interpreter, Scope* parent) : interpreter_(interpreter), before_(interpreter.scope_) {
    interpreter_.scope_ = interpreter_.new_scope(parent);
  }
  ~ScopeGuard() {
    interpreter_.release_scope(interpreter_.scope_);
    interpreter_.scope_ = before_;
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;
  // An empty scope for the next round of a loop.
  void renew() {
    Scope* parent = interpreter_.scope_->parent;
    interpreter_.release_scope(interpreter_.scope_);
    interpreter_.scope_ = interpreter_.new_scope(parent);
  }

 private:
  Interpreter& interpreter_;
  Scope* before_;
};

// Output goes into `text` for as long as the guard lives.
class Interpreter::Capture {
 public:
  Capture(Interpreter& interpreter, MarkedText& text) : interpreter_(interpreter), before_(interpreter.out_) {
    interpreter_.out_ = &text;
  }
  ~Capture() { interpreter_.out_ = before_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  Interpreter& interpreter_;
  MarkedText* before_;
};

}  // namespace warmpath::jinja
