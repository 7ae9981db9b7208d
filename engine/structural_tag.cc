#include "engine/structural_tag.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "engine/grammar.h"
#include "text/answer/json_scanner.h"
#include "text/schema/json_schema.h"
#include "text/unicode.h"

namespace warmpath {

namespace {

constexpr int kMaxNesting = 64;            // of brackets in regular expressions and EBNF
constexpr int64_t kMaxExpansion = 20'000;  // product of nested repetitions in a regular expression

Status wrong(std::string message) { return invalid_argument(std::move(message)); }

std::string quoted(std::string_view text) {
  std::string json = "\"";
  append_json_text(text, json);
  return json + '"';
}

// The largest number of a {n}, {n,} or {n,m} that begins at `at`; -1: it is none.
int64_t repetition(std::string_view text, size_t at, size_t& end) {
  int64_t largest = 0, number = 0;
  bool digits = false;
  for (size_t next = at + 1; next < text.size(); ++next) {
    const char byte = text[next];
    if (byte >= '0' && byte <= '9') {
      digits = true;
      number = std::min<int64_t>(number * 10 + (byte - '0'), INT32_MAX);
    } else if (byte == ',' || byte == '}') {
      largest = std::max(largest, number);
      number = 0;
      if (byte == '}') {
        end = next;
        return digits ? largest : -1;
      }
    } else if (byte != ' ') {
      return -1;
    }
  }
  return -1;
}

// What makes a pattern dear to compile: deep nesting, and repetitions of repetitions.
Status check_cost(std::string_view kind, std::string_view text, size_t most_bytes) {
  if (text.size() > most_bytes) {
    return wrong(fmt::format("a {} has {} bytes; at most {} are allowed", kind, text.size(), most_bytes));
  }
  // The expansion inside each open group; a repetition multiplies what it follows.
  std::vector<int64_t> groups{0};
  int64_t last = 1;  // of the last atom
  bool in_class = false;
  bool in_string = false;
  const bool ebnf = kind == "grammar";
  for (size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    if (byte == '\\') {
      ++at;
      last = 1;
      groups.back() += 1;
      continue;
    }
    if (in_class) {
      in_class = byte != ']';
      continue;
    }
    if (ebnf && byte == '"') in_string = !in_string;
    if (in_string) continue;
    if (byte == '[') {
      in_class = true;
      last = 1;
      groups.back() += 1;
    } else if (byte == '(') {
      if (groups.size() > kMaxNesting) {
        return wrong(fmt::format("a {} nests more than {} brackets", kind, kMaxNesting));
      }
      groups.push_back(0);
    } else if (byte == ')' && groups.size() > 1) {
      last = std::max<int64_t>(groups.back(), 1);
      groups.pop_back();
      groups.back() += last;
    } else if (byte == '{') {
      size_t end = at;
      const int64_t times = repetition(text, at, end);
      if (times < 0) continue;
      if (times > kMaxRepetition) {
        return wrong(
            fmt::format("a {} repeats something {} times; at most {} are allowed", kind, times, kMaxRepetition));
      }
      at = end;
      // A single character's repetition is cheap: the compiler counts it instead of writing it out.
      const int64_t expanded = last <= 1 ? std::min<int64_t>(times, 128) : last * std::max<int64_t>(times, 1);
      groups.back() += expanded - last;
      last = expanded;
    } else {
      last = 1;
      groups.back() += 1;
    }
    if (groups.back() > kMaxExpansion || last > kMaxExpansion) {
      return wrong(
          fmt::format("a {}'s nested repetitions expand to more than {} parts: bound them lower", kind, kMaxExpansion));
    }
  }
  return {};
}

class Writer {
 public:
  explicit Writer(std::span<const TokenId> controls) : controls_(controls) {}

  Status write(const Grammar& grammar) {
    using Kind = Grammar::Kind;
    if (!is_valid_utf8(grammar.text)) return wrong("a grammar's text is not valid UTF-8");
    switch (grammar.kind) {
      case Kind::kNone:
        return wrong("a grammar's part has no kind");
      case Kind::kLiteral:
        out_ += fmt::format(R"({{"type":"const_string","value":{}}})", quoted(grammar.text));
        return {};
      case Kind::kToken:
        out_ += fmt::format(R"({{"type":"token","token":{}}})", grammar.tokens.front());
        return {};
      case Kind::kJsonSchema:
        return schema(grammar, "json");
      case Kind::kQwenObject:
        return schema(grammar, "qwen_xml");
      case Kind::kGlmObject:
        return schema(grammar, "glm_xml");
      case Kind::kRegex:
        WARMPATH_RETURN_IF_ERROR(check_cost("regular expression", grammar.text, kMaxRegexBytes));
        out_ += fmt::format(R"({{"type":"regex","pattern":{}}})", quoted(grammar.text));
        return {};
      case Kind::kEbnf:
        WARMPATH_RETURN_IF_ERROR(check_cost("grammar", grammar.text, kMaxEbnfBytes));
        out_ += fmt::format(R"({{"type":"grammar","grammar":{}}})", quoted(grammar.text));
        return {};
      case Kind::kText: {
        out_ += R"({"type":"any_text","excludes":[)";
        for (size_t index = 0; index < grammar.excluded.size(); ++index) {
          if (!is_valid_utf8(grammar.excluded[index])) return wrong("a grammar's text is not valid UTF-8");
          out_ += (index > 0 ? "," : "") + quoted(grammar.excluded[index]);
        }
        out_ += "]}";
        return {};
      }
      case Kind::kTokens:
        out_ += fmt::format(R"({{"type":"any_tokens","exclude_tokens":[{}{}{}]}})", fmt::join(grammar.tokens, ","),
                            grammar.tokens.empty() || controls_.empty() ? "" : ",", fmt::join(controls_, ","));
        return {};
      case Kind::kSequence:
        return list("sequence", grammar);
      case Kind::kAnyOf:
        return list("or", grammar);
      case Kind::kRepeat:
        return repeat(grammar);
    }
    return wrong("a grammar's part has an unknown kind");
  }
  std::string take() { return std::move(out_); }

 private:
  Status schema(const Grammar& grammar, std::string_view style) {
    Result<std::string> prepared = prepare_json_schema(grammar.text);
    if (!prepared.ok()) return prepared.status();
    out_ += fmt::format(R"({{"type":"json_schema","style":"{}","max_whitespace_cnt":{},"json_schema":{}}})", style,
                        std::max(grammar.most_space, 1), *prepared);
    return {};
  }

  Status list(std::string_view type, const Grammar& grammar) {
    out_ += fmt::format(R"({{"type":"{}","elements":[)", type);
    for (size_t index = 0; index < grammar.parts.size(); ++index) {
      if (index > 0) out_ += ',';
      WARMPATH_RETURN_IF_ERROR(write(grammar.parts[index]));
    }
    out_ += "]}";
    return {};
  }

  Status repeat(const Grammar& grammar) {
    if (grammar.least > kMaxRepetition || grammar.most > kMaxRepetition) {
      return wrong(fmt::format("a grammar repeats something more than {} times", kMaxRepetition));
    }
    if (grammar.most < 0 && grammar.least <= 1) {
      out_ += fmt::format(R"({{"type":"{}","content":)", grammar.least == 0 ? "star" : "plus");
    } else {
      out_ += fmt::format(R"({{"type":"repeat","min":{},"max":{},"content":)", grammar.least, grammar.most);
    }
    WARMPATH_RETURN_IF_ERROR(write(grammar.parts.front()));
    out_ += '}';
    return {};
  }

  const std::span<const TokenId> controls_;
  std::string out_;
};

}  // namespace

Result<std::string> structural_tag(const Grammar& grammar, std::span<const TokenId> controls) {
  Writer writer(controls);
  WARMPATH_RETURN_IF_ERROR(writer.write(grammar));
  return R"({"type":"structural_tag","format":)" + writer.take() + '}';
}

}  // namespace warmpath
