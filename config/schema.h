// StructSchema<T>: how a mapping of the configuration file fills a plain struct. Each floor builds the schema of the
// structs it owns; the floor above composes them, so this room knows no policy, no listener, no model:
//
//   struct Limits { double drain_s = 30; int64_t max_body_bytes = 64 << 20; };
//
//   StructSchema<Limits> limits_schema() {
//     StructSchema<Limits> schema("Bounds that protect the gateway.");
//     schema.field("drain_s", &Limits::drain_s, {.doc = "Time to finish on shutdown.", .min = 0, .unit = "seconds"});
//     schema.field("max_body_bytes", &Limits::max_body_bytes, {.doc = "Largest body.", .min = 1, .unit = "bytes"});
//     return schema;
//   }
//   root.section("limits", &Gateway::limits, limits_schema());
//
// Rules of the format: durations are plain numbers whose key ends in the unit (`drain_s`); sizes are plain numbers or
// carry a unit (`64MiB`); the default of a field is what a default-constructed T holds; keys nobody owns are errors.
// Thread safety: build in one thread; const use from any.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "config/scalar_value.h"
#include "config/schema_node.h"
#include "config/schema_value.h"

namespace warmpath {

// One word of an enum, and what it means in the reference.
template <typename E>
struct ChoiceWord {
  std::string word;
  E value;
};

template <typename T>
class StructSchema {
 public:
  explicit StructSchema(std::string doc = "") : spec_(std::make_shared<StructSpec>()) { spec_->doc = std::move(doc); }

  // A scalar (bool, integer, double, std::string), or a std::optional, std::vector or std::map<std::string, .> of one.
  // Limits and words apply to each item; min_items and max_items to the list.
  template <typename M>
  StructSchema& field(std::string key, M T::*member, FieldOptions options) {
    static_assert(FieldValue<M>::kIsField, "use section(), list(), map() or choice() for this type");
    std::string type = FieldValue<M>::type(options);
    FieldSpec spec = new_field(std::move(key), std::move(type), std::move(options));
    spec.parse = [member, rules = spec.options](const YamlNode& node, ParseContext& context, void* object) {
      FieldValue<M>::read(node, rules, context, static_cast<T*>(object)->*member);
    };
    spec.flatten = [member, rules = spec.options](const void* object, const std::string& path, ConfigLeaves& leaves) {
      const M& value = static_cast<const T*>(object)->*member;
      leaves.push_back({path, FieldValue<M>::print(value, rules), rules.secret});
    };
    return add(std::move(spec));
  }

  // An enum, written as one of `words`.
  template <typename E>
  StructSchema& choice(std::string key, E T::*member, std::vector<ChoiceWord<E>> words, FieldOptions options) {
    for (const auto& word : words) options.words.push_back(word.word);
    std::string type = text_type_name(options);
    FieldSpec spec = new_field(std::move(key), std::move(type), std::move(options));
    spec.parse = [member, words, rules = spec.options](const YamlNode& node, ParseContext& context, void* object) {
      std::string text;
      if (!read_text(node, rules, context, text)) return;
      for (const auto& word : words) {
        if (word.word == text) static_cast<T*>(object)->*member = word.value;
      }
    };
    spec.flatten = [member, words](const void* object, const std::string& path, ConfigLeaves& leaves) {
      std::string text = "?";
      for (const auto& word : words) {
        if (word.value == static_cast<const T*>(object)->*member) text = word.word;
      }
      leaves.push_back({path, text, false});
    };
    return add(std::move(spec));
  }

  // A nested mapping: S, or std::optional<S> that stays empty when the key is absent.
  template <typename M>
  StructSchema& section(std::string key, M T::*member, const StructSchema<StructOf<M>>& schema,
                        FieldOptions options = {}) {
    FieldSpec spec = new_field(std::move(key), "mapping", std::move(options));
    spec.child = schema.spec();
    if constexpr (kIsOptional<M>) {
      spec.child_defaults = std::make_shared<StructOf<M>>();
    } else {
      spec.child_defaults = std::make_shared<M>(T{}.*member);
    }
    spec.parse = [member, child = spec.child](const YamlNode& node, ParseContext& context, void* object) {
      M& value = static_cast<T*>(object)->*member;
      if constexpr (kIsOptional<M>) {
        value.emplace();
        parse_struct(*child, node, context, &*value);
      } else {
        parse_struct(*child, node, context, &value);
      }
    };
    spec.flatten = [member, child = spec.child](const void* object, const std::string& path, ConfigLeaves& leaves) {
      const M& value = static_cast<const T*>(object)->*member;
      if constexpr (kIsOptional<M>) {
        if (value) flatten_struct(*child, &*value, path, leaves);
      } else {
        flatten_struct(*child, &value, path, leaves);
      }
    };
    return add(std::move(spec));
  }

  // A list of mappings. With .item_key = "name", no two items may share that field's value, and differences are told by
  // it.
  template <typename S>
  StructSchema& list(std::string key, std::vector<S> T::*member, const StructSchema<S>& schema,
                     FieldOptions options = {}) {
    FieldSpec spec = new_field(std::move(key), "list of mappings", std::move(options));
    spec.child = schema.spec();
    spec.child_suffix = "[]";
    spec.child_defaults = std::make_shared<S>();
    spec.parse = [member, child = spec.child, rules = spec.options](const YamlNode& node, ParseContext& context,
                                                                    void* object) {
      std::vector<S>& items = static_cast<T*>(object)->*member;
      items.clear();
      if (!check_list(node, rules, context)) return;
      items.resize(node.values.size());
      for (size_t n = 0; n < node.values.size() && !context.full(); ++n) {
        const ParseContext::Scope scope(context, n);
        parse_struct(*child, node.values[n], context, &items[n]);
      }
      check_item_keys(node, *child, rules, context);
    };
    spec.flatten = [member, child = spec.child, rules = spec.options](const void* object, const std::string& path,
                                                                      ConfigLeaves& leaves) {
      const std::vector<S>& items = static_cast<const T*>(object)->*member;
      for (size_t n = 0; n < items.size(); ++n) {
        flatten_struct(*child, &items[n], path + item_label(*child, &items[n], rules, n), leaves);
      }
    };
    return add(std::move(spec));
  }

  // A mapping from names that the user chooses to mappings.
  template <typename S>
  StructSchema& map(std::string key, std::map<std::string, S> T::*member, const StructSchema<S>& schema,
                    FieldOptions options = {}) {
    FieldSpec spec = new_field(std::move(key), "mapping of names to mappings", std::move(options));
    spec.child = schema.spec();
    spec.child_suffix = ".NAME";
    spec.child_defaults = std::make_shared<S>();
    spec.parse = [member, child = spec.child, rules = spec.options](const YamlNode& node, ParseContext& context,
                                                                    void* object) {
      auto& items = static_cast<T*>(object)->*member;
      items.clear();
      if (!check_map(node, rules, context)) return;
      for (size_t n = 0; n < node.keys.size() && !context.full(); ++n) {
        const ParseContext::Scope scope(context, node.keys[n].text);
        parse_struct(*child, node.values[n], context, &items[node.keys[n].text]);
      }
    };
    spec.flatten = [member, child = spec.child](const void* object, const std::string& path, ConfigLeaves& leaves) {
      for (const auto& [name, item] : static_cast<const T*>(object)->*member) {
        flatten_struct(*child, &item, path + "." + name, leaves);
      }
    };
    return add(std::move(spec));
  }

  // A plain scalar in place of the mapping sets `key`: with shorthand("name"), `policy: random` is `policy: {name:
  // random}`.
  StructSchema& shorthand(std::string key) {
    WARMPATH_CHECK(spec_->find(key) != nullptr, "shorthand() names a field that was not registered");
    spec_->shorthand = std::move(key);
    return *this;
  }

  // Declares `key` as the field whose word decides which further fields exist; add the words with variant().
  StructSchema& tag(std::string key, std::string T::*member, FieldOptions options) {
    FieldSpec field = new_field(key, "one of the names below", std::move(options));
    // The words are known only once every variant() has been called, so they are looked up when parsing. The spec is
    // held weakly: it owns this function.
    field.parse = [member, rules = field.options, weak = std::weak_ptr<StructSpec>(spec_)](
                      const YamlNode& node, ParseContext& context, void* object) {
      FieldOptions with_words = rules;
      if (const auto owner = weak.lock()) with_words.words = owner->variant_words();
      read_text(node, with_words, context, static_cast<T*>(object)->*member);
    };
    field.flatten = [member](const void* object, const std::string& path, ConfigLeaves& leaves) {
      leaves.push_back({path, static_cast<const T*>(object)->*member, false});
    };
    spec_->tag = std::move(key);
    spec_->tag_of = [member](const void* object) { return static_cast<const T*>(object)->*member; };
    return add(std::move(field));
  }

  // A word of the tag that has no fields of its own.
  StructSchema& variant(std::string word, std::string doc) {
    WARMPATH_CHECK(spec_->find_variant(word) == nullptr, "two variants have the same word");
    spec_->variants.push_back({std::move(word), std::move(doc), nullptr, nullptr, nullptr});
    return *this;
  }

  // A word of the tag, with fields that fill `member`.
  template <typename S>
  StructSchema& variant(std::string word, std::string doc, S T::*member, const StructSchema<S>& schema) {
    WARMPATH_CHECK(spec_->find_variant(word) == nullptr, "two variants have the same word");
    spec_->variants.push_back(
        {std::move(word), std::move(doc), schema.spec(),
         [member](void* object) -> void* { return &(static_cast<T*>(object)->*member); },
         [member](const void* object) -> const void* { return &(static_cast<const T*>(object)->*member); }});
    return *this;
  }

  // Runs after every field of the struct was read without an error.
  StructSchema& check(std::function<void(const T&, CheckContext&)> check) {
    spec_->checks.push_back([check = std::move(check)](const void* object, CheckContext& context) {
      check(*static_cast<const T*>(object), context);
    });
    return *this;
  }

  // Runs whatever was found wrong; context.is_clean() tells where.
  StructSchema& check_always(std::function<void(const T&, CheckContext&)> check) {
    spec_->always_checks.push_back([check = std::move(check)](const void* object, CheckContext& context) {
      check(*static_cast<const T*>(object), context);
    });
    return *this;
  }

  // Of `keys`, exactly one must be written.
  StructSchema& exactly_one_of(std::vector<std::string> keys) {
    for (const std::string& key : keys) {
      WARMPATH_CHECK(spec_->find(key) != nullptr, "exactly_one_of() names a field that was not registered");
    }
    spec_->checks.push_back(
        [keys = std::move(keys)](const void*, CheckContext& context) { check_exactly_one(keys, context); });
    return *this;
  }

  std::shared_ptr<const StructSpec> spec() const { return spec_; }

 private:
  FieldSpec new_field(std::string key, std::string type, FieldOptions options) {
    WARMPATH_CHECK(spec_->find(key) == nullptr, "two fields of one struct have the same key");
    FieldSpec spec;
    spec.key = std::move(key);
    spec.type = std::move(type);
    spec.options = std::move(options);
    return spec;
  }
  StructSchema& add(FieldSpec spec) {
    spec_->fields.push_back(std::move(spec));
    return *this;
  }

  std::shared_ptr<StructSpec> spec_;
};

}  // namespace warmpath
