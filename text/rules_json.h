// The parts of a tokenizer.json that are no tables: normalizer, pre_tokenizer, decoder. Included by .cc files only
// (through text/json_node.h). Thread safety: pure function.
#pragma once

#include "text/json_node.h"
#include "text/text_rules.h"

namespace warmpath {

// Fills what the model's section does not say. Where steps amount to a known family's they become its scanner, and
// where they only spell spaces as U+2581 they become Symbols::kSpaced.
Status read_rules(const JsonNode& root, TextRules& rules);

}  // namespace warmpath
