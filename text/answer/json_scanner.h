// JsonScanner: follows one JSON value as it arrives, byte by byte, and says when it is whole or broken. Line breaks and
// other control characters inside strings, which small models write unescaped, are escaped on the way, so that what
// comes out is JSON. UTF-8 is the caller's business. Thread safety: none; belongs to one value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace warmpath {

class JsonScanner {
 public:
  static constexpr size_t kMaxDepth = 128;

  // Appends the byte (or its escape) to `out`. False, and nothing appended, when no JSON value continues so.
  // Numbers and literals at the top end with the input only: see complete().
  bool push(char byte, std::string& out);

  // The closing bracket or quote of the value has been seen: no byte may follow.
  bool closed() const { return stack_.empty() && state_ == State::kAfter; }
  // The bytes so far are a whole value; a number may still grow.
  bool complete() const;
  bool in_string() const { return state_ == State::kString || state_ == State::kEscape || state_ == State::kHex; }

 private:
  enum class State : uint8_t {
    kValue,         // before a value
    kFirstElement,  // after '[': a value or ']'
    kFirstKey,      // after '{': a key or '}'
    kKey,           // after ',' in an object
    kColon,
    kString,
    kEscape,
    kHex,
    kLiteral,
    kNumber,
    kAfter,  // after a value
  };
  enum class Number : uint8_t { kSign, kZero, kInteger, kPoint, kFraction, kExponent, kExponentSign, kExponentDigits };

  bool begin_value(char byte);
  bool in_number(char byte);
  bool after_value(char byte);
  bool close(char bracket);
  bool number_complete() const;

  std::vector<char> stack_;  // '{' or '['
  State state_ = State::kValue;
  bool string_is_key_ = false;
  int hex_left_ = 0;
  std::string_view literal_;  // what of "true", "false", "null" is still to come
  Number number_ = Number::kSign;
};

// Appends what stands between a JSON string's quotes for `text`, which is UTF-8.
void append_json_text(std::string_view text, std::string& out);

// Whether `text` is one JSON value with nothing around it but white space.
bool is_json(std::string_view text);

}  // namespace warmpath
