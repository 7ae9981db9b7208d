// The only file that sees xgrammar's headers. Its calls may throw; nothing leaves this file but a Status.
#include "engine/grammar.h"

#include <fmt/format.h>
#include <xgrammar/compiler.h>
#include <xgrammar/matcher.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <string>
#include <utility>
#include <variant>

#include "base/log.h"
#include "engine/structural_tag.h"

namespace warmpath {

namespace {

// "Error: what" without the parts that name the library's own sources.
std::string complaint(std::string_view what) {
  constexpr size_t kMost = 400;
  while (!what.empty() && (what.back() == '\n' || what.back() == ' ')) what.remove_suffix(1);
  return std::string(what.substr(0, kMost));
}

class Compiled final : public CompiledGrammar {
 public:
  Compiled(xgrammar::CompiledGrammar grammar, std::vector<TokenId> hidden)
      : grammar_(std::move(grammar)), hidden_(std::move(hidden)) {}
  size_t bytes() const override { return grammar_.MemorySizeBytes(); }
  const xgrammar::CompiledGrammar& grammar() const { return grammar_; }
  // Control tokens that the grammar does not name.
  const std::vector<TokenId>& hidden() const { return hidden_; }

 private:
  const xgrammar::CompiledGrammar grammar_;
  const std::vector<TokenId> hidden_;
};

void collect_tokens(const Grammar& grammar, std::vector<TokenId>& named) {
  if (grammar.kind == Grammar::Kind::kToken) named.push_back(grammar.tokens.front());
  for (const Grammar& part : grammar.parts) collect_tokens(part, named);
}

class Compiler final : public GrammarCompiler {
 public:
  Compiler(const xgrammar::TokenizerInfo& tokens, std::vector<TokenId> controls)
      : tokens_(tokens), controls_(std::move(controls)), compiler_(tokens, 1, false) {}

  Result<std::shared_ptr<const CompiledGrammar>> compile(const Grammar& grammar) const override {
    const Result<std::string> tag = structural_tag(grammar, controls_);
    if (!tag.ok()) return tag.status();
    try {
      const auto read = xgrammar::Grammar::FromStructuralTag(*tag, tokens_);
      if (const auto* failure = std::get_if<xgrammar::StructuralTagError>(&read)) {
        return refused(std::visit([](const auto& error) { return std::string(error.what()); }, *failure));
      }
      xgrammar::GrammarCompiler compiler = compiler_;  // shares the tables; its calls are not const
      return std::shared_ptr<const CompiledGrammar>(
          std::make_shared<Compiled>(compiler.CompileGrammar(std::get<xgrammar::Grammar>(read)), hidden(grammar)));
    } catch (const std::exception& error) {
      return refused(error.what());
    }
  }

 private:
  std::vector<TokenId> hidden(const Grammar& grammar) const {
    std::vector<TokenId> named, hidden;
    collect_tokens(grammar, named);
    std::sort(named.begin(), named.end());
    std::set_difference(controls_.begin(), controls_.end(), named.begin(), named.end(), std::back_inserter(hidden));
    return hidden;
  }
  static Status refused(std::string_view what) {
    return invalid_argument("the grammar cannot be compiled: " + complaint(what));
  }

  const xgrammar::TokenizerInfo tokens_;
  const std::vector<TokenId> controls_;  // tokens without text; sorted
  const xgrammar::GrammarCompiler compiler_;
};

class Matcher final : public GrammarMatcher {
 public:
  Matcher(std::shared_ptr<const CompiledGrammar> grammar, std::vector<TokenId> ends)
      : grammar_(std::move(grammar)),
        ends_(std::move(ends)),
        matcher_(compiled().grammar()),
        vocabulary_(compiled().grammar().GetTokenizerInfo().GetVocabSize()),
        mask_((static_cast<size_t>(vocabulary_) + 31) / 32) {
    fill();
  }

  std::span<const uint32_t> mask() const override { return mask_; }
  bool may_end() const override { return may_end_; }
  bool must_end() const override { return must_end_; }

  bool accept(TokenId token) override {
    if (token < 0 || token >= vocabulary_ || !allows(token) || is_end(token)) return false;
    try {
      if (!matcher_.AcceptToken(token)) return false;
    } catch (const std::exception& error) {
      log_error("grammar_failed", {{"error", complaint(error.what())}});
      return false;
    }
    fill();
    return true;
  }

  void roll_back(int32_t tokens) override {
    if (tokens <= 0) return;
    matcher_.Rollback(tokens);
    fill();
  }

 private:
  const Compiled& compiled() const { return static_cast<const Compiled&>(*grammar_); }
  bool is_end(TokenId token) const { return std::find(ends_.begin(), ends_.end(), token) != ends_.end(); }

  void fill() {
    auto size = static_cast<int64_t>(mask_.size());
    DLTensor tensor{};
    tensor.data = mask_.data();
    tensor.device = DLDevice{kDLCPU, 0};
    tensor.ndim = 1;
    tensor.dtype = xgrammar::GetBitmaskDLType();
    tensor.shape = &size;
    try {
      if (!matcher_.FillNextTokenBitmask(&tensor)) std::fill(mask_.begin(), mask_.end(), ~uint32_t{0});
    } catch (const std::exception& error) {
      // Nothing is allowed: the request ends with an error.
      log_error("grammar_failed", {{"error", complaint(error.what())}});
      std::fill(mask_.begin(), mask_.end(), 0);
      return;
    }
    if (vocabulary_ % 32 != 0) mask_.back() &= (uint32_t{1} << (vocabulary_ % 32)) - 1;
    // Where an answer may end is the matcher's to say; by which tokens, the request's.
    for (const int token : compiled().grammar().GetTokenizerInfo().GetStopTokenIds()) set(token, false);
    for (const TokenId token : compiled().hidden()) set(token, false);
    for (const TokenId token : ends_) set(token, false);
    may_end_ = matcher_.IsCompleted();
    must_end_ = may_end_ && std::all_of(mask_.begin(), mask_.end(), [](uint32_t word) { return word == 0; });
    if (!may_end_) return;
    for (const TokenId token : ends_) set(token, true);
  }

  void set(TokenId token, bool allowed) {
    if (token < 0 || token >= vocabulary_) return;
    uint32_t& word = mask_[static_cast<size_t>(token) / 32];
    const uint32_t bit = uint32_t{1} << (token % 32);
    word = allowed ? word | bit : word & ~bit;
  }

  const std::shared_ptr<const CompiledGrammar> grammar_;
  const std::vector<TokenId> ends_;
  xgrammar::GrammarMatcher matcher_;
  const TokenId vocabulary_;
  std::vector<uint32_t> mask_;
  bool may_end_ = false;
  bool must_end_ = false;
};

}  // namespace

bool GrammarCompiler::available() { return true; }

Result<std::unique_ptr<GrammarCompiler>> GrammarCompiler::create(const TokenText& text, TokenId vocabulary,
                                                                 std::vector<TokenId> end_tokens) {
  try {
    std::vector<std::string> tokens(static_cast<size_t>(vocabulary));
    std::vector<TokenId> controls;
    for (TokenId token = 0; token < vocabulary; ++token) {
      tokens[static_cast<size_t>(token)] = text.of(token);
      if (!text.of(token).empty()) continue;
      // The library never accepts a token without text; this one no text can match.
      tokens[static_cast<size_t>(token)] = fmt::format("\xff\xff{}", token);
      controls.push_back(token);
    }
    const xgrammar::TokenizerInfo info(tokens, xgrammar::VocabType::RAW, vocabulary, std::move(end_tokens));
    return std::unique_ptr<GrammarCompiler>(std::make_unique<Compiler>(info, std::move(controls)));
  } catch (const std::exception& error) {
    return internal_error("structured output cannot use this vocabulary: " + complaint(error.what()));
  }
}

std::unique_ptr<GrammarMatcher> GrammarMatcher::create(std::shared_ptr<const CompiledGrammar> grammar,
                                                       std::vector<TokenId> ends) {
  return std::make_unique<Matcher>(std::move(grammar), std::move(ends));
}

}  // namespace warmpath
