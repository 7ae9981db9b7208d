// Parser: template source to a syntax tree. Throws TemplateError with the place. Thread safety: a pure function.
#pragma once

#include <string_view>

#include "text/jinja/ast.h"

namespace warmpath::jinja {

// `max_depth` bounds nested blocks and expressions.
Syntax parse_template(std::string_view source, int max_depth);

}  // namespace warmpath::jinja
