// LoopRecorder: records the rounds of a template's outermost loops while they are rendered, and lets a loop begin
// behind the rounds of an earlier rendering that would come out the same.
//
// The interpreter reports what a round reads and changes outside of it. What cannot be told apart well enough (a list
// that two names share, an object that has a state of its own) ends the record: the rounds from there on are rendered
// afresh the next time. Thread safety: one rendering; the earlier rendering's record is only read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/loop_record.h"
#include "text/jinja/objects.h"
#include "text/marked_text.h"

namespace warmpath::jinja {

class LoopRecorder {
 public:
  // An integer, or the length of a list, plus a constant; to be compared with something.
  struct Measure {
    size_t input;     // in the record
    int64_t measure;  // without the offset
    int64_t offset = 0;
  };
  // What the interpreter holds outside of every loop.
  struct Outside {
    boost::container::small_vector_base<std::pair<Symbol, Value>>& variables;
    const std::vector<boost::intrusive_ptr<Namespace>>& namespaces;  // in the order of their making
    const std::tm& now;
  };

  // `before` with its text, when there was an earlier rendering.
  LoopRecorder(const Recording* before, const MarkedText* text_before, Recording& recording)
      : before_(before), text_before_(text_before), recording_(recording) {}

  // Whether a round is being recorded.
  bool active() const { return active_; }

  // A loop over `items` begins, not inside of anything. Appends to `out` what the rounds write that need not be run,
  // sets what they leave behind, and returns how many they are and how many steps they took.
  LoopRecord::Mark begin_loop(const Stmt& loop, const std::vector<Value>& items, Outside outside, MarkedText& out,
                              uint32_t& rounds);
  void begin_round(const Loop* loop);
  // The round has ended and its scope is empty; `steps`: since the loop began.
  void end_round(const MarkedText& out, uint64_t steps);
  // At its end, or in the midst of a round that breaks.
  void end_loop(const MarkedText& out);

  // --- what a round reads; only while active()
  void read_variable(Symbol symbol);
  void read_leading(Symbol symbol, size_t items);
  void read_attribute(const Namespace& space, std::string_view name);
  // An attribute of the recorded loop; other loops are none of its business.
  void read_loop(const Object& loop, std::string_view name);
  void read_clock();
  // An integer variable, attribute or length that is about to be compared; nullopt when it cannot be followed.
  std::optional<Measure> measure_variable(Symbol symbol);
  std::optional<Measure> measure_attribute(const Namespace& space, std::string_view name);
  std::optional<Measure> measure_loop_length(const Object& loop);
  // The measure was within these bounds, offset and all, and the round depends on no more than that.
  void depend_on(const Measure& measure, int64_t low, int64_t high);
  void depend_on_whole(const Measure& measure);

  // --- what it changes
  void wrote_attribute(const Namespace& space, std::string_view name);
  void changed_list(const ValueList& list);
  // Something with a state that no record can hold.
  void changed_unknown() { unknown_ = true; }
  // Something changed inside of values that records hold: there is no record of this rendering.
  void abandon();

 private:
  Snapshot snapshot(const Source& source) const;
  LoopInput* input_of(Source source);
  LoopInput* attribute_input(const Namespace& space, std::string_view name);
  LoopInput* loop_input(const Object& loop);
  std::optional<Measure> measure(const LoopInput* input) const;
  bool written(const Source& source) const;
  uint32_t reusable_rounds(const LoopRecord& earlier, const LoopRecord& now) const;
  void restore(const LoopRecord& record);
  // Logs what the round left in the sources that it changed; false when that cannot be held.
  bool log_changes();
  std::optional<Source> holder_of(const ValueList& list) const;

  const Recording* before_;
  const MarkedText* text_before_;
  Recording& recording_;
  std::optional<Outside> outside_;
  LoopRecord record_;
  const Loop* loop_ = nullptr;
  uint32_t round_ = 0;
  uint32_t reused_ = 0;
  bool active_ = false;
  bool ended_ = false;  // the record has, the loop has not
  bool abandoned_ = false;
  bool unknown_ = false;                                              // in this round
  std::vector<int32_t> variable_inputs_;                              // by symbol: index into inputs, or -1
  std::vector<Source> written_;                                       // in this loop so far
  std::vector<Source> changed_;                                       // in this round
  std::vector<boost::intrusive_ptr<const ValueList>> changed_lists_;  // in this round
};

}  // namespace warmpath::jinja
