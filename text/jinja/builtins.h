// The language's built-in filters, tests, methods and global functions, by name.
// Thread safety: tables are immutable; the functions work for one rendering.
#pragma once

#include <string_view>
#include <vector>

#include "text/jinja/objects.h"
#include "text/value.h"

namespace warmpath::jinja {

using Filter = Value (*)(Interpreter&, const Value& input, const Arguments&);
using Test = bool (*)(Interpreter&, const Value& input, const Arguments&);
// nullptr when there is none of that name.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);

// Whether values of `self`'s type have a method `name` (Python's str, list and dict).
bool has_method(const Value& self, std::string_view name);
// REQUIRES has_method(self, name).
Value call_method(Interpreter& interpreter, const Value& self, std::string_view name, const Arguments& arguments);

// range, dict, namespace, joiner, cycler, raise_exception, strftime_now; undefined when it is none of them.
Value find_global(std::string_view name);

// Rows of the tables, so that they can live in several files.
struct NamedFilter {
  std::string_view name;
  Filter filter;
};
std::vector<NamedFilter> text_filters();
std::vector<NamedFilter> sequence_filters();

}  // namespace warmpath::jinja
