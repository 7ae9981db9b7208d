// A Grammar in xgrammar's own notation, "structural tags" (docs/structural_tag/ in its package), with every schema
// prepared (text/schema/json_schema.h) and every bound checked. Thread safety: pure functions.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "proto/grammar.h"

namespace warmpath {

// `controls`: the tokens without text, which free tokens (Grammar::Kind::kTokens) leave out. Errors (kInvalidArgument)
// name what is wrong.
Result<std::string> structural_tag(const Grammar& grammar, std::span<const TokenId> controls);

}  // namespace warmpath
