#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <ctime>
#include <utility>
#include <vector>

namespace warmpath {
namespace {

constexpr size_t kMaxPatternBytes = 64 << 10;
// Per place at which a match may begin. Backing off over a whole 4 MB text stays below; nested quantifiers do not.
constexpr uint32_t kMatchLimit = 10'000'000;
// Per text, looked at after so many calls or places to begin at.
constexpr double kSeconds = 0.5;
constexpr double kSecondsPerByte = 1e-6;
constexpr uint32_t kCallsBetweenLooks = 64;
constexpr size_t kPlacesPerCall = 256;
constexpr uint32_t kDepthLimit = 100'000;
constexpr uint32_t kHeapLimitKib = 64 << 10;
constexpr size_t kJitStackBytes = 1 << 20;

// One thread's working memory.
struct Workspace {
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 << 10, kJitStackBytes, nullptr);
  pcre2_match_data* match = pcre2_match_data_create(1, nullptr);

  Workspace() {
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_set_depth_limit(context, kDepthLimit);
    pcre2_set_heap_limit(context, kHeapLimitKib);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Workspace() {
    pcre2_match_data_free(match);
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
};

std::string message_of(int error) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(error, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> run() {
    while (at_ < pattern_.size()) {
      const char here = pattern_[at_];
      if (here == '\\') {
        WARMPATH_RETURN_IF_ERROR(escape(out_, false));
      } else if (here == '[') {
        std::string set;
        WARMPATH_RETURN_IF_ERROR(char_class(set, 0));
        out_ += set;
      } else if (here == '(' && pattern_.substr(at_, 3) == "(?~") {
        return refuse("absent operators are not supported");
      } else if (here == '{' && pattern_.substr(at_, 2) == "{,") {
        out_ += "{0,";  // PCRE2 takes {,n} literally
        at_ += 2;
      } else {
        out_ += here;
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  // A script's bare name stands for its script extensions in PCRE2 (Han takes U+3001), and for the script itself in
  // Oniguruma. PCRE2 knows what is one.
  static bool is_script(std::string_view name) {
    const std::string pattern = fmt::format("\\p{{sc:{}}}", name);
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                     PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
    pcre2_code_free(code);
    return code != nullptr;
  }
  Status refuse(std::string_view problem) const {
    return invalid_argument(fmt::format("regular expression, byte {}: {}", at_, problem));
  }

  // The escape at at_, appended to `out`.
  Status escape(std::string& out, bool in_class) {
    if (at_ + 1 >= pattern_.size()) return refuse("ends in a backslash");
    const char kind = pattern_[at_ + 1];
    at_ += 2;
    switch (kind) {
      case 'h':
        out += in_class ? "0-9A-Fa-f" : "[0-9A-Fa-f]";
        return {};
      case 'H':
        if (in_class) return refuse("\\H inside a class is not supported");
        out += "[^0-9A-Fa-f]";
        return {};
      case 'G':
      case 'K':
      case 'Q':
      case 'C':
        at_ -= 2;
        return refuse(fmt::format("\\{} is not supported", kind));
      case 'R':
      case 'X':
        if (in_class) {
          out += kind;
          return {};
        }
        break;
      case 'u': {
        const std::string_view digits = pattern_.substr(at_, 4);
        if (digits.size() < 4) return refuse("\\u needs four hexadecimal digits");
        out += fmt::format("\\x{{{}}}", digits);
        at_ += 4;
        return {};
      }
      default:
        break;
    }
    out += '\\';
    out += kind;
    if (kind == 'p' || kind == 'P') {
      if (at_ >= pattern_.size() || pattern_[at_] != '{') return refuse("a property needs braces");
      const size_t close = pattern_.find('}', at_);
      if (close == std::string_view::npos) return refuse("a property lacks its closing brace");
      std::string_view name = pattern_.substr(at_ + 1, close - at_ - 1);
      const bool negated = name.starts_with('^');
      if (negated) name.remove_prefix(1);
      out += fmt::format("{{{}{}{}}}", negated ? "^" : "", is_script(name) ? "sc:" : "", name);
      at_ = close + 1;
    }
    return {};
  }

  // The class at at_ ('['), as a PCRE2 expression that matches one character.
  Status char_class(std::string& out, int depth) {
    if (depth > 20) return refuse("classes nested too deeply");
    ++at_;
    bool negated = false;
    if (at_ < pattern_.size() && pattern_[at_] == '^') {
      negated = true;
      ++at_;
    }
    std::vector<std::string> operands;  // of &&, each an expression for one character
    std::string set;                    // members so far
    std::vector<std::string> nested;    // expressions whose characters belong, too
    bool first = true;
    const auto close_operand = [&] {
      std::string operand = set.empty() ? std::string() : "[" + set + "]";
      for (const std::string& inner : nested) operand += (operand.empty() ? "" : "|") + inner;
      operands.push_back(operand.empty() ? "(?!)" : nested.empty() ? operand : "(?:" + operand + ")");
      set.clear();
      nested.clear();
    };
    for (;; first = false) {
      if (at_ >= pattern_.size()) return refuse("a class lacks its closing bracket");
      const char here = pattern_[at_];
      if (here == ']' && !first) break;
      if (here == ']') {
        set += "\\]";
        ++at_;
      } else if (here == '[' && pattern_.substr(at_, 2) == "[:") {
        const size_t close = pattern_.find(":]", at_);
        if (close == std::string_view::npos) return refuse("a POSIX bracket lacks its end");
        set += pattern_.substr(at_, close + 2 - at_);
        at_ = close + 2;
      } else if (here == '[') {
        std::string inner;
        WARMPATH_RETURN_IF_ERROR(char_class(inner, depth + 1));
        nested.push_back(std::move(inner));
      } else if (here == '&' && pattern_.substr(at_, 2) == "&&") {
        close_operand();
        at_ += 2;
      } else if (here == '\\') {
        WARMPATH_RETURN_IF_ERROR(escape(set, true));
      } else {
        // PCRE2 would read an open bracket as a member, too, but never sees one.
        set += here;
        ++at_;
      }
    }
    ++at_;
    if (operands.empty() && nested.empty()) {
      out += (negated ? "[^" : "[") + set + "]";
      return {};
    }
    close_operand();
    // All operands hold for one character: look-aheads for all but the last.
    std::string all;
    for (size_t index = 0; index + 1 < operands.size(); ++index) all += "(?=" + operands[index] + ")";
    all += operands.back();
    out += negated ? "(?:(?!" + all + ")(?s:.))" : operands.size() > 1 ? "(?:" + all + ")" : all;
    return {};
  }

  std::string_view pattern_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  bool jit = false;
  ~Code() { pcre2_code_free(code); }
};

Regex::Regex(std::string pattern, std::unique_ptr<Code> code) : pattern_(std::move(pattern)), code_(std::move(code)) {}
Regex::~Regex() = default;

Result<std::string> pcre_of_oniguruma(std::string_view pattern) { return Translator(pattern).run(); }

Result<std::shared_ptr<const Regex>> Regex::compile(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return invalid_argument(
        fmt::format("a regular expression of {} bytes; at most {} are read", pattern.size(), kMaxPatternBytes));
  }
  const auto translated = pcre_of_oniguruma(pattern);
  if (!translated.ok()) return translated.status();
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  pcre2_set_parens_nest_limit(context, 100);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto code = std::make_unique<Code>();
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()), translated->size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT,
                             &error, &offset, context);
  pcre2_compile_context_free(context);
  if (code->code == nullptr) {
    return invalid_argument(
        fmt::format("regular expression '{}', near byte {}: {}", *translated, offset, message_of(error)));
  }
  code->jit = pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE) == 0;
  return std::shared_ptr<const Regex>(new Regex(std::string(pattern), std::move(code)));
}

Status Regex::Search::check_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  const double seconds = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  if (started_ < 0) started_ = seconds;
  if (seconds - started_ < kSeconds + kSecondsPerByte * static_cast<double>(text_.size())) return {};
  return invalid_argument(fmt::format("the tokenizer's regular expression '{}' takes too long on this text",
                                      regex_.pattern_.substr(0, 100)));
}

Result<Regex::Match> Regex::Search::next() {
  thread_local Workspace workspace;
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text_.data());
  const auto next_char = [this](size_t at) {
    do ++at;
    while (at < text_.size() && (static_cast<uint8_t>(text_[at]) & 0xC0) == 0x80);
    return at;
  };
  while (from_ <= text_.size()) {
    if (++calls_ % kCallsBetweenLooks == 0) WARMPATH_RETURN_IF_ERROR(check_time());
    size_t limit = from_ + kPlacesPerCall;
    pcre2_set_offset_limit(workspace.context, limit);
    const int result = pcre2_match(regex_.code_->code, subject, text_.size(), from_, PCRE2_NO_UTF_CHECK,
                                   workspace.match, workspace.context);
    if (result == PCRE2_ERROR_NOMATCH) {
      if (limit >= text_.size()) break;
      while ((static_cast<uint8_t>(text_[limit]) & 0xC0) == 0x80) --limit;
      from_ = limit;
      WARMPATH_RETURN_IF_ERROR(check_time());
      continue;
    }
    if (result < 0) {
      return invalid_argument(fmt::format("the tokenizer's regular expression '{}' gives up on this text: {}",
                                          regex_.pattern_.substr(0, 100), message_of(result)));
    }
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(workspace.match);
    const Match match{ends[0], ends[1], true};
    if (match.begin > match.end) return invalid_argument("the tokenizer's regular expression moves a match's start");
    if (match.begin == match.end && match.end == last_end_) {
      from_ = next_char(match.end);
      continue;
    }
    from_ = last_end_ = match.end;
    return match;
  }
  from_ = text_.size() + 1;
  return Match{};
}

}  // namespace warmpath
