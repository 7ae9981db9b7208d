// Objects: the values of a template that are no data: functions, bound methods, macros, namespaces, loops, cyclers.
// Thread safety: made and used by one rendering.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/error.h"
#include "text/value.h"

namespace warmpath::jinja {

class Interpreter;

// The arguments of one call.
struct Arguments {
  boost::container::small_vector<Value, 4> positional;
  std::vector<std::pair<std::string, Value>> keywords;

  // The arguments by parameter name, null where not given. Throws for too many, unknown and doubled ones.
  std::vector<const Value*> bind(std::string_view callee, std::initializer_list<std::string_view> parameters) const;
};

class Object : public ValueNode {
 public:
  virtual std::string_view type_name() const = 0;
  virtual std::string repr() const;
  // nullopt: there is none of that name.
  virtual std::optional<Value> attribute(std::string_view) const { return std::nullopt; }
  virtual bool callable() const { return false; }
  virtual Value call(Interpreter& interpreter, const Arguments& arguments);
};

// A function or a method with its object, from this program's code.
class Function final : public Object {
 public:
  using Body = std::function<Value(Interpreter&, const Arguments&)>;
  Function(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}
  std::string_view type_name() const override { return "builtin_function_or_method"; }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, const Arguments& arguments) override { return body_(interpreter, arguments); }

 private:
  std::string name_;
  Body body_;
};

class Namespace final : public Object {
 public:
  // `ordinal`: among those that were not made in a round that is being recorded (jinja/loop_recorder.h).
  explicit Namespace(std::optional<uint32_t> ordinal) : ordinal_(ordinal) {}
  std::string_view type_name() const override { return "Namespace"; }
  std::optional<Value> attribute(std::string_view name) const override;
  void set(std::string_view name, Value value);
  void clear() { attributes_.clear(); }
  const std::vector<std::pair<std::string, Value>>& attributes() const { return attributes_; }
  bool is_outside() const { return ordinal_.has_value(); }
  // REQUIRES is_outside().
  uint32_t ordinal() const { return *ordinal_; }

 private:
  std::vector<std::pair<std::string, Value>> attributes_;
  std::optional<uint32_t> ordinal_;
};

// The `loop` variable.
class Loop final : public Object {
 public:
  // `recurse` renders the loop's body over other items; null unless the loop is recursive.
  Loop(const std::vector<Value>& items, int depth, std::function<Value(const Value&)> recurse)
      : items_(items), depth_(depth), recurse_(std::move(recurse)) {}
  std::string_view type_name() const override { return "LoopContext"; }
  std::optional<Value> attribute(std::string_view name) const override;
  bool callable() const override { return recurse_ != nullptr; }
  Value call(Interpreter& interpreter, const Arguments& arguments) override;

  void set_index(size_t index) { index_ = index; }
  int depth() const { return depth_; }
  bool changed(const Arguments& arguments);
  void forget() { last_changed_.reset(); }
  Value cycle(const Arguments& arguments) const;

 private:
  const std::vector<Value>& items_;
  size_t index_ = 0;
  int depth_;
  std::function<Value(const Value&)> recurse_;
  std::optional<std::vector<Value>> last_changed_;
};

// cycler(a, b, ...): .next(), .current, .reset()
class Cycler final : public Object {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {}
  std::string_view type_name() const override { return "Cycler"; }
  std::optional<Value> attribute(std::string_view name) const override;

 private:
  std::vector<Value> items_;
  mutable size_t at_ = 0;
};

// joiner(", "): "" at the first call, the separator afterwards.
class Joiner final : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string_view type_name() const override { return "Joiner"; }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, const Arguments& arguments) override;

 private:
  Value separator_;
  bool used_ = false;
};

Value make_function(std::string name, Function::Body body);

}  // namespace warmpath::jinja
