// StructSpec and FieldSpec: the type-erased heart of a schema, shared by parsing, the generated reference and the
// difference of two configurations. Users write StructSchema<T> (config/schema.h) and never touch these.
//
// A spec works on objects through void pointers: every function of a spec that belongs to struct T is handed a T*.
// Thread safety: immutable once built.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_error.h"
#include "config/yaml_tree.h"

namespace warmpath {

// What a field's owner says about it. All members have defaults: name only what differs (in this order).
struct FieldOptions {
  std::string doc = {};            // one or two sentences for the reference
  bool required = false;           // must be present
  bool secret = false;             // text only: masked in differences, and `${NAME}` is read from the environment
  std::optional<double> min = {};  // numbers: smallest and largest value allowed
  std::optional<double> max = {};
  std::string unit = {};                // numbers: "seconds", "tokens", ...; "bytes" also accepts 64MiB and 1.5GiB
  std::vector<std::string> words = {};  // text: the only values allowed
  size_t min_items = 0;                 // lists and maps
  size_t max_items = 100'000;
  std::string item_key = {};      // lists of structs: the field that names an item; no two items may share it
  std::string default_note = {};  // shown in the reference in place of the default value
};

// Looks up an environment variable; nullopt when it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

// One parse under way: the path of keys that leads to the current value, and the errors found so far.
class ParseContext {
 public:
  ParseContext(std::vector<ConfigError>& errors, const EnvironmentLookup& environment)
      : errors_(errors), environment_(environment) {}

  void error(YamlMark mark, std::string message);
  // The same, about `key` inside the current value.
  void error_at(std::string_view key, YamlMark mark, std::string message);
  size_t error_count() const { return errors_.size(); }
  const std::vector<ConfigError>& errors() const { return errors_; }
  const std::string& path() const { return path_; }
  bool full() const { return errors_.size() > kMaxErrors; }
  const EnvironmentLookup& environment() const { return environment_; }

  // Appends to the path for as long as it lives: ".key", or "[3]".
  class Scope {
   public:
    Scope(ParseContext& context, std::string_view key);
    Scope(ParseContext& context, size_t item);
    ~Scope() { context_.path_.resize(size_before_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ParseContext& context_;
    size_t size_before_;
  };

 private:
  static constexpr size_t kMaxErrors = 50;

  std::vector<ConfigError>& errors_;
  const EnvironmentLookup& environment_;
  std::string path_;
};

// Every leaf of a configuration as text, in schema order.
struct ConfigLeaf {
  std::string path;
  std::string value;
  bool secret = false;
};
using ConfigLeaves = std::vector<ConfigLeaf>;

struct StructSpec;

struct FieldSpec {
  std::string key;
  std::string type;  // for the reference: "integer", "list of text", ...
  FieldOptions options;
  std::shared_ptr<const StructSpec> child;     // sections, and lists and maps of structs
  std::string child_suffix;                    // "" section, "[]" list, ".NAME" map
  std::shared_ptr<const void> child_defaults;  // what a child starts from
  std::function<void(const YamlNode&, ParseContext&, void* object)> parse;
  std::function<void(const void* object, const std::string& path, ConfigLeaves&)> flatten;
};

// For checks that concern more than one field: the struct being checked and where it stands in the file.
class CheckContext {
 public:
  CheckContext(ParseContext& context, const YamlNode& node) : context_(context), node_(node) {}
  // An error about `key` (its place in the file, or the struct's where it is absent), or about the whole struct ("").
  void error(std::string_view key, std::string message);
  bool has(std::string_view key) const { return node_.find(key) != nullptr; }

  // The same for what `path` leads to from here ("models[1].aliases[0]"): its place, or that of the innermost thing on
  // the way that is written.
  void error_at(std::string_view path, std::string message);
  // True while nothing was found wrong at `path`, inside it, or around it within this struct.
  bool is_clean(std::string_view path) const;

 private:
  ParseContext& context_;
  const YamlNode& node_;
};

// One word of a variant (StructSchema::variant): the fields that exist only with that word.
struct VariantSpec {
  std::string word;
  std::string doc;
  std::shared_ptr<const StructSpec> fields;  // may be null: a word without fields
  std::function<void*(void* object)> open;   // where those fields live inside the struct
  std::function<const void*(const void* object)> peek;
};

struct StructSpec {
  std::string doc;
  std::vector<FieldSpec> fields;
  std::string shorthand;  // a plain scalar in place of the mapping sets this field
  std::string tag;        // the field whose word picks one of `variants`
  std::vector<VariantSpec> variants;
  std::function<std::string(const void* object)> tag_of;
  using Check = std::function<void(const void* object, CheckContext&)>;
  std::vector<Check> checks;         // once all fields were read without an error
  std::vector<Check> always_checks;  // whatever was found wrong

  const FieldSpec* find(std::string_view key) const;
  const VariantSpec* find_variant(std::string_view word) const;
  std::vector<std::string> variant_words() const;
};

// Fills `object` from `node`; unknown keys, missing required fields and failed checks become errors. Null is an empty
// map.
void parse_struct(const StructSpec& spec, const YamlNode& node, ParseContext& context, void* object);

void flatten_struct(const StructSpec& spec, const void* object, const std::string& path, ConfigLeaves& leaves);

}  // namespace warmpath
