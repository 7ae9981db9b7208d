#include "text/jinja/loop_recorder.h"

#include <algorithm>
#include <limits>

#include "text/jinja/macro.h"

namespace warmpath::jinja {
namespace {

// Longer lists that a round changed are not copied.
constexpr size_t kMaxCopiedItems = 64;

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

// Whether no rendering can change `value`.
bool is_fixed(const Value& value) {
  if (value.is_list()) return value.as_list().frozen;
  if (value.is_dict()) return value.as_dict().frozen;
  return value.kind() != Value::Kind::kObject;
}

Value frozen_copy(const ValueList& list) {
  Value copy = Value::sequence(list.type, list.items);
  copy.as_list().frozen = true;
  return copy;
}

// Of a value that a rendering of its own may change.
Value fresh_copy(const Value& value) {
  return value.is_list() && value.as_list().type == SequenceKind::kList ? Value::list(value.as_list().items) : value;
}

const Value* find_variable(const boost::container::small_vector_base<std::pair<Symbol, Value>>& variables,
                           Symbol symbol) {
  const auto found =
      std::find_if(variables.begin(), variables.end(), [symbol](const auto& each) { return each.first == symbol; });
  return found == variables.end() ? nullptr : &found->second;
}

}  // namespace

Snapshot LoopRecorder::snapshot(const Source& source) const {
  Value value;
  switch (source.kind) {
    case Source::Kind::kVariable:
      if (const Value* found = find_variable(outside_->variables, source.symbol)) value = *found;
      break;
    case Source::Kind::kAttribute:
      if (source.space < outside_->namespaces.size()) {
        value = outside_->namespaces[source.space]->attribute(source.name).value_or(Value());
      }
      break;
    case Source::Kind::kItems:
      value = record_.items;
      break;
    case Source::Kind::kClock:
      value = Value::string(std::string(reinterpret_cast<const char*>(&outside_->now), offsetof(std::tm, tm_isdst)),
                            Origin::kTemplate);
      break;
  }
  if (value.is_list() && !is_fixed(value)) return {frozen_copy(value.as_list()), 0};
  if (value.kind() != Value::Kind::kObject) return {std::move(value), 0};
  const auto* object = static_cast<const Object*>(value.as_node());
  if (const auto* space = dynamic_cast<const Namespace*>(object); space != nullptr && space->is_outside()) {
    return {Value(), 2 + 2 * uint64_t{space->ordinal()}};
  }
  // The variables that a macro reads are inputs of their own.
  if (const auto* macro = dynamic_cast<const Macro*>(object); macro != nullptr && macro->is_outside()) {
    return {Value(), reinterpret_cast<uintptr_t>(&macro->stmt()) | 1};
  }
  return {Value(), Snapshot::kUnknownObject};
}

// --- a loop and its rounds

LoopRecord::Mark LoopRecorder::begin_loop(const Stmt& loop, const std::vector<Value>& items, Outside outside,
                                          MarkedText& out, uint32_t& rounds) {
  outside_.emplace(outside);
  record_ = LoopRecord();
  record_.loop = &loop;
  record_.text_begin = out.size();
  record_.items = Value::list(items);
  record_.items.as_list().frozen = true;
  record_.marks.emplace_back();
  written_.clear();
  variable_inputs_.clear();
  ended_ = abandoned_;
  round_ = reused_ = rounds = 0;
  if (before_ == nullptr || abandoned_) return {};
  const auto earlier = std::find_if(before_->loops.begin(), before_->loops.end(),
                                    [&loop](const LoopRecord& each) { return each.loop == &loop; });
  if (earlier == before_->loops.end()) return {};
  rounds = reusable_rounds(*earlier, record_);
  if (rounds == 0) return {};
  record_.marks.assign(earlier->marks.begin(), earlier->marks.begin() + rounds + 1);
  record_.inputs = earlier->inputs;
  record_.writes = earlier->writes;
  record_.cut(rounds);
  // What the rounds depended on is the same; the rest of an input may not be.
  for (LoopInput& input : record_.inputs) {
    input.before = snapshot(input.source);
    if (input.source.kind != Source::Kind::kVariable) continue;
    if (variable_inputs_.size() <= input.source.symbol) variable_inputs_.resize(input.source.symbol + 1, -1);
    variable_inputs_[input.source.symbol] = static_cast<int32_t>(&input - record_.inputs.data());
  }
  restore(record_);
  out.append(*text_before_, earlier->text_begin, record_.marks.back().bytes);
  round_ = reused_ = rounds;
  return record_.marks.back();
}

uint32_t LoopRecorder::reusable_rounds(const LoopRecord& earlier, const LoopRecord& now) const {
  const size_t common = common_items(earlier.items.as_list().items, now.items.as_list().items);
  uint32_t rounds = static_cast<uint32_t>(std::min<size_t>(earlier.rounds(), common));
  for (const LoopInput& input : earlier.inputs) {
    if (rounds == 0) break;
    rounds = std::min(rounds, input.first_changed(snapshot(input.source)));
  }
  return rounds;
}

void LoopRecorder::restore(const LoopRecord& record) {
  // The last write to each source.
  for (auto write = record.writes.rbegin(); write != record.writes.rend(); ++write) {
    if (written(write->source)) continue;
    written_.push_back(write->source);
    if (write->source.kind == Source::Kind::kAttribute) {
      outside_->namespaces[write->source.space]->set(write->source.name, fresh_copy(write->value));
      continue;
    }
    for (auto& [symbol, value] : outside_->variables) {
      if (symbol == write->source.symbol) value = fresh_copy(write->value);
    }
  }
}

void LoopRecorder::begin_round(const Loop* loop) {
  loop_ = loop;
  active_ = !ended_;
  unknown_ = false;
  changed_.clear();
  changed_lists_.clear();
}

void LoopRecorder::end_round(const MarkedText& out, uint64_t steps) {
  if (!active_) return;
  active_ = false;
  if (unknown_ || !log_changes()) {
    ended_ = true;
    return;
  }
  record_.marks.push_back({out.size() - record_.text_begin, steps});
  ++round_;
}

void LoopRecorder::end_loop(const MarkedText& out) {
  active_ = false;
  outside_.reset();
  loop_ = nullptr;
  const auto items = record_.items.as_list().items.size();
  if (out.size() > record_.text_begin) {
    recording_.reused_rounds += reused_;
    recording_.new_rounds += items - reused_;
  }
  if (abandoned_) return;
  record_.cut(record_.rounds());
  recording_.loops.push_back(std::move(record_));
}

void LoopRecorder::abandon() {
  abandoned_ = ended_ = true;
  active_ = false;
  recording_.loops.clear();
}

bool LoopRecorder::log_changes() {
  for (const auto& list : changed_lists_) {
    if (list->use_count() == 2) continue;  // the interpreter and this vector: it ended with the round
    auto holder = holder_of(*list);
    // Nobody but the source, the interpreter and this vector may know it: what else holds it would see later changes.
    if (!holder || list->use_count() != 3) return false;
    if (std::find(changed_.begin(), changed_.end(), *holder) == changed_.end()) changed_.push_back(*std::move(holder));
  }
  for (Source& source : changed_) {
    Value value;
    if (source.kind == Source::Kind::kAttribute) {
      value = outside_->namespaces[source.space]->attribute(source.name).value_or(Value());
    } else if (const Value* found = find_variable(outside_->variables, source.symbol)) {
      value = *found;
    }
    if (value.is_list() && !value.as_list().frozen && value.as_list().type == SequenceKind::kList) {
      const ValueList& list = value.as_list();
      // The source, `value`, and the interpreter and this round if it was changed in source.
      const bool listed = std::find(changed_lists_.begin(), changed_lists_.end(), &list) != changed_lists_.end();
      const int holders = 2 + (list.adopted ? 1 : 0) + (listed ? 1 : 0);
      if (static_cast<int>(list.use_count()) != holders || list.items.size() > kMaxCopiedItems ||
          !std::all_of(list.items.begin(), list.items.end(), is_fixed)) {
        return false;
      }
      value = frozen_copy(list);
    }
    if (!is_fixed(value)) return false;
    if (!written(source)) written_.push_back(source);
    record_.writes.push_back({round_, std::move(source), std::move(value)});
  }
  return true;
}

std::optional<Source> LoopRecorder::holder_of(const ValueList& list) const {
  const auto is_it = [&list](const Value& value) { return value.is_list() && value.as_node() == &list; };
  for (const auto& [symbol, value] : outside_->variables) {
    if (is_it(value)) return Source{Source::Kind::kVariable, 0, symbol, {}};
  }
  for (const auto& space : outside_->namespaces) {
    if (!space->is_outside()) continue;
    for (const auto& [name, value] : space->attributes()) {
      if (is_it(value)) return Source{Source::Kind::kAttribute, space->ordinal(), 0, name};
    }
  }
  return std::nullopt;
}

// --- inputs

bool LoopRecorder::written(const Source& source) const {
  return std::find(written_.begin(), written_.end(), source) != written_.end();
}

LoopInput* LoopRecorder::input_of(Source source) {
  // What the loop wrote itself is no input.
  if (written(source) || std::find(changed_.begin(), changed_.end(), source) != changed_.end()) return nullptr;
  if (LoopInput* known = record_.find(source)) return known;
  LoopInput& input = record_.inputs.emplace_back();
  input.before = snapshot(source);
  input.source = std::move(source);
  return &input;
}

void LoopRecorder::read_variable(Symbol symbol) {
  if (symbol < variable_inputs_.size() && variable_inputs_[symbol] >= 0) {
    record_.inputs[static_cast<size_t>(variable_inputs_[symbol])].depend_on_whole(round_);
    return;
  }
  LoopInput* input = input_of({Source::Kind::kVariable, 0, symbol, {}});
  if (input == nullptr) return;
  input->depend_on_whole(round_);
  if (variable_inputs_.size() <= symbol) variable_inputs_.resize(symbol + 1, -1);
  variable_inputs_[symbol] = static_cast<int32_t>(input - record_.inputs.data());
}

void LoopRecorder::read_leading(Symbol symbol, size_t items) {
  if (LoopInput* input = input_of({Source::Kind::kVariable, 0, symbol, {}})) input->depend_on_leading(round_, items);
}

LoopInput* LoopRecorder::attribute_input(const Namespace& space, std::string_view name) {
  if (!space.is_outside()) return nullptr;
  return input_of({Source::Kind::kAttribute, space.ordinal(), 0, std::string(name)});
}

void LoopRecorder::read_attribute(const Namespace& space, std::string_view name) {
  if (LoopInput* input = attribute_input(space, name)) input->depend_on_whole(round_);
}

LoopInput* LoopRecorder::loop_input(const Object& loop) {
  return &loop == loop_ ? input_of({Source::Kind::kItems, 0, 0, {}}) : nullptr;
}

void LoopRecorder::read_loop(const Object& loop, std::string_view name) {
  LoopInput* input = loop_input(loop);
  if (input == nullptr) return;
  const size_t count = record_.items.as_list().items.size();
  if (name == "last" || name == "nextitem") {
    // That there is a next item stays so for as long as that item does.
    if (size_t{round_} + 1 < count) {
      input->depend_on_leading(round_, size_t{round_} + 2);
    } else {
      input->depend_on_whole(round_);
    }
  } else if (name == "revindex" || name == "revindex0" || name == "length") {
    input->depend_on_whole(round_);
  } else if (name == "changed") {
    changed_unknown();
  }
}

void LoopRecorder::read_clock() { input_of({Source::Kind::kClock, 0, 0, {}})->depend_on_whole(round_); }

// --- measures

std::optional<LoopRecorder::Measure> LoopRecorder::measure(const LoopInput* input) const {
  if (input == nullptr) return std::nullopt;
  const auto index = static_cast<size_t>(input - record_.inputs.data());
  const Value& value = input->before.value;
  if (value.is_int()) return Measure{index, value.as_int()};
  if (!value.is_list() || value.as_list().type == SequenceKind::kGenerator) return std::nullopt;
  return Measure{index, static_cast<int64_t>(value.as_list().items.size())};
}

std::optional<LoopRecorder::Measure> LoopRecorder::measure_variable(Symbol symbol) {
  return measure(input_of({Source::Kind::kVariable, 0, symbol, {}}));
}

std::optional<LoopRecorder::Measure> LoopRecorder::measure_attribute(const Namespace& space, std::string_view name) {
  return measure(attribute_input(space, name));
}

std::optional<LoopRecorder::Measure> LoopRecorder::measure_loop_length(const Object& loop) {
  return measure(loop_input(loop));
}

void LoopRecorder::depend_on(const Measure& measure, int64_t low, int64_t high) {
  const auto without_offset = [&measure](int64_t bound) {
    int64_t shifted = 0;
    if (bound == kLowest || bound == kHighest) return bound;
    if (!__builtin_sub_overflow(bound, measure.offset, &shifted)) return shifted;
    return bound < 0 ? kLowest : kHighest;
  };
  record_.inputs[measure.input].depend_on_bounds(round_, without_offset(low), without_offset(high));
}

void LoopRecorder::depend_on_whole(const Measure& measure) { record_.inputs[measure.input].depend_on_whole(round_); }

// --- changes

void LoopRecorder::wrote_attribute(const Namespace& space, std::string_view name) {
  if (!space.is_outside()) return;
  Source source{Source::Kind::kAttribute, space.ordinal(), 0, std::string(name)};
  if (std::find(changed_.begin(), changed_.end(), source) == changed_.end()) changed_.push_back(std::move(source));
}

void LoopRecorder::changed_list(const ValueList& list) {
  if (std::find(changed_lists_.begin(), changed_lists_.end(), &list) == changed_lists_.end()) {
    changed_lists_.emplace_back(&list);
  }
}

}  // namespace warmpath::jinja
