// LoopRecord: what the rounds of a template's outermost loop wrote, and what they depended on, so that a rendering of
// the same conversation with more messages can go on behind the last round that is still true.
//
// A round is a function of its item, of what it reads from outside (variables, attributes of namespaces, `loop`, the
// clock) and of nothing else. Of every such input the record holds its value when the loop began and how much of it
// each round depended on: all of it, the first items of a list, or an integer's (or a list's length's) being within
// bounds. Rounds whose inputs are unchanged in that sense would write the same text and leave the same state behind.
//
// Everything in a record is a value that no rendering changes any more, so records may be shared between threads.
// Thread safety: immutable once recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/value.h"

namespace warmpath::jinja {

// What is outside of a loop: a variable of the template's outermost scope, an attribute of a namespace, or one of a
// kind.
struct Source {
  enum class Kind : uint8_t { kVariable, kAttribute, kItems, kClock };
  Kind kind = Kind::kVariable;
  uint32_t space = 0;  // of an attribute: which namespace, counted in the order of their making
  Symbol symbol = 0;   // of a variable
  std::string name;    // of an attribute

  bool operator==(const Source&) const = default;
};

// The value of a source when the loop began. An object is known by what it is; its state has sources of its own.
struct Snapshot {
  Value value;
  uint64_t object = 0;  // 0: it is a value; kUnknownObject: identical to nothing

  static constexpr uint64_t kUnknownObject = 1;
};

struct LoopInput {
  static constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();
  struct Leading {
    uint32_t round;
    size_t items;  // growing from one to the next
  };
  struct Bounds {
    uint32_t round;
    int64_t low;  // both inclusive; narrowing from one to the next
    int64_t high;
  };

  Source source;
  Snapshot before;
  uint32_t whole_from = kNever;  // the first round that depends on all of it
  std::vector<Leading> leading;  // of a list
  std::vector<Bounds> bounds;    // of an integer, or of a list's length

  // The first round that would not be the same with `now` in the source.
  uint32_t first_changed(const Snapshot& now) const;
  void depend_on_whole(uint32_t round);
  void depend_on_leading(uint32_t round, size_t items);
  void depend_on_bounds(uint32_t round, int64_t low, int64_t high);
  // Forgets what `round` and those behind it depended on; false when nothing is left.
  bool forget_from(uint32_t round);
};

struct LoopRecord {
  // The state at a round's beginning, relative to the loop's.
  struct Mark {
    size_t bytes = 0;  // of text
    uint64_t steps = 0;
  };
  // What a round left in a source.
  struct Write {
    uint32_t round;
    Source source;
    Value value;
  };

  const Stmt* loop = nullptr;
  size_t text_begin = 0;    // in the rendering's text
  Value items;              // that it runs over, a list
  std::vector<Mark> marks;  // one more than there are complete rounds
  std::vector<LoopInput> inputs;
  std::vector<Write> writes;

  LoopInput* find(const Source& source);
  uint32_t rounds() const { return static_cast<uint32_t>(marks.size() - 1); }
  // Keeps the first `count` rounds.
  void cut(uint32_t count);
};

struct Recording {
  std::vector<LoopRecord> loops;
  // Of the loops that wrote text.
  size_t reused_rounds = 0;
  size_t new_rounds = 0;

  size_t bytes() const;  // in memory, about, without the values of the request
};

// The length of the longest common beginning of two lists' items.
size_t common_items(const std::vector<Value>& left, const std::vector<Value>& right);

}  // namespace warmpath::jinja
