// YamlNode: one YAML file as a plain tree that remembers where everything was written.
//
// yaml-cpp does the parsing (this is the only file that includes it); the tree is built from its events so that
// duplicate keys, deep nesting and alias bombs are refused while reading, before they cost anything. Anchors and
// aliases work: an alias is a copy, and copies count against the node limit. Thread safety: values and pure functions.
// No exception leaves parse_yaml.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_error.h"

namespace warmpath {

// Bounds of one file. A configuration of 4,096 endpoints needs about 30,000 nodes.
inline constexpr size_t kMaxYamlBytes = size_t{4} << 20;
inline constexpr size_t kMaxYamlNodes = 200'000;
inline constexpr size_t kMaxYamlDepth = 32;

// Where something starts, both from 1; 0 means "nowhere in the file".
struct YamlMark {
  int line = 0;
  int column = 0;
};

struct YamlKey {
  std::string text;
  YamlMark mark;
};

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };

  Kind kind = Kind::kNull;
  YamlMark mark;
  std::string text;              // kScalar
  bool quoted = false;           // kScalar: written in quotes, so never a number or a truth value
  std::vector<YamlNode> values;  // kSequence: the items; kMap: the value of keys[n] at values[n]
  std::vector<YamlKey> keys;     // kMap only, in file order, no two alike

  bool is_null() const { return kind == Kind::kNull; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_sequence() const { return kind == Kind::kSequence; }
  bool is_map() const { return kind == Kind::kMap; }

  // The value of `key`, or nullptr. REQUIRES is_map() for a result.
  const YamlNode* find(std::string_view key) const;
  const YamlKey* find_key(std::string_view key) const;
};

// "a list", "a mapping", "\"text\"", "nothing": how error messages call what they found.
std::string describe_yaml(const YamlNode& node);

// Reads one document. On failure returns false and appends one error (the first syntax error ends the reading).
bool parse_yaml(std::string_view text, YamlNode& root, std::vector<ConfigError>& errors);

}  // namespace warmpath
