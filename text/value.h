// Value: what a chat template computes with, and what a request's messages are read into: JSON's types and the few more
// that Python's template language has (undefined, tuples, callable objects). 16 bytes; strings, lists and dicts are
// counted nodes that copies share.
//
// Dicts keep insertion order. Integers beyond 64 bits keep their digits. Lists and dicts that came from a request are
// frozen: they may be cached and read by many threads at once. Values made during one rendering stay on its thread.
// Nesting is bounded (kMaxDepth), so that destroying or printing a value cannot exhaust the stack.
#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/marked_text.h"

namespace warmpath {

class Value;
struct ValueList;
struct ValueDict;

// What Python type a ValueList stands for. They differ in how they print, compare and can be indexed; a generator (what
// map, select and their kin give) is true even when empty, has no length, and is empty after it was walked once.
enum class SequenceKind : uint8_t { kList, kTuple, kRange, kDictKeys, kDictValues, kDictItems, kGenerator };

// The base of everything a Value points to. Subclasses outside this file: macros, methods, namespaces, loops.
struct ValueNode : boost::intrusive_ref_counter<ValueNode> {
  virtual ~ValueNode() = default;
};

class Value {
 public:
  enum class Kind : uint8_t { kUndefined, kNone, kBool, kInt, kFloat, kBigInt, kString, kList, kDict, kObject };
  static constexpr int kMaxDepth = 200;

  Value() = default;  // undefined, without a name
  static Value none() { return Value(Kind::kNone); }
  static Value boolean(bool flag);
  static Value integer(int64_t number);
  static Value real(double number);
  static Value big_integer(std::string digits);  // decimal, beyond 64 bits
  static Value string(MarkedText text);
  static Value string(std::string bytes, Origin origin) { return string(MarkedText(std::move(bytes), origin)); }
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items) { return sequence(SequenceKind::kTuple, std::move(items)); }
  static Value sequence(SequenceKind type, std::vector<Value> items);
  static Value dict();  // empty; fill it with set()
  static Value object(boost::intrusive_ptr<ValueNode> node);
  // Undefined, remembering why ("'tools' is undefined"), for the message when it is used.
  static Value undefined(std::string reason);

  Value(const Value& other) noexcept;
  Value(Value&& other) noexcept : kind_(other.kind_), payload_(other.payload_) {
    other.kind_ = Kind::kUndefined;
    other.payload_.node = nullptr;
  }
  Value& operator=(const Value& other) noexcept {
    Value copy(other);
    swap(copy);
    return *this;
  }
  Value& operator=(Value&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Value();
  void swap(Value& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(payload_, other.payload_);
  }

  Kind kind() const { return kind_; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_list() const { return kind_ == Kind::kList; }  // and the other sequences
  bool is_dict() const { return kind_ == Kind::kDict; }
  bool is_bool() const { return kind_ == Kind::kBool; }
  bool is_int() const { return kind_ == Kind::kInt; }
  bool is_number() const { return kind_ >= Kind::kBool && kind_ <= Kind::kBigInt; }

  // REQUIRES the kind named.
  bool as_bool() const { return payload_.flag; }
  int64_t as_int() const { return payload_.integer; }
  double as_real() const { return payload_.real; }
  const MarkedText& as_text() const;
  const std::string& as_digits() const;  // of a big integer
  ValueList& as_list() const;
  ValueDict& as_dict() const;
  ValueNode* as_node() const { return payload_.node; }

  // Why an undefined value is undefined; may be empty.
  std::string_view undefined_reason() const;
  // The bytes of a string in one piece; anything else gives "".
  std::string string_or_empty() const;

  // Entry `key` of a dict; null when this is no dict or has no such entry.
  const Value* find(std::string_view key) const;
  // 1 + the deepest nesting below a list or dict; 0 for everything else.
  int depth() const;
  // Values reachable from this one, counting one that is reachable twice twice; saturates. Walking a value takes that
  // many steps at most.
  uint32_t weight() const;

  // The text of a string that nobody else holds, to append to; null otherwise.
  MarkedText* exclusive_text();

 private:
  explicit Value(Kind kind) : kind_(kind) {}
  bool counted() const { return kind_ >= Kind::kBigInt || (kind_ == Kind::kUndefined && payload_.node != nullptr); }

  Kind kind_ = Kind::kUndefined;
  union Payload {
    ValueNode* node = nullptr;
    bool flag;
    int64_t integer;
    double real;
  } payload_;
};

// depth and weight are true for as long as no list that has become an item of another container is changed: whoever
// does that (jinja/interpreter.h) walks what it needs bounds of.
struct ValueList : ValueNode {
  std::vector<Value> items;
  int depth = 1;
  uint32_t weight = 1;
  SequenceKind type = SequenceKind::kList;
  bool frozen = false;  // from a request: must not change
  bool contained = false;
  bool adopted = false;  // a rendering will empty it when it ends (jinja/interpreter.h)

  // REQUIRES !frozen.
  void append(Value item);
};

// Insertion-ordered. Lookups of string keys are O(1) beyond a few entries.
struct ValueDict : ValueNode {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;
  uint32_t weight = 1;
  bool frozen = false;

  // Sets or replaces; a replaced entry keeps its position.
  void set(Value key, Value value);
  void set(std::string_view key, Value value);  // key with the template's origin
  const Value* find(std::string_view key) const;
  const Value* find(const Value& key) const;

 private:
  static constexpr size_t kIndexFrom = 9;  // entries; below, a linear look is faster
  size_t position_of(std::string_view key) const;
  size_t position_of(const Value& key) const;
  std::unordered_map<std::string, size_t> index_;  // string keys, once there are kIndexFrom entries
};

// Python's ==: 1 == 1.0 == True; lists and tuples are never equal to each other.
bool values_equal(const Value& left, const Value& right, int depth = 0);
// Whether no template could tell the two apart: types, bytes, origins and the order of entries count. Objects and
// generators, which have a state, are identical to nothing.
bool values_identical(const Value& left, const Value& right);

}  // namespace warmpath
