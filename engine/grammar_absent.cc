// In place of grammar.cc in builds without xgrammar: says so.
#include "base/check.h"
#include "engine/grammar.h"

namespace warmpath {

bool GrammarCompiler::available() { return false; }

Result<std::unique_ptr<GrammarCompiler>> GrammarCompiler::create(const TokenText&, TokenId, std::vector<TokenId>) {
  return unimplemented("this engine was built without structured output; build it with xgrammar");
}

std::unique_ptr<GrammarMatcher> GrammarMatcher::create(std::shared_ptr<const CompiledGrammar>, std::vector<TokenId>) {
  WARMPATH_CHECK(false, "there is no compiled grammar to follow");
  return nullptr;
}

}  // namespace warmpath
