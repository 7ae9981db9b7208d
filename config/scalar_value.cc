#include "config/scalar_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "config/nearest_word.h"

namespace warmpath {

namespace {

struct SizeUnit {
  std::string_view suffix;
  uint64_t bytes;
};
// Binary units first: print_integer takes the largest that divides.
constexpr std::array<SizeUnit, 9> kSizeUnits{{{"TiB", uint64_t{1} << 40},
                                              {"GiB", uint64_t{1} << 30},
                                              {"MiB", uint64_t{1} << 20},
                                              {"KiB", uint64_t{1} << 10},
                                              {"TB", 1'000'000'000'000},
                                              {"GB", 1'000'000'000},
                                              {"MB", 1'000'000},
                                              {"kB", 1'000},
                                              {"B", 1}}};

std::string of_unit(const FieldOptions& options) { return options.unit.empty() ? "" : " of " + options.unit; }

// Reads a whole scalar by from_chars; false unless every byte is used.
template <typename N>
std::errc scan(std::string_view text, N& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc()) return code;
  return end == text.data() + text.size() ? std::errc() : std::errc::invalid_argument;
}

bool expect_plain_scalar(const YamlNode& node, const std::string& wanted, ParseContext& context) {
  if (!node.is_scalar()) {
    context.error(node.mark, "must be " + wanted + ", not " + describe_yaml(node));
    return false;
  }
  if (node.quoted) {
    context.error(node.mark, "must be " + wanted + "; leave out the quotes around " + describe_yaml(node));
    return false;
  }
  return true;
}

std::string article(const std::string& type) { return (type.find_first_of("aeiou") == 0 ? "an " : "a ") + type; }

void report_not_a_number(const YamlNode& node, const std::string& wanted, const FieldOptions& options,
                         ParseContext& context) {
  std::string message = "must be " + wanted + ", not " + describe_yaml(node);
  // "30s" where seconds are wanted is the usual slip: the unit is in the key's name.
  const size_t digits = node.text.find_first_not_of("0123456789.");
  if (digits != std::string::npos && digits > 0 && !options.unit.empty() && options.unit != "bytes") {
    message += "; the unit is always " + options.unit + ", so write a plain number";
  }
  context.error(node.mark, std::move(message));
}

std::string range_text(const FieldOptions& options, const std::string& lowest, const std::string& highest) {
  if (options.max) return "must be between " + lowest + " and " + highest;
  return "must be at least " + lowest;
}

// "64MiB", "1.5GiB", "1000": a number of bytes; false when it is none or does not fit.
bool scan_size(std::string_view text, uint64_t& bytes) {
  if (scan(text, bytes) == std::errc()) return true;
  for (const SizeUnit& unit : kSizeUnits) {
    if (!text.ends_with(unit.suffix)) continue;
    std::string_view digits = text.substr(0, text.size() - unit.suffix.size());
    while (digits.ends_with(' ')) digits.remove_suffix(1);
    uint64_t whole = 0;
    if (scan(digits, whole) == std::errc()) return !__builtin_mul_overflow(whole, unit.bytes, &bytes);
    double number = 0;
    if (digits.empty() || digits.find_first_not_of("0123456789.") != std::string_view::npos) return false;
    if (scan(digits, number) != std::errc()) return false;
    number *= static_cast<double>(unit.bytes);
    if (!(number < 9e18)) return false;
    bytes = static_cast<uint64_t>(std::llround(number));
    return true;
  }
  return false;
}

}  // namespace

bool read_bool(const YamlNode& node, ParseContext& context, bool& value) {
  if (!expect_plain_scalar(node, "true or false", context)) return false;
  if (node.text == "true" || node.text == "True" || node.text == "TRUE") {
    value = true;
  } else if (node.text == "false" || node.text == "False" || node.text == "FALSE") {
    value = false;
  } else {
    context.error(node.mark, "must be true or false, not " + describe_yaml(node));
    return false;
  }
  return true;
}

bool read_number(const YamlNode& node, const FieldOptions& options, ParseContext& context, double& value) {
  const std::string wanted = article(number_type_name(options));
  if (!expect_plain_scalar(node, wanted, context)) return false;
  if (scan(node.text, value) != std::errc() || !std::isfinite(value)) {
    report_not_a_number(node, wanted, options, context);
    return false;
  }
  if ((options.min && value < *options.min) || (options.max && value > *options.max)) {
    if (!options.min) {
      context.error(node.mark, "must be at most " + print_number(*options.max) + ", not " + node.text);
    } else {
      context.error(node.mark, range_text(options, print_number(*options.min), print_number(options.max.value_or(0))) +
                                   ", not " + node.text);
    }
    return false;
  }
  return true;
}

bool read_integer(const YamlNode& node, const FieldOptions& options, int64_t lowest, uint64_t highest,
                  ParseContext& context, int64_t& negative, uint64_t& positive) {
  const std::string wanted = article(integer_type_name(options));
  if (!expect_plain_scalar(node, wanted, context)) return false;
  // Limits that both the C++ type and the field's owner accept.
  double min = static_cast<double>(lowest);
  double max = static_cast<double>(highest);
  if (options.min) min = std::max(min, *options.min);
  if (options.max) max = std::min(max, *options.max);

  negative = 0;
  positive = 0;
  std::errc code;
  if (options.unit == "bytes") {
    code = scan_size(node.text, positive) ? std::errc() : std::errc::invalid_argument;
  } else if (node.text.starts_with('-')) {
    code = scan(node.text, negative);
  } else {
    code = scan(node.text, positive);
  }
  if (code == std::errc::invalid_argument) {
    report_not_a_number(node, wanted, options, context);
    return false;
  }
  const bool fits = code == std::errc() && negative >= lowest && positive <= highest;
  const double value = negative < 0 ? static_cast<double>(negative) : static_cast<double>(positive);
  if (!fits || value < min || value > max) {
    FieldOptions shown = options;
    if (!shown.max && !fits) shown.max = max;
    const auto print = [&](double bound) {
      if (bound < 0) return print_integer(static_cast<int64_t>(bound), 0, options.unit);
      return bound >= 18e18 ? std::to_string(highest) : print_integer(0, static_cast<uint64_t>(bound), options.unit);
    };
    context.error(node.mark, range_text(shown, print(min), print(max)) + ", not " + describe_yaml(node));
    return false;
  }
  return true;
}

bool read_text(const YamlNode& node, const FieldOptions& options, ParseContext& context, std::string& value) {
  if (!node.is_scalar()) {
    context.error(node.mark, "must be " + text_type_name(options) + ", not " + describe_yaml(node));
    return false;
  }
  if (!options.words.empty() &&
      std::find(options.words.begin(), options.words.end(), node.text) == options.words.end()) {
    context.error(node.mark, describe_yaml(node) + " is not known" + suggest_word(node.text, options.words));
    return false;
  }
  if (options.secret && node.text.starts_with("${") && node.text.ends_with('}')) {
    const std::string name = node.text.substr(2, node.text.size() - 3);
    const std::optional<std::string> found = context.environment() ? context.environment()(name) : std::nullopt;
    if (!found) {
      context.error(node.mark, "the environment variable " + name + " is not set");
      return false;
    }
    value = *found;
    return true;
  }
  value = node.text;
  return true;
}

std::string print_number(double value) {
  std::array<char, 32> digits;
  const auto [end, code] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return code == std::errc() ? std::string(digits.data(), end) : "?";
}

std::string print_integer(int64_t negative, uint64_t positive, const std::string& unit) {
  if (negative < 0) return std::to_string(negative);
  if (unit == "bytes" && positive > 0) {
    for (const SizeUnit& size : kSizeUnits) {
      if (!size.suffix.ends_with("iB") || positive % size.bytes != 0) continue;
      return std::to_string(positive / size.bytes) + std::string(size.suffix);
    }
  }
  return std::to_string(positive);
}

std::string integer_type_name(const FieldOptions& options) {
  if (options.unit == "bytes") return "size in bytes (as 64MiB)";
  return "integer" + of_unit(options);
}

std::string number_type_name(const FieldOptions& options) { return "number" + of_unit(options); }

std::string text_type_name(const FieldOptions& options) {
  if (options.words.empty()) return options.secret ? "text or ${ENVIRONMENT_VARIABLE}" : "text";
  std::string type = "one of ";
  for (size_t n = 0; n < options.words.size(); ++n) type += (n > 0 ? ", " : "") + options.words[n];
  return type;
}

}  // namespace warmpath
