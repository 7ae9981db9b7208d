// Python's operators over Values. Throw TemplateError (without a place) with Python's own wording where it refuses.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "text/jinja/ast.h"
#include "text/value.h"

namespace warmpath::jinja {

bool truthy(const Value& value);
// `left` may be reused for the result.
Value apply_binary(BinaryOp operation, Value left, const Value& right);
Value negate(const Value& value);
bool compare(Comparison comparison, const Value& left, const Value& right);
// left < right, for sorting too.
bool less_than(const Value& left, const Value& right, std::string_view operation = "<", int depth = 0);
bool contains(const Value& container, const Value& item);
// len(value). Throws where Python does.
int64_t length_of(const Value& value);
// The items of a list, the keys of a dict, the characters of a string; nothing for undefined. Throws otherwise.
std::vector<Value> items_of(const Value& iterable);
// value[start:stop:step] of a string or list.
Value slice(const Value& value, const Value& start, const Value& stop, const Value& step);

// An integer argument (bool and integral values too). Throws naming `what`.
int64_t to_integer(const Value& value, std::string_view what);
// Throws UndefinedError's message when `value` is undefined.
void require_defined(const Value& value);

}  // namespace warmpath::jinja
