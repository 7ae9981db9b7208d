// Detokenizer: the ids of one answer, as they arrive, to text that may be sent at once: never half a UTF-8 character.
// Bytes that cannot become valid UTF-8 turn into U+FFFD as soon as that is certain (one per maximal broken sequence, as
// the Unicode standard recommends and as Python's and JavaScript's decoders do), an unfinished character at finish().
// Thread safety: one answer, one thread. The tokenizer must outlive it.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/token.h"
#include "text/tokenizer.h"

namespace warmpath {

// Joins byte pieces into whole UTF-8 characters. At most 3 bytes are held back.
class Utf8Joiner {
 public:
  // Appends to `out` all of the text that is certain by now.
  void push(std::string_view bytes, std::string& out);
  // The stream has ended: what is held back becomes U+FFFD.
  void finish(std::string& out);
  size_t held_bytes() const { return held_size_; }

 private:
  std::array<char, 4> held_{};
  size_t held_size_ = 0;
};

class Detokenizer {
 public:
  // Control tokens (<|im_end|>, ...) give no text unless `keep_control`.
  explicit Detokenizer(const Tokenizer& tokenizer, bool keep_control = false)
      : tokenizer_(tokenizer), keep_control_(keep_control) {}

  void push(TokenId id, std::string& out);
  void finish(std::string& out) { joiner_.finish(out); }

 private:
  const Tokenizer& tokenizer_;
  const bool keep_control_;
  Utf8Joiner joiner_;
};

}  // namespace warmpath
