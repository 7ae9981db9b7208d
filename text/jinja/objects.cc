#include "text/jinja/objects.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/interpreter.h"

namespace warmpath::jinja {
namespace {

// A method of an object that stays alive with it.
template <typename T, typename Method>
Value bound(const T* object, std::string name, Method method) {
  boost::intrusive_ptr<T> self(const_cast<T*>(object));
  return make_function(std::move(name), [self, method](Interpreter& interpreter, const Arguments& arguments) {
    return method(interpreter, *self, arguments);
  });
}

}  // namespace

std::vector<const Value*> Arguments::bind(std::string_view callee,
                                          std::initializer_list<std::string_view> parameters) const {
  std::vector<const Value*> bound(parameters.size(), nullptr);
  if (positional.size() > parameters.size()) {
    throw TemplateError(fmt::format("{}() takes at most {} argument{}, {} given", callee, parameters.size(),
                                    parameters.size() == 1 ? "" : "s", positional.size()));
  }
  for (size_t index = 0; index < positional.size(); ++index) bound[index] = &positional[index];
  for (const auto& [name, value] : keywords) {
    const auto found = std::find(parameters.begin(), parameters.end(), name);
    if (found == parameters.end()) {
      throw TemplateError(fmt::format("{}() got an unexpected keyword argument '{}'", callee, name));
    }
    const Value*& slot = bound[static_cast<size_t>(found - parameters.begin())];
    if (slot != nullptr) throw TemplateError(fmt::format("{}() got multiple values for argument '{}'", callee, name));
    slot = &value;
  }
  return bound;
}

std::string Object::repr() const { return fmt::format("<{}>", type_name()); }

Value Object::call(Interpreter&, const Arguments&) {
  throw TemplateError(fmt::format("'{}' object is not callable", type_name()));
}

std::optional<Value> Namespace::attribute(std::string_view name) const {
  for (const auto& [key, value] : attributes_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

void Namespace::set(std::string_view name, Value value) {
  for (auto& [key, old] : attributes_) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  attributes_.emplace_back(name, std::move(value));
}

std::optional<Value> Loop::attribute(std::string_view name) const {
  const auto index = static_cast<int64_t>(index_);
  const auto count = static_cast<int64_t>(items_.size());
  if (name == "index") return Value::integer(index + 1);
  if (name == "index0") return Value::integer(index);
  if (name == "revindex") return Value::integer(count - index);
  if (name == "revindex0") return Value::integer(count - index - 1);
  if (name == "first") return Value::boolean(index == 0);
  if (name == "last") return Value::boolean(index + 1 == count);
  if (name == "length") return Value::integer(count);
  if (name == "depth") return Value::integer(depth_ + 1);
  if (name == "depth0") return Value::integer(depth_);
  if (name == "previtem") return index > 0 ? items_[index_ - 1] : Value::undefined("there is no previous item");
  if (name == "nextitem") return index + 1 < count ? items_[index_ + 1] : Value::undefined("there is no next item");
  if (name == "cycle") {
    return bound(this, "cycle",
                 [](Interpreter&, Loop& loop, const Arguments& arguments) { return loop.cycle(arguments); });
  }
  if (name == "changed") {
    return bound(this, "changed", [](Interpreter&, Loop& loop, const Arguments& arguments) {
      return Value::boolean(loop.changed(arguments));
    });
  }
  return std::nullopt;
}

Value Loop::call(Interpreter&, const Arguments& arguments) {
  if (!recurse_) throw TemplateError("The loop must have the 'recursive' marker to be called recursively.");
  return recurse_(*arguments.bind("loop", {"iterable"}).at(0));
}

bool Loop::changed(const Arguments& arguments) {
  std::vector<Value> now(arguments.positional.begin(), arguments.positional.end());
  const bool same = last_changed_ && std::equal(now.begin(), now.end(), last_changed_->begin(), last_changed_->end(),
                                                [](const Value& a, const Value& b) { return values_equal(a, b); });
  if (!same) last_changed_ = std::move(now);
  return !same;
}

Value Loop::cycle(const Arguments& arguments) const {
  if (arguments.positional.empty()) throw TemplateError("no items for cycling given");
  return arguments.positional[index_ % arguments.positional.size()];
}

std::optional<Value> Cycler::attribute(std::string_view name) const {
  if (name == "current") return items_[at_];
  if (name == "next") {
    return bound(this, "next", [](Interpreter& interpreter, const Cycler& cycler, const Arguments&) {
      interpreter.changed_unknown();
      const Value item = cycler.items_[cycler.at_];
      cycler.at_ = (cycler.at_ + 1) % cycler.items_.size();
      return item;
    });
  }
  if (name == "reset") {
    return bound(this, "reset", [](Interpreter& interpreter, const Cycler& cycler, const Arguments&) {
      interpreter.changed_unknown();
      cycler.at_ = 0;
      return Value::none();
    });
  }
  return std::nullopt;
}

Value Joiner::call(Interpreter& interpreter, const Arguments&) {
  interpreter.changed_unknown();
  if (std::exchange(used_, true)) return separator_;
  return Value::string({}, Origin::kTemplate);
}

Value make_function(std::string name, Function::Body body) {
  return Value::object(new Function(std::move(name), std::move(body)));
}

}  // namespace warmpath::jinja
