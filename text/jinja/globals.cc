// Global functions: Jinja2's, and the two that transformers adds (raise_exception, strftime_now).
#include <fmt/format.h>

#include <unordered_map>

#include "text/jinja/builtins.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"

namespace warmpath::jinja {
namespace {

// As in Jinja2's sandbox.
constexpr int64_t kMaxRange = 100'000;

Value range(Interpreter& interpreter, const Arguments& arguments) {
  const auto& given = arguments.positional;
  if (given.empty() || given.size() > 3) throw TemplateError("range() takes 1 to 3 integers");
  const int64_t start = given.size() > 1 ? to_integer(given[0], "range()") : 0;
  const int64_t stop = to_integer(given[given.size() > 1 ? 1 : 0], "range()");
  const int64_t step = given.size() > 2 ? to_integer(given[2], "range()") : 1;
  if (step == 0) throw TemplateError("range() arg 3 must not be zero");
  std::vector<Value> numbers;
  for (int64_t at = start; step > 0 ? at < stop : at > stop;) {
    if (static_cast<int64_t>(numbers.size()) == kMaxRange) {
      throw TemplateError(fmt::format("Range too big. The sandbox blocks ranges larger than {}.", kMaxRange));
    }
    numbers.push_back(Value::integer(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  interpreter.charge(numbers.size());
  return Value::sequence(SequenceKind::kRange, std::move(numbers));
}

Value dict(Interpreter&, const Arguments& arguments) {
  Value result = Value::dict();
  for (const Value& source : arguments.positional) {
    if (source.is_dict()) {
      for (const auto& [key, value] : source.as_dict().entries) result.as_dict().set(key, value);
      continue;
    }
    for (const Value& pair : items_of(source)) {
      const std::vector<Value> both = items_of(pair);
      if (both.size() != 2) throw TemplateError("dict() wants pairs");
      result.as_dict().set(both[0], both[1]);
    }
  }
  for (const auto& [key, value] : arguments.keywords) result.as_dict().set(key, value);
  return result;
}

Value new_namespace(Interpreter& interpreter, const Arguments& arguments) {
  Value space = interpreter.new_namespace();
  auto& object = static_cast<Namespace&>(*space.as_node());
  Arguments sources;
  sources.positional = arguments.positional;
  const Value initial = dict(interpreter, sources);
  for (const auto& [key, value] : initial.as_dict().entries) object.set(to_text(key).to_string(), value);
  for (const auto& [key, value] : arguments.keywords) object.set(key, value);
  interpreter.charge(1);
  return space;
}

Value raise_exception(Interpreter&, const Arguments& arguments) {
  const Value* message = arguments.bind("raise_exception", {"message"})[0];
  throw TemplateRefusal(message != nullptr ? to_text(*message).to_string() : "");
}

Value strftime_now(Interpreter& interpreter, const Arguments& arguments) {
  const Value* format = arguments.bind("strftime_now", {"format"})[0];
  if (format == nullptr || !format->is_string()) throw TemplateError("strftime_now() wants a format string");
  const std::string pattern = format->as_text().to_string();
  if (pattern.empty()) return Value::string({}, Origin::kTemplate);
  if (pattern.size() > 1024) throw TemplateLimit("strftime_now(): the format is too long");
  char buffer[8192];
  const size_t size = std::strftime(buffer, sizeof(buffer), pattern.c_str(), &interpreter.now());
  return Value::string(std::string(buffer, size), Origin::kTemplate);
}

Value cycler(Interpreter&, const Arguments& arguments) {
  if (arguments.positional.empty()) throw TemplateError("at least one item has to be provided");
  return Value::object(new Cycler({arguments.positional.begin(), arguments.positional.end()}));
}

Value joiner(Interpreter&, const Arguments& arguments) {
  const Value* separator = arguments.bind("joiner", {"sep"})[0];
  return Value::object(new Joiner(separator != nullptr ? *separator : Value::string(", ", Origin::kTemplate)));
}

}  // namespace

Value find_global(std::string_view name) {
  static const std::unordered_map<std::string_view, Value (*)(Interpreter&, const Arguments&)> globals = {
      {"range", range},   {"dict", dict},     {"namespace", new_namespace},   {"raise_exception", raise_exception},
      {"cycler", cycler}, {"joiner", joiner}, {"strftime_now", strftime_now},
  };
  const auto found = globals.find(name);
  return found == globals.end() ? Value() : make_function(std::string(name), found->second);
}

}  // namespace warmpath::jinja
