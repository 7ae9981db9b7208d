// Filters over lists and dicts.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "text/jinja/builtins.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/text_ops.h"

namespace warmpath::jinja {
namespace {

std::vector<Value> charged_items(Interpreter& interpreter, const Value& input) {
  std::vector<Value> items = items_of(input);
  interpreter.charge(items.size());
  return items;
}

// What Jinja2 makes lazily.
Value generator(std::vector<Value> items) { return Value::sequence(SequenceKind::kGenerator, std::move(items)); }

// The part of an item that "a.b.0" names, `fallback` where a step of it is undefined; the item itself without a path.
Value member(Interpreter& interpreter, const Value& item, const Value* path, const Value* fallback = nullptr) {
  if (path == nullptr || path->is_none()) return item;
  if (!path->is_string()) return interpreter.item(item, *path);
  Value at = item;
  for (const Value& piece : split(path->as_text(), ".", -1)) {
    const std::string name = piece.string_or_empty();
    const bool number = !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == name.npos;
    at = interpreter.item(at, number ? Value::integer(std::stoll(name)) : piece);
    if (at.is_undefined() && fallback != nullptr && !fallback->is_none()) at = *fallback;
  }
  return at;
}

Value folded(const Value& value, bool case_sensitive) {
  return value.is_string() && !case_sensitive ? Value::string(change_case(value.as_text(), CaseChange::kLower)) : value;
}

Value default_value(Interpreter&, const Value& input, const Arguments& arguments) {
  const auto bound = arguments.bind("default", {"default_value", "boolean"});
  const bool boolean = bound[1] != nullptr && truthy(*bound[1]);
  if (!input.is_undefined() && !(boolean && !truthy(input))) return input;
  return bound[0] != nullptr ? *bound[0] : Value::string({}, Origin::kTemplate);
}

Value length(Interpreter&, const Value& input, const Arguments&) { return Value::integer(length_of(input)); }

Value first(Interpreter&, const Value& input, const Arguments&) {
  if (input.is_string() && !input.as_text().empty()) return Value::string(char_slice(input.as_text(), 0, 1));
  const std::vector<Value> items = items_of(input);
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

Value last(Interpreter&, const Value& input, const Arguments&) {
  const std::vector<Value> items = items_of(input);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value list(Interpreter& interpreter, const Value& input, const Arguments&) {
  return Value::list(charged_items(interpreter, input));
}

Value reverse(Interpreter& interpreter, const Value& input, const Arguments&) {
  std::vector<Value> items = charged_items(interpreter, input);
  std::reverse(items.begin(), items.end());
  if (!input.is_string()) return generator(std::move(items));
  MarkedText text;
  for (const Value& character : items) text.append(character.as_text());
  return Value::string(std::move(text));
}

Value join(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const auto bound = arguments.bind("join", {"d", "attribute"});
  const MarkedText separator = bound[0] != nullptr ? to_text(*bound[0]) : MarkedText();
  MarkedText text;
  bool is_first = true;
  for (const Value& item : charged_items(interpreter, input)) {
    if (!std::exchange(is_first, false)) text.append(separator);
    text.append(to_text(member(interpreter, item, bound[1])));
    interpreter.charge(text.parts().size() / 256);
  }
  return Value::string(std::move(text));
}

Value items(Interpreter& interpreter, const Value& input, const Arguments&) {
  if (input.is_undefined()) return generator({});
  if (!input.is_dict()) throw TemplateError("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  for (const auto& [key, value] : input.as_dict().entries) pairs.push_back(Value::tuple({key, value}));
  interpreter.charge(pairs.size());
  return generator(std::move(pairs));
}

// Indices of `keys` in sorted order; equal keys stay in place, reversed or not.
std::vector<size_t> sorted_order(Interpreter& interpreter, const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    interpreter.charge(1);
    return reverse ? less_than(keys[b], keys[a]) : less_than(keys[a], keys[b]);
  });
  return order;
}

Value dictsort(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const auto bound = arguments.bind("dictsort", {"case_sensitive", "by", "reverse"});
  require_defined(input);
  if (!input.is_dict()) throw TemplateError(fmt::format("'{} object' has no attribute 'items'", type_name(input)));
  const bool case_sensitive = bound[0] != nullptr && truthy(*bound[0]);
  const std::string by = bound[1] != nullptr ? bound[1]->string_or_empty() : "key";
  if (by != "key" && by != "value") throw TemplateError("You can only sort by either \"key\" or \"value\"");
  const auto& entries = input.as_dict().entries;
  std::vector<Value> keys;
  for (const auto& [key, value] : entries) keys.push_back(folded(by == "key" ? key : value, case_sensitive));
  std::vector<Value> pairs;
  for (const size_t index : sorted_order(interpreter, keys, bound[2] != nullptr && truthy(*bound[2]))) {
    pairs.push_back(Value::tuple({entries[index].first, entries[index].second}));
  }
  return Value::list(std::move(pairs));
}

Value sort(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const auto bound = arguments.bind("sort", {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = bound[1] != nullptr && truthy(*bound[1]);
  const std::vector<Value> all = charged_items(interpreter, input);
  std::vector<Value> keys;
  for (const Value& item : all) {
    if (bound[2] == nullptr || !bound[2]->is_string()) {
      keys.push_back(folded(member(interpreter, item, bound[2]), case_sensitive));
      continue;
    }
    // "a,b" sorts by several members.
    std::vector<Value> parts;
    for (const Value& path : split(bound[2]->as_text(), ",", -1)) {
      parts.push_back(folded(member(interpreter, item, &path), case_sensitive));
    }
    keys.push_back(Value::list(std::move(parts)));
  }
  std::vector<Value> sorted;
  for (const size_t index : sorted_order(interpreter, keys, bound[0] != nullptr && truthy(*bound[0]))) {
    sorted.push_back(all[index]);
  }
  return Value::list(std::move(sorted));
}

Value extreme(Interpreter& interpreter, const Value& input, const Arguments& arguments, bool largest) {
  const auto bound = arguments.bind(largest ? "max" : "min", {"case_sensitive", "attribute"});
  const bool case_sensitive = bound[0] != nullptr && truthy(*bound[0]);
  const std::vector<Value> all = charged_items(interpreter, input);
  if (all.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  size_t best = 0;
  const auto key = [&](size_t index) { return folded(member(interpreter, all[index], bound[1]), case_sensitive); };
  for (size_t index = 1; index < all.size(); ++index) {
    if (largest ? less_than(key(best), key(index)) : less_than(key(index), key(best))) best = index;
  }
  return all[best];
}
Value max(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  return extreme(interpreter, input, arguments, true);
}
Value min(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  return extreme(interpreter, input, arguments, false);
}

Value unique(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const auto bound = arguments.bind("unique", {"case_sensitive", "attribute"});
  const bool case_sensitive = bound[0] != nullptr && truthy(*bound[0]);
  ValueDict seen;
  std::vector<Value> kept;
  for (const Value& item : charged_items(interpreter, input)) {
    const Value key = folded(member(interpreter, item, bound[1]), case_sensitive);
    if (!key.is_string()) interpreter.charge(seen.entries.size());
    if (seen.find(key) != nullptr) continue;
    seen.set(key, Value::none());
    kept.push_back(item);
  }
  return generator(std::move(kept));
}

Value sum(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const auto bound = arguments.bind("sum", {"attribute", "start"});
  Value total = bound[1] != nullptr ? *bound[1] : Value::integer(0);
  for (const Value& item : charged_items(interpreter, input)) {
    total = interpreter.checked(apply_binary(BinaryOp::kAdd, std::move(total), member(interpreter, item, bound[0])));
  }
  return total;
}

Value map(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  std::vector<Value> mapped;
  if (arguments.positional.empty()) {
    const auto bound = arguments.bind("map", {"attribute", "default"});
    if (bound[0] == nullptr) throw TemplateError("map requires a filter argument");
    for (const Value& item : charged_items(interpreter, input)) {
      mapped.push_back(member(interpreter, item, bound[0], bound[1]));
    }
    return generator(std::move(mapped));
  }
  const std::string filter = arguments.positional[0].string_or_empty();
  Arguments rest;
  rest.positional.assign(arguments.positional.begin() + 1, arguments.positional.end());
  rest.keywords = arguments.keywords;
  for (const Value& item : charged_items(interpreter, input)) {
    mapped.push_back(interpreter.apply_filter(filter, item, rest));
  }
  return generator(std::move(mapped));
}

// select, reject (by_member false) and selectattr, rejectattr.
Value chosen(Interpreter& interpreter, const Value& input, const Arguments& arguments, bool keep, bool by_member) {
  size_t used = 0;
  const Value* path = nullptr;
  if (by_member) {
    if (arguments.positional.empty()) throw TemplateError("Missing parameter for attribute name");
    path = &arguments.positional[used++];
  }
  std::optional<std::string> test;
  if (arguments.positional.size() > used) test = arguments.positional[used++].string_or_empty();
  Arguments rest;
  rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(used), arguments.positional.end());
  rest.keywords = arguments.keywords;
  std::vector<Value> kept;
  for (const Value& item : charged_items(interpreter, input)) {
    const Value value = member(interpreter, item, path);
    if ((test ? interpreter.apply_test(*test, value, rest) : truthy(value)) == keep) kept.push_back(item);
  }
  return generator(std::move(kept));
}
Value select(Interpreter& i, const Value& input, const Arguments& a) { return chosen(i, input, a, true, false); }
Value reject(Interpreter& i, const Value& input, const Arguments& a) { return chosen(i, input, a, false, false); }
Value selectattr(Interpreter& i, const Value& input, const Arguments& a) { return chosen(i, input, a, true, true); }
Value rejectattr(Interpreter& i, const Value& input, const Arguments& a) { return chosen(i, input, a, false, true); }

Value groupby(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const auto bound = arguments.bind("groupby", {"attribute", "default", "case_sensitive"});
  if (bound[0] == nullptr) throw TemplateError("groupby needs an attribute");
  const bool case_sensitive = bound[2] != nullptr && truthy(*bound[2]);
  const std::vector<Value> all = charged_items(interpreter, input);
  std::vector<Value> values;
  std::vector<Value> keys;
  for (const Value& item : all) {
    Value value = member(interpreter, item, bound[0], bound[1]);
    keys.push_back(folded(value, case_sensitive));
    values.push_back(std::move(value));
  }
  std::vector<Value> groups;
  std::vector<Value> group;
  const std::vector<size_t> order = sorted_order(interpreter, keys, false);
  for (size_t at = 0; at < order.size(); ++at) {
    group.push_back(all[order[at]]);
    if (at + 1 < order.size() && values_equal(keys[order[at]], keys[order[at + 1]])) continue;
    groups.push_back(Value::tuple({values[order[at + 1 - group.size()]], Value::list(std::move(group))}));
    group.clear();
  }
  return Value::list(std::move(groups));
}

Value batch(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const auto bound = arguments.bind("batch", {"linecount", "fill_with"});
  const int64_t size = bound[0] != nullptr ? to_integer(*bound[0], "batch: linecount") : 0;
  if (size < 1 || size > 100'000) throw TemplateError("batch: the line count must be 1 to 100000");
  std::vector<Value> batches;
  std::vector<Value> current;
  for (Value& item : charged_items(interpreter, input)) {
    if (static_cast<int64_t>(current.size()) == size) batches.push_back(Value::list(std::exchange(current, {})));
    current.push_back(std::move(item));
  }
  if (!current.empty()) {
    if (bound[1] != nullptr && !bound[1]->is_none()) current.resize(static_cast<size_t>(size), *bound[1]);
    batches.push_back(Value::list(std::move(current)));
  }
  return generator(std::move(batches));
}

Value slice_filter(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const auto bound = arguments.bind("slice", {"slices", "fill_with"});
  const int64_t count = bound[0] != nullptr ? to_integer(*bound[0], "slice: slices") : 0;
  if (count < 1 || count > 100'000) throw TemplateError("slice: the number of slices must be 1 to 100000");
  const std::vector<Value> all = charged_items(interpreter, input);
  const size_t slices = static_cast<size_t>(count);
  const size_t per_slice = all.size() / slices;
  const size_t with_extra = all.size() % slices;
  std::vector<Value> result;
  size_t at = 0;
  for (size_t index = 0; index < slices; ++index) {
    const size_t size = per_slice + (index < with_extra ? 1 : 0);
    std::vector<Value> part(all.begin() + static_cast<std::ptrdiff_t>(at),
                            all.begin() + static_cast<std::ptrdiff_t>(at + size));
    at += size;
    if (bound[1] != nullptr && !bound[1]->is_none() && index >= with_extra) part.push_back(*bound[1]);
    result.push_back(Value::list(std::move(part)));
  }
  interpreter.charge(slices);
  return generator(std::move(result));
}

Value attr(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Value* name = arguments.bind("attr", {"name"})[0];
  if (name == nullptr) throw TemplateError("attr needs a name");
  const std::string wanted = to_text(*name).to_string();
  // Attributes only: entries of a dict are none.
  if (input.is_dict() && !has_method(input, wanted)) {
    return Value::undefined(fmt::format("'dict object' has no attribute '{}'", wanted));
  }
  return interpreter.attribute(input, wanted);
}

}  // namespace

std::vector<NamedFilter> sequence_filters() {
  return {{"attr", attr},
          {"batch", batch},
          {"count", length},
          {"d", default_value},
          {"default", default_value},
          {"dictsort", dictsort},
          {"first", first},
          {"groupby", groupby},
          {"items", items},
          {"join", join},
          {"last", last},
          {"length", length},
          {"list", list},
          {"map", map},
          {"max", max},
          {"min", min},
          {"reject", reject},
          {"rejectattr", rejectattr},
          {"reverse", reverse},
          {"select", select},
          {"selectattr", selectattr},
          {"slice", slice_filter},
          {"sort", sort},
          {"sum", sum},
          {"unique", unique}};
}

}  // namespace warmpath::jinja
