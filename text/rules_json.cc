#include "text/rules_json.h"

#include <utility>
#include <vector>

#include "text/tokenizer_family.h"
#include "text/unicode.h"

namespace warmpath {
namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581
constexpr int kMaxSteps = 64;

Status not_supported(const JsonNode& node, std::string_view type) {
  const auto place = node.find("type");
  return unimplemented((place ? *place : node).refuse(fmt::format("is '{}', which is not supported", type)).message());
}

// {"String": s} or {"Regex": s}.
struct Pattern {
  std::string text;
  bool is_regex = false;
};
Result<Pattern> read_pattern(const JsonNode& node) {
  const auto pattern = node.require("pattern");
  if (!pattern.ok()) return pattern.status();
  const bool is_regex = pattern->find("Regex").has_value();
  const auto text = is_regex ? pattern->text_of("Regex") : pattern->text_of("String");
  if (!text.ok()) return text.status();
  return Pattern{std::string(*text), is_regex};
}

Result<std::shared_ptr<const Regex>> compile_at(const JsonNode& node, std::string_view pattern) {
  auto regex = Regex::compile(pattern);
  if (!regex.ok()) return node.refuse(fmt::format("holds a pattern that cannot be used: {}", regex.status().message()));
  return regex;
}

// ----- normalizer

Status read_normalizer(const JsonNode& node, std::vector<Normalizer::Step>& steps) {
  using Kind = Normalizer::Kind;
  const auto type = node.text_of("type");
  if (!type.ok()) return type.status();
  if (steps.size() >= kMaxSteps) return node.refuse(fmt::format("is one of more than {} steps", kMaxSteps));
  if (*type == "Sequence") {
    const auto list = node.require("normalizers");
    if (!list.ok()) return list.status();
    return list->each_item([&steps](const JsonNode& item) { return read_normalizer(item, steps); });
  }
  static constexpr std::pair<std::string_view, Kind> kPlain[] = {{"NFC", Kind::kNfc},
                                                                 {"NFD", Kind::kNfd},
                                                                 {"NFKC", Kind::kNfkc},
                                                                 {"NFKD", Kind::kNfkd},
                                                                 {"Lowercase", Kind::kLowercase},
                                                                 {"StripAccents", Kind::kStripAccents}};
  for (const auto& [name, kind] : kPlain) {
    if (name != *type) continue;
    steps.push_back({.kind = kind});
    return {};
  }
  if (*type == "Strip") {
    const auto left = node.flag_or("strip_left", true);
    if (!left.ok()) return left.status();
    const auto right = node.flag_or("strip_right", true);
    if (!right.ok()) return right.status();
    steps.push_back({.kind = Kind::kStrip, .left = *left, .right = *right});
    return {};
  }
  if (*type == "Prepend") {
    const auto text = node.text_of("prepend");
    if (!text.ok()) return text.status();
    steps.push_back({.kind = Kind::kPrepend, .text = std::string(*text)});
    return {};
  }
  if (*type == "Replace") {
    auto pattern = read_pattern(node);
    if (!pattern.ok()) return pattern.status();
    const auto content = node.text_of("content");
    if (!content.ok()) return content.status();
    Normalizer::Step step{.kind = Kind::kReplace, .text = std::string(*content)};
    if (pattern->is_regex) {
      auto regex = compile_at(node, pattern->text);
      if (!regex.ok()) return regex.status();
      step.regex = *std::move(regex);
    } else {
      step.from = std::move(pattern->text);
    }
    steps.push_back(std::move(step));
    return {};
  }
  return not_supported(node, *type);
}

// ----- pre-tokenizer

// One step, and the regular expression that it is when it isolates matches; what families are recognized by.
struct ReadStep {
  PreTokenizer::Step step;
  std::string isolates;  // empty: no such step
};

Result<SplitBehavior> read_behavior(const JsonNode& node) {
  const auto name = node.text_or("behavior", "Isolated");
  if (!name.ok()) return name.status();
  if (*name == "Removed") return SplitBehavior::kRemoved;
  if (*name == "Isolated") return SplitBehavior::kIsolated;
  if (*name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (*name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (*name == "Contiguous") return SplitBehavior::kContiguous;
  return node.find("behavior")->must_be("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class PreTokenizerReader {
 public:
  Status read(const JsonNode& node) {
    using Kind = PreTokenizer::Kind;
    const auto type = node.text_of("type");
    if (!type.ok()) return type.status();
    if (steps_.size() >= kMaxSteps) return node.refuse(fmt::format("is one of more than {} steps", kMaxSteps));
    if (*type == "Sequence") {
      const auto list = node.require("pretokenizers");
      return list.ok() ? list->each_item([this](const JsonNode& item) { return read(item); }) : list.status();
    }
    if (byte_level_)
      return unimplemented(node.refuse("stands behind a ByteLevel step, which must be the last").message());
    if (*type == "Split") return read_split(node);
    if (*type == "ByteLevel") return read_byte_level(node);
    if (*type == "Metaspace") return read_metaspace(node);
    if (*type == "Digits") {
      const auto each = node.flag_or("individual_digits", false);
      if (!each.ok()) return each.status();
      add({.kind = Kind::kNumeral, .behavior = *each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous},
          *each ? R"(\p{N})" : "");
      return {};
    }
    if (*type == "WhitespaceSplit") {
      add({.kind = Kind::kWhiteSpace, .behavior = SplitBehavior::kRemoved});
      return {};
    }
    if (*type == "Whitespace") {
      // \w as Rust's regex crate has it.
      auto regex = compile_at(
          node,
          R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}\s]+)");
      if (!regex.ok()) return regex.status();
      add({.kind = Kind::kRegex, .behavior = SplitBehavior::kRemoved, .invert = true, .regex = *std::move(regex)});
      return {};
    }
    if (*type == "Punctuation") {
      const auto behavior = read_behavior(node);
      if (!behavior.ok()) return behavior.status();
      add({.kind = Kind::kPunctuation, .behavior = *behavior});
      return {};
    }
    if (*type == "BertPreTokenizer") {
      add({.kind = Kind::kWhiteSpace, .behavior = SplitBehavior::kRemoved});
      add({.kind = Kind::kPunctuation});
      return {};
    }
    if (*type == "CharDelimiterSplit") {
      const auto delimiter = node.text_of("delimiter");
      if (!delimiter.ok()) return delimiter.status();
      if (utf8_length(*delimiter) != 1) return node.find("delimiter")->must_be("one character");
      add({.kind = Kind::kLiteral, .behavior = SplitBehavior::kRemoved, .text = std::string(*delimiter)});
      return {};
    }
    return not_supported(node, *type);
  }

  bool byte_level() const { return byte_level_; }
  std::vector<ReadStep>& steps() { return steps_; }

  // The steps, with a family's scanner in place of those that it equals.
  Result<PreTokenizer> build(const JsonNode& node) {
    std::vector<std::string_view> patterns;
    for (const ReadStep& read : steps_) patterns.push_back(read.isolates);
    if (const NextPiece scanner = find_scanner(patterns); scanner != nullptr && !patterns.empty()) {
      return PreTokenizer({{.kind = PreTokenizer::Kind::kScanner, .scanner = scanner}});
    }
    std::vector<PreTokenizer::Step> steps;
    for (ReadStep& read : steps_) {
      if (read.step.kind == PreTokenizer::Kind::kRegex && read.step.regex == nullptr) {
        const std::string_view alone[] = {read.isolates};
        if (const NextPiece scanner = find_scanner(alone); scanner != nullptr) {
          read.step = {.kind = PreTokenizer::Kind::kScanner, .scanner = scanner};
        } else {
          auto regex = compile_at(node, read.isolates);
          if (!regex.ok()) return regex.status();
          read.step.regex = *std::move(regex);
        }
      }
      steps.push_back(std::move(read.step));
    }
    return PreTokenizer(std::move(steps));
  }

 private:
  void add(PreTokenizer::Step step, std::string isolates = {}) {
    steps_.push_back({std::move(step), std::move(isolates)});
  }

  Status read_split(const JsonNode& node) {
    auto pattern = read_pattern(node);
    if (!pattern.ok()) return pattern.status();
    const auto behavior = read_behavior(node);
    if (!behavior.ok()) return behavior.status();
    const auto invert = node.flag_or("invert", false);
    if (!invert.ok()) return invert.status();
    PreTokenizer::Step step{.kind = PreTokenizer::Kind::kRegex, .behavior = *behavior, .invert = *invert};
    if (!pattern->is_regex) {
      step.kind = PreTokenizer::Kind::kLiteral;
      step.text = std::move(pattern->text);
      if (step.text.empty()) return node.refuse("splits at an empty string");
      add(std::move(step));
      return {};
    }
    if (*behavior == SplitBehavior::kIsolated) {  // inverted or not: all stretches become pieces
      const auto checked = compile_at(node, pattern->text);
      if (!checked.ok()) return checked.status();
      step.regex = nullptr;  // build() decides
      step.invert = false;
      add(std::move(step), std::move(pattern->text));
      return {};
    }
    auto regex = compile_at(node, pattern->text);
    if (!regex.ok()) return regex.status();
    const std::string_view alone[] = {pattern->text};
    const NextPiece scanner = find_scanner(alone);
    // Families whose expression matches everything leave nothing to remove or to merge.
    const bool removes_gaps = *behavior == SplitBehavior::kRemoved && *invert;
    if (scanner != nullptr && removes_gaps) {
      add({.kind = PreTokenizer::Kind::kScanner, .scanner = scanner}, std::move(pattern->text));
      return {};
    }
    step.regex = *std::move(regex);
    add(std::move(step));
    return {};
  }

  Status read_byte_level(const JsonNode& node) {
    byte_level_ = true;
    const auto prefix = node.flag_or("add_prefix_space", true);
    if (!prefix.ok()) return prefix.status();
    const auto use_regex = node.flag_or("use_regex", true);
    if (!use_regex.ok()) return use_regex.status();
    if (*prefix) add({.kind = PreTokenizer::Kind::kPrefix, .text = " "});
    if (*use_regex) add({.kind = PreTokenizer::Kind::kRegex}, std::string(kGpt2));
    return {};
  }

  Status read_metaspace(const JsonNode& node) {
    PreTokenizer::Step step{.kind = PreTokenizer::Kind::kMetaspace};
    const auto text = node.text_or("replacement", kSpaceSymbol);
    if (!text.ok()) return text.status();
    step.text = *text;
    if (utf8_length(*text) != 1) return node.find("replacement")->must_be("one character");
    const auto old = node.flag_or("add_prefix_space", true);
    if (!old.ok()) return old.status();
    const auto scheme = node.text_or("prepend_scheme", *old ? "always" : "never");
    if (!scheme.ok()) return scheme.status();
    if (*scheme == "always") {
      step.prefix = PreTokenizer::Prefix::kAlways;
    } else if (*scheme == "first") {
      step.prefix = PreTokenizer::Prefix::kFirst;
    } else if (*scheme != "never") {
      return node.find("prepend_scheme")->must_be("always, first or never");
    }
    const auto split = node.flag_or("split", true);
    if (!split.ok()) return split.status();
    step.split = *split;
    add(std::move(step));
    return {};
  }

  std::vector<ReadStep> steps_;
  bool byte_level_ = false;
};

// Where all that happens to spaces is that they are spelled U+2581, text need not be copied for it.
void recognize_spaced(TextRules& rules, std::vector<Normalizer::Step>& normalizer, std::vector<ReadStep>& splits) {
  using Prefix = TextRules::SpacePrefix;
  // Behind a normalizer that leaves no space, a split at spaces does nothing.
  const auto replaces_spaces = [&] {
    return !normalizer.empty() && normalizer.back().kind == Normalizer::Kind::kReplace &&
           normalizer.back().regex == nullptr && normalizer.back().from == " " &&
           normalizer.back().text == kSpaceSymbol;
  };
  const bool idle_split =
      splits.size() == 1 && splits[0].step.kind == PreTokenizer::Kind::kLiteral && splits[0].step.text == " ";
  if (replaces_spaces() && (splits.empty() || idle_split)) {
    splits.clear();
    normalizer.pop_back();
    rules.symbols = TextRules::Symbols::kSpaced;
    if (!normalizer.empty() && normalizer.back().kind == Normalizer::Kind::kPrepend &&
        (normalizer.back().text == kSpaceSymbol || normalizer.back().text == " ")) {
      rules.space_prefix = Prefix::kAlways;
      normalizer.pop_back();
    }
    return;
  }
  if (splits.size() != 1 || splits[0].step.kind != PreTokenizer::Kind::kMetaspace ||
      splits[0].step.text != kSpaceSymbol) {
    return;
  }
  rules.symbols = TextRules::Symbols::kSpaced;
  rules.every_space_begins_a_piece = splits[0].step.split;
  if (splits[0].step.prefix == PreTokenizer::Prefix::kAlways) rules.space_prefix = Prefix::kUnlessSpace;
  if (splits[0].step.prefix == PreTokenizer::Prefix::kFirst) rules.space_prefix = Prefix::kPromptUnlessSpace;
  splits.clear();
}

// ----- decoder

Status read_decoder(const JsonNode& node, TextRules& rules) {
  const auto type = node.text_of("type");
  if (!type.ok()) return type.status();
  if (*type == "Sequence") {
    const auto list = node.require("decoders");
    if (!list.ok()) return list.status();
    return list->each_item([&rules](const JsonNode& item) { return read_decoder(item, rules); });
  }
  if (*type == "ByteLevel" || *type == "ByteFallback" || *type == "Fuse") return {};
  if (*type == "Metaspace") {
    rules.spaces_in_tokens = true;
    const auto old = node.flag_or("add_prefix_space", true);
    if (!old.ok()) return old.status();
    const auto scheme = node.text_or("prepend_scheme", *old ? "always" : "never");
    if (!scheme.ok()) return scheme.status();
    rules.strip_start = *scheme == "never" ? 0 : 1;
    return {};
  }
  if (*type == "Replace") {
    const auto pattern = read_pattern(node);
    if (!pattern.ok()) return pattern.status();
    const auto content = node.text_of("content");
    if (!content.ok()) return content.status();
    if (pattern->is_regex || pattern->text != kSpaceSymbol || *content != " ") {
      return unimplemented(node.refuse("replaces something else than U+2581 by a space").message());
    }
    rules.spaces_in_tokens = true;
    return {};
  }
  if (*type == "Strip") {
    const auto content = node.text_of("content");
    if (!content.ok()) return content.status();
    const auto start = node.require("start");
    if (!start.ok()) return start.status();
    const auto count = start->integer(0, 1000);
    if (!count.ok()) return count.status();
    if (*content == " ") rules.strip_start = static_cast<int>(*count);
    return {};
  }
  return not_supported(node, *type);
}

}  // namespace

Status read_rules(const JsonNode& root, TextRules& rules) {
  std::vector<Normalizer::Step> normalizer;
  if (const auto node = root.find("normalizer")) WARMPATH_RETURN_IF_ERROR(read_normalizer(*node, normalizer));
  PreTokenizerReader reader;
  const auto pre_tokenizer = root.find("pre_tokenizer");
  if (pre_tokenizer) WARMPATH_RETURN_IF_ERROR(reader.read(*pre_tokenizer));
  rules.symbols = reader.byte_level() ? TextRules::Symbols::kBytes : TextRules::Symbols::kCharacters;
  if (!reader.byte_level()) recognize_spaced(rules, normalizer, reader.steps());
  rules.normalizer = Normalizer(std::move(normalizer));
  if (pre_tokenizer) {
    auto built = reader.build(*pre_tokenizer);
    if (!built.ok()) return built.status();
    rules.pre_tokenizer = *std::move(built);
  }
  if (const auto node = root.find("decoder")) WARMPATH_RETURN_IF_ERROR(read_decoder(*node, rules));
  for (const std::string_view part : {"normalizer", "pre_tokenizer"}) {
    const auto node = root.find(part);
    rules.identity += fmt::format("{} {}\n", part, node ? simdjson::minify(node->element()) : "null");
  }
  rules.identity += fmt::format("{} {} {}", rules.byte_fallback, rules.fuse_unknown, rules.whole_pieces_first);
  return {};
}

}  // namespace warmpath
