// CharClasses: what a pre-tokenizer needs to know of a character, as a bit set per character, with the fast way for
// ASCII. Thread safety: immutable after construction.
#pragma once

#include <array>
#include <cstdint>

#include "text/unicode.h"

namespace warmpath {

class CharClasses {
 public:
  // `bits_of` gives a character's bits from its properties; `invalid` are the bits of a byte that is no character.
  template <typename BitsOf>
  CharClasses(BitsOf bits_of, uint8_t invalid) : table_(code_point_table()), invalid_(invalid) {
    for (uint32_t bits = 0; bits < 256; ++bits) {
      by_properties_[bits] = bits_of(CodePointProperties(static_cast<uint8_t>(bits)));
    }
    for (uint32_t byte = 0; byte < 128; ++byte) ascii_[byte] = by_properties_[table_[byte]];
  }

  // Sets one ASCII character's bits, where its category does not say enough (line breaks, the apostrophe).
  void set_ascii(uint8_t character, uint8_t bits) { ascii_[character] = bits; }

  struct Char {
    uint8_t bits;
    uint32_t size;  // bytes
  };
  // REQUIRES at < end.
  Char at(const uint8_t* at, const uint8_t* end) const {
    if (*at < 0x80) [[likely]]
      return {ascii_[*at], 1};
    const DecodedChar decoded = decode_utf8(at, end);
    if (decoded.code_point == kInvalidCodePoint) return {invalid_, 1};
    return {by_properties_[table_[decoded.code_point]], decoded.size};
  }
  // The bits at `at`; 0 at the end of the text.
  uint8_t bits_at(const uint8_t* at, const uint8_t* end) const { return at < end ? this->at(at, end).bits : 0; }

  // End of the run of characters that have any of `wanted`.
  const uint8_t* run_end(const uint8_t* at, const uint8_t* end, uint8_t wanted) const {
    while (at < end) {
      const Char here = this->at(at, end);
      if ((here.bits & wanted) == 0) break;
      at += here.size;
    }
    return at;
  }
  // The same, and where the last character of the run starts (`at` itself when the run is empty).
  const uint8_t* run_end(const uint8_t* at, const uint8_t* end, uint8_t wanted, const uint8_t*& last) const {
    last = at;
    while (at < end) {
      const Char here = this->at(at, end);
      if ((here.bits & wanted) == 0) break;
      last = at;
      at += here.size;
    }
    return at;
  }

  // \s*[\r\n]+|\s+(?!\S)|\s+ at a run of white space (`white`, of which `line_break` is a part): up to its last line
  // break; without one, all of it at the end of the text, else all but the last.
  const uint8_t* white_space_piece(const uint8_t* at, const uint8_t* end, uint8_t white, uint8_t line_break) const {
    const uint8_t* last = at;
    const uint8_t* after_break = nullptr;
    const uint8_t* run = at;
    while (run < end) {
      const Char here = this->at(run, end);
      if ((here.bits & white) == 0) break;
      last = run;
      run += here.size;
      if (here.bits == line_break) after_break = run;
    }
    if (after_break != nullptr) return after_break;
    return run == end || last == at ? run : last;
  }

 private:
  std::array<uint8_t, 256> by_properties_;
  std::array<uint8_t, 128> ascii_;
  const uint8_t* table_;
  uint8_t invalid_;
};

}  // namespace warmpath
