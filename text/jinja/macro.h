// Macro: a macro, or the body of a call block as its caller(), with the scope it was defined in.
// Thread safety: one rendering.
#pragma once

#include "text/jinja/ast.h"
#include "text/jinja/objects.h"

namespace warmpath::jinja {

class Macro final : public Object {
 public:
  // `closure` is an Interpreter's scope, which outlives every value of the rendering.
  Macro(const Stmt& stmt, void* closure, bool outside) : stmt_(stmt), closure_(closure), outside_(outside) {}
  std::string_view type_name() const override { return "Macro"; }
  bool callable() const override { return true; }
  std::optional<Value> attribute(std::string_view name) const override {
    if (name == "name") return Value::string(stmt_.text, Origin::kTemplate);
    return std::nullopt;
  }
  Value call(Interpreter& interpreter, const Arguments& arguments) override;
  const Stmt& stmt() const { return stmt_; }
  // Whether it was defined in the template's outermost scope.
  bool is_outside() const { return outside_; }

 private:
  const Stmt& stmt_;
  void* closure_;
  bool outside_;
};

}  // namespace warmpath::jinja
