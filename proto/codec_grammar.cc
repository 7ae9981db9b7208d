// Grammar.
#include "proto/codec.h"
#include "proto/engine.pb.h"

namespace warmpath {

namespace {

// The enums agree number by number, but for kNone, which is an absent message.
static_assert(static_cast<int>(Grammar::Kind::kLiteral) == v1::Grammar::KIND_LITERAL);
static_assert(static_cast<int>(Grammar::Kind::kGlmObject) == v1::Grammar::KIND_GLM_OBJECT);

Status read(const v1::Grammar& message, int depth, Grammar& value) {
  // The sizes are validate()'s to check; the depth is not, since this recursion comes first.
  if (depth > kMaxGrammarDepth) return invalid_argument("grammar: its parts are nested too deeply");
  if (message.kind() <= v1::Grammar::KIND_UNSPECIFIED || message.kind() > v1::Grammar::KIND_GLM_OBJECT) {
    return invalid_argument("grammar.kind is one that this version does not know");
  }
  value.kind = static_cast<Grammar::Kind>(message.kind());
  value.text = message.text();
  value.tokens.assign(message.tokens().begin(), message.tokens().end());
  value.excluded.assign(message.excluded().begin(), message.excluded().end());
  value.least = message.least();
  value.most = message.has_most() ? message.most() : -1;
  value.most_space = message.most_space();
  value.parts.resize(static_cast<size_t>(message.parts_size()));
  for (int part = 0; part < message.parts_size(); ++part) {
    WARMPATH_RETURN_IF_ERROR(read(message.parts(part), depth + 1, value.parts[static_cast<size_t>(part)]));
  }
  return {};
}

}  // namespace

void encode(const Grammar& value, v1::Grammar& message) {
  message.set_kind(static_cast<v1::Grammar::Kind>(value.kind));
  message.set_text(value.text);
  message.mutable_tokens()->Add(value.tokens.begin(), value.tokens.end());
  for (const std::string& excluded : value.excluded) message.add_excluded(excluded);
  message.set_least(value.least);
  if (value.most >= 0) message.set_most(value.most);
  message.set_most_space(value.most_space);
  for (const Grammar& part : value.parts) encode(part, *message.add_parts());
}

Status decode(const v1::Grammar& message, Grammar& value) {
  value = {};
  WARMPATH_RETURN_IF_ERROR(read(message, 1, value));
  return validate(value, INT32_MAX);
}

}  // namespace warmpath
