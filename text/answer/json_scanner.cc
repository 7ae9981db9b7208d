#include "text/answer/json_scanner.h"

#include "base/json_escape.h"

namespace warmpath {

namespace {

bool is_space(char byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }
bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
bool is_hex(char byte) { return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F'); }

}  // namespace

bool JsonScanner::push(char byte, std::string& out) {
  switch (state_) {
    case State::kString:
      if (byte == '"') {
        state_ = string_is_key_ ? State::kColon : State::kAfter;
      } else if (byte == '\\') {
        state_ = State::kEscape;
      } else if (static_cast<uint8_t>(byte) < 0x20) {
        append_json_escape(out, byte);
        return true;
      }
      break;
    case State::kEscape:
      if (std::string_view("\"\\/bfnrtu").find(byte) == std::string_view::npos) return false;
      state_ = byte == 'u' ? State::kHex : State::kString;
      hex_left_ = 4;
      break;
    case State::kHex:
      if (!is_hex(byte)) return false;
      if (--hex_left_ == 0) state_ = State::kString;
      break;
    case State::kLiteral:
      if (byte != literal_[0]) return false;
      literal_.remove_prefix(1);
      if (literal_.empty()) state_ = State::kAfter;
      break;
    case State::kNumber:
      if (in_number(byte)) break;
      if (!number_complete()) return false;
      state_ = State::kAfter;
      [[fallthrough]];
    case State::kAfter:
      if (!after_value(byte)) return false;
      break;
    case State::kColon:
      if (byte == ':') {
        state_ = State::kValue;
      } else if (!is_space(byte)) {
        return false;
      }
      break;
    case State::kFirstKey:
      if (byte == '}') {
        if (!close(byte)) return false;
        break;
      }
      [[fallthrough]];
    case State::kKey:
      if (byte == '"') {
        state_ = State::kString;
        string_is_key_ = true;
      } else if (!is_space(byte)) {
        return false;
      }
      break;
    case State::kFirstElement:
      if (byte == ']') {
        if (!close(byte)) return false;
        break;
      }
      [[fallthrough]];
    case State::kValue:
      if (!is_space(byte) && !begin_value(byte)) return false;
      break;
  }
  out += byte;
  return true;
}

bool JsonScanner::begin_value(char byte) {
  string_is_key_ = false;
  if (byte == '"') {
    state_ = State::kString;
  } else if (byte == '{' || byte == '[') {
    if (stack_.size() == kMaxDepth) return false;
    stack_.push_back(byte);
    state_ = byte == '{' ? State::kFirstKey : State::kFirstElement;
  } else if (byte == 't' || byte == 'f' || byte == 'n') {
    literal_ = byte == 't' ? "rue" : byte == 'f' ? "alse" : "ull";
    state_ = State::kLiteral;
  } else if (byte == '-' || is_digit(byte)) {
    number_ = byte == '-' ? Number::kSign : byte == '0' ? Number::kZero : Number::kInteger;
    state_ = State::kNumber;
  } else {
    return false;
  }
  return true;
}

bool JsonScanner::in_number(char byte) {
  const bool is_exponent = byte == 'e' || byte == 'E';
  switch (number_) {
    case Number::kSign:
      if (!is_digit(byte)) return false;
      number_ = byte == '0' ? Number::kZero : Number::kInteger;
      return true;
    case Number::kInteger:
      if (is_digit(byte)) return true;
      [[fallthrough]];
    case Number::kZero:
      if (byte != '.' && !is_exponent) return false;
      number_ = byte == '.' ? Number::kPoint : Number::kExponent;
      return true;
    case Number::kPoint:
      if (!is_digit(byte)) return false;
      number_ = Number::kFraction;
      return true;
    case Number::kFraction:
      if (is_digit(byte)) return true;
      if (!is_exponent) return false;
      number_ = Number::kExponent;
      return true;
    case Number::kExponent:
      if (byte == '+' || byte == '-') {
        number_ = Number::kExponentSign;
        return true;
      }
      [[fallthrough]];
    case Number::kExponentSign:
    case Number::kExponentDigits:
      if (!is_digit(byte)) return false;
      number_ = Number::kExponentDigits;
      return true;
  }
  return false;
}

bool JsonScanner::number_complete() const {
  return number_ == Number::kZero || number_ == Number::kInteger || number_ == Number::kFraction ||
         number_ == Number::kExponentDigits;
}

bool JsonScanner::after_value(char byte) {
  if (is_space(byte)) return !stack_.empty();
  if (stack_.empty()) return false;
  if (byte == ',') {
    state_ = stack_.back() == '{' ? State::kKey : State::kValue;
    return true;
  }
  return (byte == '}' || byte == ']') && close(byte);
}

bool JsonScanner::close(char bracket) {
  if (stack_.empty() || stack_.back() != (bracket == '}' ? '{' : '[')) return false;
  stack_.pop_back();
  state_ = State::kAfter;
  return true;
}

bool JsonScanner::complete() const {
  return stack_.empty() && (state_ == State::kAfter || (state_ == State::kNumber && number_complete()));
}

void append_json_text(std::string_view text, std::string& out) {
  for (const char byte : text) {
    if (static_cast<uint8_t>(byte) < 0x20) {
      append_json_escape(out, byte);
    } else {
      if (byte == '"' || byte == '\\') out += '\\';
      out += byte;
    }
  }
}

bool is_json(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  JsonScanner scanner;
  std::string ignored;
  for (const char byte : text) {
    if (scanner.closed() || !scanner.push(byte, ignored)) return false;
    ignored.clear();
  }
  return scanner.complete();
}

}  // namespace warmpath
