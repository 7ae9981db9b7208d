#include "text/jinja/lexer.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "text/unicode.h"

namespace warmpath::jinja {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

std::string normalized(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t at = 0; at < source.size(); ++at) {
    if (source[at] == '\r') {
      text.push_back('\n');
      if (at + 1 < source.size() && source[at + 1] == '\n') ++at;
    } else {
      text.push_back(source[at]);
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(TokenStream& stream) : stream_(stream), source_(stream.source->bytes()) {}

  void run() {
    while (at_ < source_.size()) lex_root();
    add(TokenKind::kEnd, {}, source_.size());
  }

 private:
  // Places are found by walking on from the last one: tokens come in order.
  Place place_of(size_t offset) {
    if (offset < place_offset_) {
      place_offset_ = 0;
      line_start_ = 0;
      line_ = 1;
    }
    for (; place_offset_ < offset; ++place_offset_) {
      if (source_[place_offset_] == '\n') {
        ++line_;
        line_start_ = place_offset_ + 1;
      }
    }
    return {line_, static_cast<uint32_t>(offset - line_start_ + 1)};
  }
  [[noreturn]] void fail(size_t offset, const std::string& message) { throw TemplateError(place_of(offset), message); }

  void add(TokenKind kind, std::string_view text, size_t offset) {
    stream_.tokens.push_back({kind, text, place_of(offset)});
  }
  void add_data(std::string_view text, size_t offset) {
    if (!text.empty()) add(TokenKind::kData, text, offset);
  }
  bool looking_at(std::string_view text, size_t at) const { return source_.substr(at).starts_with(text); }
  size_t skip_space(size_t at) const {
    while (at < source_.size() && is_space(source_[at])) ++at;
    return at;
  }

  // The text before a tag, less what its sign and lstrip_blocks take away.
  std::string_view before_tag(std::string_view data, char sign, bool is_variable, bool line_starting) {
    if (sign == '-') {
      while (!data.empty() && is_space(data.back())) data.remove_suffix(1);
    } else if (sign != '+' && !is_variable) {
      const size_t line = data.rfind('\n') + 1;
      if ((line > 0 || line_starting) && line < data.size() && data.find_first_not_of(" \t\v\f", line) == data.npos) {
        data = data.substr(0, line);
      }
    }
    return data;
  }
  // Steps over the end of a block or comment at `at` ("%}", "-%}", "+%}"): trim_blocks takes one newline.
  size_t after_end(size_t at) {
    if (source_[at] == '-') return skip_space(at + 3);
    if (source_[at] == '+') return at + 3;
    return at + 2 < source_.size() && source_[at + 2] == '\n' ? at + 3 : at + 2;
  }
  static char sign_at(std::string_view source, size_t at) {
    return at < source.size() && (source[at] == '-' || source[at] == '+') ? source[at] : 0;
  }
  // End of `{% raw %}` that starts at `at`; nullopt when it is another tag.
  std::optional<size_t> raw_begin_end(size_t at) {
    size_t next = at + 2 + (sign_at(source_, at + 2) != 0 ? 1 : 0);
    next = skip_space(next);
    if (!looking_at("raw", next)) return std::nullopt;
    next = skip_space(next + 3);
    if (looking_at("-%}", next)) return skip_space(next + 3);
    if (looking_at("%}", next)) return next + 2;
    return std::nullopt;
  }

  void lex_root() {
    const size_t start = at_;
    const bool line_starting = line_starting_;
    size_t tag = start;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == source_.npos) {
        add_data(source_.substr(start), start);
        at_ = source_.size();
        return;
      }
      if (tag + 1 < source_.size() && (source_[tag + 1] == '{' || source_[tag + 1] == '%' || source_[tag + 1] == '#'))
        break;
      ++tag;
    }
    const char kind = source_[tag + 1];
    const char sign = sign_at(source_, tag + 2);
    add_data(before_tag(source_.substr(start, tag - start), sign, kind == '{', line_starting), start);
    at_ = tag + 2 + (sign != 0 ? 1 : 0);
    if (kind == '#') {
      lex_comment(tag);
    } else if (const auto raw = kind == '%' ? raw_begin_end(tag) : std::nullopt) {
      lex_raw(tag, *raw);
    } else {
      add(kind == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, source_.substr(tag, 2), tag);
      lex_tag(tag, kind == '%');
    }
    line_starting_ = at_ > 0 && source_[at_ - 1] == '\n';
  }

  void lex_comment(size_t tag) {
    const size_t end = source_.find("#}", at_);
    if (end == source_.npos) fail(tag, "Missing end of comment tag");
    const size_t sign = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+') ? end - 1 : end;
    at_ = after_end(sign);
  }

  void lex_raw(size_t tag, size_t body) {
    for (size_t end = body; (end = source_.find("{%", end)) != source_.npos; end += 2) {
      const char sign = sign_at(source_, end + 2);
      size_t next = skip_space(end + 2 + (sign != 0 ? 1 : 0));
      if (!looking_at("endraw", next)) continue;
      next = skip_space(next + 6);
      if (!looking_at("%}", next) && !looking_at("-%}", next) && !looking_at("+%}", next)) continue;
      add_data(before_tag(source_.substr(body, end - body), sign, false, source_[body - 1] == '\n'), body);
      at_ = after_end(next);
      return;
    }
    fail(tag, "Missing end of raw directive");
  }

  void lex_tag(size_t tag, bool is_block) {
    std::vector<char> open;  // brackets that still want their end
    while (true) {
      at_ = skip_space(at_);
      if (at_ >= source_.size())
        fail(tag, is_block ? "this block is never closed with '%}'" : "this '{{' is never closed");
      if (open.empty()) {
        if (is_block && (looking_at("%}", at_) || looking_at("-%}", at_) || looking_at("+%}", at_))) {
          add(TokenKind::kBlockEnd, "%}", at_);
          at_ = after_end(at_);
          return;
        }
        if (!is_block && (looking_at("}}", at_) || looking_at("-}}", at_))) {
          add(TokenKind::kVariableEnd, "}}", at_);
          at_ = source_[at_] == '-' ? skip_space(at_ + 3) : at_ + 2;
          return;
        }
      }
      lex_expression_token(open);
    }
  }

  void lex_expression_token(std::vector<char>& open) {
    const char c = source_[at_];
    const bool after_dot = !stream_.tokens.empty() && stream_.tokens.back().text == "." && source_[at_ - 1] == '.';
    if (is_name_start(c)) {
      size_t end = at_;
      while (end < source_.size() && is_name(source_[end])) ++end;
      return take(TokenKind::kName, end);
    }
    if (is_digit(c)) return lex_number(after_dot);
    if (c == '\'' || c == '"') return lex_string(c);
    static constexpr std::array<std::string_view, 6> kPairs = {"//", "**", "==", "!=", ">=", "<="};
    for (const std::string_view pair : kPairs) {
      if (looking_at(pair, at_)) return take(TokenKind::kOperator, at_ + 2);
    }
    if (std::string_view("+-/*%~[](){}><=.:|,;").find(c) == std::string_view::npos) {
      fail(at_, fmt::format("unexpected character '{}'", std::string_view(&source_[at_], 1)));
    }
    if (c == '(' || c == '[' || c == '{') open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) fail(at_, fmt::format("unexpected '{}'", c));
      if (open.back() != c) fail(at_, fmt::format("unexpected '{}', expected '{}'", c, open.back()));
      open.pop_back();
    }
    take(TokenKind::kOperator, at_ + 1);
  }

  void take(TokenKind kind, size_t end) {
    add(kind, source_.substr(at_, end - at_), at_);
    at_ = end;
  }

  void lex_number(bool after_dot) {
    size_t end = at_;
    const auto digits = [&] {
      while (end < source_.size() && (is_digit(source_[end]) || (source_[end] == '_' && is_digit(source_[end + 1]))))
        ++end;
    };
    if (source_[at_] == '0' && at_ + 1 < source_.size() &&
        std::string_view("xXoObB").find(source_[at_ + 1]) != std::string_view::npos) {
      end += 2;
      while (end < source_.size() && is_name(source_[end])) ++end;
      return take(TokenKind::kInteger, end);
    }
    digits();
    TokenKind kind = TokenKind::kInteger;
    if (!after_dot && end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
      kind = TokenKind::kFloat;
      ++end;
      digits();
    }
    if (!after_dot && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const size_t sign = end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-') ? 1 : 0;
      if (end + 1 + sign < source_.size() && is_digit(source_[end + 1 + sign])) {
        kind = TokenKind::kFloat;
        end += 1 + sign;
        digits();
      }
    }
    take(kind, end);
  }

  void lex_string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail(at_, "this string is never closed");
    stream_.strings.push_back(std::make_unique<std::string>(unescape(source_.substr(at_ + 1, end - at_ - 1))));
    add(TokenKind::kString, *stream_.strings.back(), at_);
    at_ = end + 1;
  }

  // Python's "unicode-escape".
  std::string unescape(std::string_view raw) {
    std::string text;
    for (size_t at = 0; at < raw.size(); ++at) {
      if (raw[at] != '\\' || at + 1 == raw.size()) {
        text.push_back(raw[at]);
        continue;
      }
      const char c = raw[++at];
      static constexpr std::string_view kNames = "abfnrtv\\'\"";
      static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
      if (const size_t name = kNames.find(c); name != kNames.npos) {
        text.push_back(kMeanings[name]);
      } else if (c == '\n') {
        // A line continued.
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        const std::string hex(raw.substr(at + 1, digits));
        if (hex.size() != digits || hex.find_first_not_of("0123456789abcdefABCDEF") != hex.npos) {
          fail(at_, fmt::format("\\{} wants {} hexadecimal digits", c, digits));
        }
        const unsigned long code = std::stoul(hex, nullptr, 16);
        if (code >= kCodePoints || (code >= 0xD800 && code < 0xE000)) fail(at_, "no such character: \\" + hex);
        append_utf8(static_cast<uint32_t>(code), text);
        at += digits;
      } else if (c >= '0' && c <= '7') {
        uint32_t code = 0;
        size_t used = 0;
        while (used < 3 && at + used < raw.size() && raw[at + used] >= '0' && raw[at + used] <= '7') {
          code = code * 8 + static_cast<uint32_t>(raw[at + used++] - '0');
        }
        append_utf8(code, text);
        at += used - 1;
      } else if (c == 'N') {
        fail(at_, "\\N{...} is not supported: write the character itself");
      } else {
        text.push_back('\\');
        text.push_back(c);
      }
    }
    return text;
  }

  TokenStream& stream_;
  const std::string_view source_;
  size_t at_ = 0;
  bool line_starting_ = true;
  size_t place_offset_ = 0;
  size_t line_start_ = 0;
  uint32_t line_ = 1;
};

}  // namespace

TokenStream tokenize_template(std::string_view source) {
  TokenStream stream;
  stream.source = new SharedBytes(normalized(source));
  Lexer(stream).run();
  return stream;
}

}  // namespace warmpath::jinja
