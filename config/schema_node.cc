#include "config/schema_node.h"

#include <algorithm>
#include <charconv>

#include "config/nearest_word.h"

namespace warmpath {

namespace {

// A key longer than this is shown cut.
constexpr size_t kMaxShownKey = 60;

std::string shown_key(const std::string& key) {
  return key.size() > kMaxShownKey ? key.substr(0, kMaxShownKey) + "..." : key;
}

std::string join_path(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

// The variant that `node` names, or the default that `object` holds. Null when there is none by that word (the tag's
// own parse reports it) or the struct has no variants.
const VariantSpec* pick_variant(const StructSpec& spec, const YamlNode& node, const void* object) {
  if (spec.tag.empty()) return nullptr;
  const YamlNode* tag = node.find(spec.tag);
  if (tag == nullptr) return spec.find_variant(spec.tag_of(object));
  return tag->is_scalar() ? spec.find_variant(tag->text) : nullptr;
}

// Returns the known key that was probably meant; "" when none is near.
std::string report_unknown_key(const StructSpec& spec, const VariantSpec* variant, const YamlKey& key,
                               ParseContext& context) {
  std::vector<std::string> known;
  for (const FieldSpec& field : spec.fields) known.push_back(field.key);
  if (variant != nullptr && variant->fields) {
    for (const FieldSpec& field : variant->fields->fields) known.push_back(field.key);
  }
  for (const VariantSpec& other : spec.variants) {
    if (other.fields && other.fields->find(key.text) != nullptr) {
      context.error_at(shown_key(key.text), key.mark,
                       "belongs to " + spec.tag + ": " + other.word + ", not to " +
                           (variant != nullptr ? variant->word : "what is named here"));
      return "";
    }
  }
  context.error_at(shown_key(key.text), key.mark, "unknown key" + suggest_word(key.text, known));
  const std::string* meant = nearest_word(key.text, known);
  return meant != nullptr ? *meant : "";
}

void parse_field(const FieldSpec& field, const YamlNode& value, ParseContext& context, void* object) {
  const ParseContext::Scope scope(context, field.key);
  field.parse(value, context, object);
}

// Fields in `misspelt` were reported already.
void report_missing(const StructSpec& spec, const YamlNode& node, const std::vector<std::string>& misspelt,
                    ParseContext& context) {
  for (const FieldSpec& field : spec.fields) {
    const bool known = std::find(misspelt.begin(), misspelt.end(), field.key) != misspelt.end();
    if (field.options.required && !known && node.find(field.key) == nullptr) {
      context.error_at(field.key, node.mark, "is required but missing (" + field.type + ")");
    }
  }
}

}  // namespace

void ParseContext::error(YamlMark mark, std::string message) {
  if (errors_.size() > kMaxErrors) return;
  if (errors_.size() == kMaxErrors) message = "and more errors, not shown";
  errors_.push_back({mark.line, mark.column, path_, std::move(message)});
}

void ParseContext::error_at(std::string_view key, YamlMark mark, std::string message) {
  if (key.empty()) {
    error(mark, std::move(message));
    return;
  }
  const Scope scope(*this, key);
  error(mark, std::move(message));
}

ParseContext::Scope::Scope(ParseContext& context, std::string_view key)
    : context_(context), size_before_(context.path_.size()) {
  if (!context_.path_.empty()) context_.path_ += '.';
  context_.path_ += key;
}

ParseContext::Scope::Scope(ParseContext& context, size_t item) : context_(context), size_before_(context.path_.size()) {
  context_.path_ += '[' + std::to_string(item) + ']';
}

void CheckContext::error(std::string_view key, std::string message) {
  const YamlKey* written = node_.find_key(key);
  context_.error_at(key, written != nullptr ? written->mark : node_.mark, std::move(message));
}

namespace {

// Takes the first step off a path: "models[1].name" → "models", then "1" (an item), then "name".
std::string_view take_step(std::string_view& path, bool& is_item) {
  is_item = path.starts_with('[');
  if (is_item || path.starts_with('.')) path.remove_prefix(1);
  const size_t end = std::min(path.find_first_of(is_item ? "]" : ".["), path.size());
  const std::string_view step = path.substr(0, end);
  path.remove_prefix(std::min(end + (is_item ? 1 : 0), path.size()));
  return step;
}

bool is_inside(std::string_view path, std::string_view outer) {
  return path.starts_with(outer) &&
         (path.size() == outer.size() || path[outer.size()] == '.' || path[outer.size()] == '[');
}

}  // namespace

void CheckContext::error_at(std::string_view path, std::string message) {
  const YamlNode* node = &node_;
  for (std::string_view rest = path; !rest.empty();) {
    bool is_item = false;
    const std::string_view step = take_step(rest, is_item);
    const YamlNode* next = nullptr;
    if (!is_item) {
      next = node->find(step);
    } else if (size_t item = 0; node->is_sequence()) {
      std::from_chars(step.data(), step.data() + step.size(), item);
      if (item < node->values.size()) next = &node->values[item];
    }
    if (next == nullptr) break;
    node = next;
  }
  context_.error_at(path, node->mark, std::move(message));
}

bool CheckContext::is_clean(std::string_view path) const {
  const std::string here = join_path(context_.path(), path);
  return std::none_of(context_.errors().begin(), context_.errors().end(), [&](const ConfigError& error) {
    return is_inside(error.path, here) || (error.path != context_.path() && is_inside(here, error.path));
  });
}

const FieldSpec* StructSpec::find(std::string_view key) const {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const FieldSpec& f) { return f.key == key; });
  return found == fields.end() ? nullptr : &*found;
}

const VariantSpec* StructSpec::find_variant(std::string_view word) const {
  const auto found =
      std::find_if(variants.begin(), variants.end(), [&](const VariantSpec& v) { return v.word == word; });
  return found == variants.end() ? nullptr : &*found;
}

std::vector<std::string> StructSpec::variant_words() const {
  std::vector<std::string> words;
  for (const VariantSpec& variant : variants) words.push_back(variant.word);
  return words;
}

void parse_struct(const StructSpec& spec, const YamlNode& node, ParseContext& context, void* object) {
  const size_t errors_before = context.error_count();
  if (node.is_scalar() && !spec.shorthand.empty()) {
    YamlNode expanded;
    expanded.kind = YamlNode::Kind::kMap;
    expanded.mark = node.mark;
    expanded.keys.push_back({spec.shorthand, node.mark});
    expanded.values.push_back(node);
    parse_struct(spec, expanded, context, object);
    return;
  }
  if (!node.is_map() && !node.is_null()) {
    context.error(node.mark, "must be a mapping of keys, not " + describe_yaml(node));
    return;
  }
  const VariantSpec* variant = pick_variant(spec, node, object);
  std::vector<std::string> misspelt;
  for (size_t n = 0; n < node.keys.size() && !context.full(); ++n) {
    const YamlKey& key = node.keys[n];
    if (const FieldSpec* field = spec.find(key.text)) {
      parse_field(*field, node.values[n], context, object);
    } else if (const FieldSpec* own =
                   variant != nullptr && variant->fields ? variant->fields->find(key.text) : nullptr) {
      parse_field(*own, node.values[n], context, variant->open(object));
    } else {
      misspelt.push_back(report_unknown_key(spec, variant, key, context));
    }
  }
  report_missing(spec, node, misspelt, context);
  if (variant != nullptr && variant->fields) report_missing(*variant->fields, node, misspelt, context);
  CheckContext check_context(context, node);
  for (const auto& check : spec.always_checks) check(object, check_context);
  if (context.error_count() != errors_before) return;  // a check would only repeat what is already said
  for (const auto& check : spec.checks) check(object, check_context);
  if (variant != nullptr && variant->fields) {
    for (const auto& check : variant->fields->checks) check(variant->peek(object), check_context);
  }
}

void flatten_struct(const StructSpec& spec, const void* object, const std::string& path, ConfigLeaves& leaves) {
  for (const FieldSpec& field : spec.fields) field.flatten(object, join_path(path, field.key), leaves);
  if (spec.tag.empty()) return;
  const VariantSpec* variant = spec.find_variant(spec.tag_of(object));
  if (variant == nullptr || !variant->fields) return;
  for (const FieldSpec& field : variant->fields->fields) {
    field.flatten(variant->peek(object), join_path(path, field.key), leaves);
  }
}

}  // namespace warmpath
