#include "text/pre_tokenizer.h"

#include <algorithm>

#include "text/unicode.h"

namespace warmpath {
namespace {

// A stretch of the text that is a delimiter, or what stands between two.
struct Stretch {
  size_t begin;
  size_t end;
  bool delimiter;
};

bool is_delimiter(PreTokenizer::Kind kind, uint32_t code) {
  if (code == kInvalidCodePoint) return false;
  const CodePointProperties properties = properties_of(code);
  switch (kind) {
    case PreTokenizer::Kind::kNumeral:
      return properties.is_numeral_of_digits();
    case PreTokenizer::Kind::kWhiteSpace:
      return properties.is_white_space();
    default:
      return properties.is_punctuation() || (code < 0x80 && properties.is_symbol());
  }
}

// Collects stretches from delimiters that come first to last.
class Collector {
 public:
  Collector(std::string_view text, std::vector<Stretch>& out) : text_(text), out_(out) { out_.clear(); }
  void delimiter(size_t begin, size_t end) {
    if (begin > done_) out_.push_back({done_, begin, false});
    out_.push_back({begin, end, true});
    done_ = end;
  }
  void finish() {
    if (done_ < text_.size()) out_.push_back({done_, text_.size(), false});
  }

 private:
  std::string_view text_;
  std::vector<Stretch>& out_;
  size_t done_ = 0;
};

Status find_stretches(const PreTokenizer::Step& step, std::string_view text, std::vector<Stretch>& out) {
  Collector collector(text, out);
  const auto* begin = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* end = begin + text.size();
  switch (step.kind) {
    case PreTokenizer::Kind::kScanner: {
      ScanMemory memory;
      for (const uint8_t* at = begin; at < end;) {
        const uint8_t* stop = step.scanner(at, end, memory);
        collector.delimiter(static_cast<size_t>(at - begin), static_cast<size_t>(stop - begin));
        at = stop;
      }
      break;
    }
    case PreTokenizer::Kind::kRegex:
      // A byte that is no character is a piece of its own, and no expression sees it.
      for (size_t from = 0; from < text.size();) {
        const size_t valid = valid_utf8_size(text.substr(from));
        Regex::Search search(*step.regex, text.substr(from, valid));
        for (;;) {
          const auto match = search.next();
          if (!match.ok()) return match.status();
          if (!match->found) break;
          collector.delimiter(from + match->begin, from + match->end);
        }
        from += valid;
        if (from < text.size()) collector.delimiter(from, from + 1);
        ++from;
      }
      break;
    case PreTokenizer::Kind::kLiteral:
      for (size_t from = 0, at; (at = text.find(step.text, from)) != std::string_view::npos;
           from = at + step.text.size()) {
        collector.delimiter(at, at + step.text.size());
      }
      break;
    default:
      for (const uint8_t* at = begin; at < end;) {
        const DecodedChar here = decode_utf8(at, end);
        const auto offset = static_cast<size_t>(at - begin);
        if (is_delimiter(step.kind, here.code_point)) collector.delimiter(offset, offset + here.size);
        at += here.size;
      }
  }
  collector.finish();
  return {};
}

// Stretches to pieces, as tokenizers' SplitDelimiterBehavior says.
void join_stretches(std::vector<Stretch>& stretches, SplitBehavior behavior, bool invert) {
  if (invert) {
    for (Stretch& stretch : stretches) stretch.delimiter = !stretch.delimiter;
  }
  std::vector<Stretch> joined;
  switch (behavior) {
    case SplitBehavior::kIsolated:
      return;
    case SplitBehavior::kRemoved:
      std::erase_if(stretches, [](const Stretch& stretch) { return stretch.delimiter; });
      return;
    case SplitBehavior::kContiguous:
      for (const Stretch& stretch : stretches) {
        if (!joined.empty() && joined.back().delimiter == stretch.delimiter) {
          joined.back().end = stretch.end;
        } else {
          joined.push_back(stretch);
        }
      }
      break;
    case SplitBehavior::kMergedWithPrevious: {
      bool after_delimiter = false;
      for (const Stretch& stretch : stretches) {
        if (stretch.delimiter && !after_delimiter && !joined.empty()) {
          joined.back().end = stretch.end;
        } else {
          joined.push_back(stretch);
        }
        after_delimiter = stretch.delimiter;
      }
      break;
    }
    case SplitBehavior::kMergedWithNext: {
      bool before_delimiter = false;
      for (auto stretch = stretches.rbegin(); stretch != stretches.rend(); ++stretch) {
        if (stretch->delimiter && !before_delimiter && !joined.empty()) {
          joined.back().begin = stretch->begin;
        } else {
          joined.push_back(*stretch);
        }
        before_delimiter = stretch->delimiter;
      }
      std::reverse(joined.begin(), joined.end());
      break;
    }
  }
  stretches = std::move(joined);
}

std::string with_metaspaces(std::string_view piece, const PreTokenizer::Step& step, bool first) {
  std::string text;
  text.reserve(piece.size() + 16);
  for (const char byte : piece) {
    if (byte == ' ') {
      text += step.text;
    } else {
      text += byte;
    }
  }
  const bool wanted =
      step.prefix == PreTokenizer::Prefix::kAlways || (step.prefix == PreTokenizer::Prefix::kFirst && first);
  if (wanted && !text.starts_with(step.text)) text.insert(0, step.text);
  return text;
}

}  // namespace

Status PreTokenizer::split(std::string_view text, TextBegins begins, Pieces& pieces) const {
  pieces.views.clear();
  pieces.owned.clear();
  if (!text.empty()) pieces.views.push_back(text);
  bool whole_front = begins == TextBegins::kPrompt;  // the first piece begins where the prompt does
  std::vector<Stretch> stretches;
  for (const Step& step : steps_) {
    pieces.next.clear();
    for (size_t index = 0; index < pieces.views.size(); ++index) {
      std::string_view piece = pieces.views[index];
      const bool first = index == 0 && whole_front;
      const Step* cutting = &step;
      Step each_space;
      if (step.kind == Kind::kPrefix || step.kind == Kind::kMetaspace) {
        if (step.kind == Kind::kMetaspace) {
          piece = pieces.owned.emplace_back(with_metaspaces(piece, step, first));
        } else if (!piece.starts_with(step.text) && begins != TextBegins::kInside) {
          piece = pieces.owned.emplace_back(step.text + std::string(piece));
        }
        if (step.kind == Kind::kPrefix || !step.split) {
          pieces.next.push_back(piece);
          continue;
        }
        each_space = {.kind = Kind::kLiteral, .behavior = SplitBehavior::kMergedWithNext, .text = step.text};
        cutting = &each_space;
      }
      WARMPATH_RETURN_IF_ERROR(find_stretches(*cutting, piece, stretches));
      join_stretches(stretches, cutting->behavior, cutting->invert);
      if (index == 0 && (stretches.empty() || stretches[0].begin > 0)) whole_front = false;
      for (const Stretch& stretch : stretches) {
        if (stretch.end > stretch.begin)
          pieces.next.push_back(piece.substr(stretch.begin, stretch.end - stretch.begin));
      }
    }
    pieces.views.swap(pieces.next);
  }
  return {};
}

}  // namespace warmpath
