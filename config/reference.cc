#include "config/reference.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

#include "config/scalar_value.h"

namespace warmpath {

namespace {

// Table cells may not hold a bar or a line break.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

std::string default_text(const FieldSpec& field, const void* defaults) {
  if (!field.options.default_note.empty()) return cell(field.options.default_note);
  if (field.options.required) return "*required*";
  if (field.child || defaults == nullptr) return "";
  ConfigLeaves leaves;
  field.flatten(defaults, field.key, leaves);
  if (leaves.size() != 1 || leaves[0].value.empty()) return "";
  return "`" + cell(leaves[0].value) + "`";
}

std::string range_text(const FieldOptions& options) {
  const auto bound = [&](double value) {
    return options.unit == "bytes" && value >= 0 ? print_integer(0, static_cast<uint64_t>(value), options.unit)
                                                 : print_number(value);
  };
  if (options.min && options.max) return ", " + bound(*options.min) + " to " + bound(*options.max);
  if (options.min) return ", at least " + bound(*options.min);
  if (options.max) return ", at most " + bound(*options.max);
  return "";
}

class ReferenceWriter {
 public:
  std::string take() { return std::move(text_); }

  void write_struct(const StructSpec& spec, const std::string& path, const void* defaults) {
    if (!path.empty()) text_ += "\n## `" + path + "`\n";
    // A mapping that may stand in several places is described where it stands first.
    const auto [known, first] = described_.emplace(&spec, path);
    if (!first) {
      text_ += "\nAs [`" + known->second + "`](#" + anchor(known->second) + ").\n";
      return;
    }
    if (!spec.doc.empty()) text_ += "\n" + spec.doc + "\n";
    if (!spec.shorthand.empty()) {
      text_ += "\nA plain word in place of the mapping sets `" + spec.shorthand + "`.\n";
    }
    write_table(spec, defaults);
    for (const VariantSpec& variant : spec.variants) {
      text_ += "\n### `" + path + "." + spec.tag + ": " + variant.word + "`\n\n" + variant.doc + "\n";
      if (variant.fields) write_table(*variant.fields, defaults == nullptr ? nullptr : variant.peek(defaults));
    }
    write_children(spec, path);
    for (const VariantSpec& variant : spec.variants) {
      if (variant.fields) write_children(*variant.fields, path);
    }
  }

 private:
  void write_children(const StructSpec& spec, const std::string& path) {
    for (const FieldSpec& field : spec.fields) {
      if (!field.child) continue;
      write_struct(*field.child, (path.empty() ? "" : path + ".") + field.key + field.child_suffix,
                   field.child_defaults.get());
    }
  }

  // As GitHub makes one of a heading.
  static std::string anchor(const std::string& heading) {
    std::string text;
    for (const char c : heading) {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-') {
        text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      }
    }
    return text;
  }

  void write_table(const StructSpec& spec, const void* defaults) {
    if (spec.fields.empty()) return;
    text_ += "\n| key | value | default | meaning |\n|---|---|---|---|\n";
    for (const FieldSpec& field : spec.fields) {
      text_ += "| `" + field.key + "` | " + cell(field.type) + range_text(field.options) + " | " +
               default_text(field, defaults) + " | " + cell(field.options.doc) + " |\n";
    }
  }

  std::string text_;
  std::map<const StructSpec*, std::string> described_;  // where
};

}  // namespace

std::string config_reference_markdown(const StructSpec& spec, const void* defaults) {
  ReferenceWriter writer;
  writer.write_struct(spec, "", defaults);
  return writer.take();
}

}  // namespace warmpath
