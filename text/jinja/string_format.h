// Python's "%" formatting of strings, and str.format with {} {0} {name} fields without format specifications beyond
// width-free conversions. Thread safety: pure functions.
#pragma once

#include "text/jinja/objects.h"
#include "text/value.h"

namespace warmpath::jinja {

// format % arguments: a tuple fills the conversions in turn, a dict those with names, anything else the only one.
Value percent_format(const Value& format, const Value& arguments);

// format.format(...)
Value brace_format(const Value& format, const Arguments& arguments);

}  // namespace warmpath::jinja
