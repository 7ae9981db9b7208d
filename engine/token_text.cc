#include "engine/token_text.h"

#include "text/byte_alphabet.h"

namespace warmpath {

TokenText::TokenText(const Vocabulary& vocabulary) : bytes_(vocabulary.tokens.size()) {
  for (size_t index = 0; index < bytes_.size(); ++index) {
    const std::string& spelling = vocabulary.tokens[index];
    const TokenType type = index < vocabulary.types.size() ? vocabulary.types[index] : TokenType::kNormal;
    if (type == TokenType::kControl || type == TokenType::kUnused) continue;
    // User-defined tokens are plain text; what spells no byte is taken as it stands.
    if (type == TokenType::kUserDefined) {
      bytes_[index] = spelling;
    } else {
      bytes_[index] = bytes_of_spelling(spelling).value_or(spelling);
    }
  }
}

}  // namespace warmpath
