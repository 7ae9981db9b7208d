// Methods of Python's str, list and dict, as far as the sandbox that templates are written for lets them be called.
// Methods that change a list are exceptions: that sandbox forbids them, and some templates need them.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "text/jinja/builtins.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/string_format.h"
#include "text/jinja/text_ops.h"
#include "text/unicode.h"

namespace warmpath::jinja {
namespace {

using Method = Value (*)(Interpreter&, const Value& self, const Arguments&);
using Methods = std::unordered_map<std::string_view, Method>;

Value text(std::string bytes) { return Value::string(std::move(bytes), Origin::kTemplate); }

// A string argument; throws when it is something else. Null: not given.
std::optional<std::string> string_argument(const Value* value, std::string_view method) {
  if (value == nullptr || value->is_none()) return std::nullopt;
  if (!value->is_string()) {
    throw TemplateError(fmt::format("{}() wants a string, not {}", method, type_name(*value)));
  }
  return value->as_text().to_string();
}
std::string required_string(const Value* value, std::string_view method) {
  auto given = string_argument(value, method);
  if (!given) throw TemplateError(fmt::format("{}() wants a string", method));
  return *std::move(given);
}
int64_t integer_argument(const Value* value, int64_t fallback, std::string_view method) {
  return value == nullptr || value->is_none() ? fallback : to_integer(*value, method);
}

template <Side kSide>
Value strip_method(Interpreter&, const Value& self, const Arguments& arguments) {
  const auto chars = string_argument(arguments.bind("strip", {"chars"})[0], "strip");
  return Value::string(strip(self.as_text(), chars ? std::optional<std::string_view>(*chars) : std::nullopt, kSide));
}

template <CaseChange kChange>
Value case_method(Interpreter&, const Value& self, const Arguments& arguments) {
  arguments.bind("case change", {});
  return Value::string(change_case(self.as_text(), kChange));
}

template <bool kFromRight>
Value split_method(Interpreter&, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.bind("split", {"sep", "maxsplit"});
  const auto separator = string_argument(bound[0], "split");
  const int64_t limit = integer_argument(bound[1], -1, "split");
  const std::optional<std::string_view> view = separator ? std::optional<std::string_view>(*separator) : std::nullopt;
  return Value::list(kFromRight ? split_right(self.as_text(), view, limit) : split(self.as_text(), view, limit));
}

// startswith and endswith take one string or a tuple of them, and optional bounds.
template <bool kAtStart>
Value affix_method(Interpreter&, const Value& self, const Arguments& arguments) {
  const std::string_view name = kAtStart ? "startswith" : "endswith";
  const auto bound = arguments.bind(name, {"affix", "start", "end"});
  if (bound[0] == nullptr) throw TemplateError(fmt::format("{}() wants a string", name));
  MarkedText part = self.as_text();
  if (bound[1] != nullptr) {
    part = slice(self, *bound[1], bound[2] != nullptr ? *bound[2] : Value::none(), Value::none()).as_text();
  }
  std::string scratch;
  const std::string_view all = part.view(scratch);
  const auto matches = [&](const Value& affix) {
    const std::string wanted = required_string(&affix, name);
    return kAtStart ? all.starts_with(wanted) : all.ends_with(wanted);
  };
  if (!bound[0]->is_list()) return Value::boolean(matches(*bound[0]));
  const auto& items = bound[0]->as_list().items;
  return Value::boolean(std::any_of(items.begin(), items.end(), matches));
}

template <bool kAtStart>
Value remove_affix(Interpreter&, const Value& self, const Arguments& arguments) {
  const std::string affix = required_string(arguments.bind("remove affix", {"affix"})[0], "removeprefix");
  std::string scratch;
  const std::string_view all = self.as_text().view(scratch);
  if (kAtStart) return all.starts_with(affix) ? Value::string(self.as_text().substr(affix.size())) : self;
  return all.ends_with(affix) ? Value::string(self.as_text().substr(0, all.size() - affix.size())) : self;
}

// find, rfind, index, rindex: position in characters; -1 or an error when there is none.
template <bool kLast, bool kMustExist>
Value find_method(Interpreter&, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.bind("find", {"sub", "start", "end"});
  const std::string wanted = required_string(bound[0], "find");
  const int64_t length = length_of(self);
  int64_t start = integer_argument(bound[1], 0, "find");
  start = std::clamp<int64_t>(start < 0 ? start + length : start, 0, length);
  const Value part = slice(self, Value::integer(start), bound[2] != nullptr ? *bound[2] : Value::none(), Value::none());
  std::string scratch;
  const std::string_view all = part.as_text().view(scratch);
  const size_t at = kLast ? all.rfind(wanted) : all.find(wanted);
  if (at == std::string_view::npos) {
    if (kMustExist) throw TemplateError("substring not found");
    return Value::integer(-1);
  }
  return Value::integer(start + static_cast<int64_t>(utf8_length(all.substr(0, at))));
}

Value replace_method(Interpreter&, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.bind("replace", {"old", "new", "count"});
  const std::string old = required_string(bound[0], "replace");
  required_string(bound[1], "replace");
  return Value::string(replace(self.as_text(), old, bound[1]->as_text(), integer_argument(bound[2], -1, "replace")));
}

Value join_method(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Value* items = arguments.bind("join", {"iterable"})[0];
  if (items == nullptr) throw TemplateError("join() wants a list");
  MarkedText joined;
  bool first = true;
  for (const Value& item : items_of(*items)) {
    if (!item.is_string())
      throw TemplateError(fmt::format("sequence item: expected str instance, {} found", type_name(item)));
    if (!std::exchange(first, false)) joined.append(self.as_text());
    joined.append(item.as_text());
    interpreter.charge(1);
  }
  return Value::string(std::move(joined));
}

Value count_method(Interpreter&, const Value& self, const Arguments& arguments) {
  const std::string wanted = required_string(arguments.bind("count", {"sub"})[0], "count");
  if (wanted.empty()) return Value::integer(length_of(self) + 1);
  std::string scratch;
  const std::string_view all = self.as_text().view(scratch);
  int64_t count = 0;
  for (size_t at = 0; (at = all.find(wanted, at)) != std::string_view::npos; at += wanted.size()) ++count;
  return Value::integer(count);
}

template <bool kFromRight>
Value partition_method(Interpreter&, const Value& self, const Arguments& arguments) {
  const std::string separator = required_string(arguments.bind("partition", {"sep"})[0], "partition");
  if (separator.empty()) throw TemplateError("empty separator");
  std::string scratch;
  const std::string_view all = self.as_text().view(scratch);
  const size_t at = kFromRight ? all.rfind(separator) : all.find(separator);
  if (at == std::string_view::npos) {
    return kFromRight ? Value::tuple({text(""), text(""), self}) : Value::tuple({self, text(""), text("")});
  }
  const MarkedText& whole = self.as_text();
  return Value::tuple({Value::string(whole.substr(0, at)), Value::string(whole.substr(at, separator.size())),
                       Value::string(whole.substr(at + separator.size()))});
}

template <Align kAlign>
Value pad_method(Interpreter&, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.bind("justify", {"width", "fillchar"});
  const std::string fill = string_argument(bound[1], "justify").value_or(" ");
  if (utf8_length(fill) != 1) throw TemplateError("The fill character must be exactly one character long");
  return Value::string(pad(self.as_text(), integer_argument(bound[0], 0, "justify"), fill, kAlign));
}

Value zfill_method(Interpreter&, const Value& self, const Arguments& arguments) {
  const int64_t width = integer_argument(arguments.bind("zfill", {"width"})[0], 0, "zfill");
  const std::string whole = self.as_text().to_string();
  const size_t sign = whole.starts_with('-') || whole.starts_with('+') ? 1 : 0;
  MarkedText padded = self.as_text().substr(0, sign);
  padded.append(pad(self.as_text().substr(sign), width - static_cast<int64_t>(sign), "0", Align::kRight));
  return Value::string(std::move(padded));
}

// isalpha and its kin: every character has the property, and there is one.
template <bool (*kHas)(uint32_t)>
Value all_chars(Interpreter&, const Value& self, const Arguments&) {
  std::string scratch;
  const std::string_view all = self.as_text().view(scratch);
  const auto* at = reinterpret_cast<const uint8_t*>(all.data());
  const uint8_t* end = at + all.size();
  bool has = at < end;
  while (has && at < end) {
    const DecodedChar decoded = decode_utf8(at, end);
    has = decoded.code_point != kInvalidCodePoint && kHas(decoded.code_point);
    at += decoded.size;
  }
  return Value::boolean(has);
}
bool is_alpha(uint32_t code) { return properties_of(code).is_letter(); }
bool is_decimal(uint32_t code) { return properties_of(code).category() == GeneralCategory::kNd; }
bool is_digit(uint32_t code) { return is_decimal(code) || code == 0xB2 || code == 0xB3 || code == 0xB9; }
bool is_numeric(uint32_t code) { return properties_of(code).is_number(); }
bool is_alnum(uint32_t code) { return is_alpha(code) || is_numeric(code); }
bool is_space(uint32_t code) { return is_python_space(code); }

template <bool kUpper>
Value is_case(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return Value::boolean(find_test(kUpper ? "upper" : "lower")(interpreter, self, arguments));
}

Value splitlines_method(Interpreter&, const Value& self, const Arguments& arguments) {
  const Value* keep = arguments.bind("splitlines", {"keepends"})[0];
  return Value::list(split_lines(self.as_text(), keep != nullptr && truthy(*keep)));
}

const Methods& string_methods() {
  static const Methods methods = {
      {"strip", strip_method<Side::kBoth>},
      {"lstrip", strip_method<Side::kLeft>},
      {"rstrip", strip_method<Side::kRight>},
      {"upper", case_method<CaseChange::kUpper>},
      {"lower", case_method<CaseChange::kLower>},
      {"casefold", case_method<CaseChange::kLower>},
      {"capitalize", case_method<CaseChange::kCapitalize>},
      {"title", case_method<CaseChange::kTitle>},
      {"swapcase", case_method<CaseChange::kSwap>},
      {"split", split_method<false>},
      {"rsplit", split_method<true>},
      {"splitlines", splitlines_method},
      {"startswith", affix_method<true>},
      {"endswith", affix_method<false>},
      {"removeprefix", remove_affix<true>},
      {"removesuffix", remove_affix<false>},
      {"find", find_method<false, false>},
      {"rfind", find_method<true, false>},
      {"index", find_method<false, true>},
      {"rindex", find_method<true, true>},
      {"replace", replace_method},
      {"join", join_method},
      {"count", count_method},
      {"partition", partition_method<false>},
      {"rpartition", partition_method<true>},
      {"ljust", pad_method<Align::kLeft>},
      {"rjust", pad_method<Align::kRight>},
      {"center", pad_method<Align::kCenter>},
      {"zfill", zfill_method},
      {"format", [](Interpreter&, const Value& self, const Arguments& a) { return brace_format(self, a); }},
      {"isalpha", all_chars<is_alpha>},
      {"isdecimal", all_chars<is_decimal>},
      {"isdigit", all_chars<is_digit>},
      {"isnumeric", all_chars<is_numeric>},
      {"isalnum", all_chars<is_alnum>},
      {"isspace", all_chars<is_space>},
      {"isupper", is_case<true>},
      {"islower", is_case<false>},
      {"isascii", [](Interpreter&, const Value& self,
                     const Arguments&) { return Value::boolean(is_ascii(self.as_text().to_string())); }},
  };
  return methods;
}

Value forbidden(Interpreter&, const Value& self, const Arguments&) {
  throw TemplateError(fmt::format("this method would change the {}, which a chat template may not", type_name(self)));
}

Value append_method(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Value* item = arguments.bind("append", {"object"})[0];
  if (item == nullptr) throw TemplateError("append() wants an item");
  if (item->is_list() && item->as_node() == self.as_node()) throw TemplateError("append() of a list to itself");
  interpreter.list_to_change(self).append(*item);
  if (self.depth() > Value::kMaxDepth) throw TemplateLimit("lists nested too deeply");
  return Value::none();
}

Value extend_method(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Value* more = arguments.bind("extend", {"iterable"})[0];
  if (more == nullptr) throw TemplateError("extend() wants a list");
  const std::vector<Value> items = items_of(*more);
  interpreter.charge(items.size());
  ValueList& list = interpreter.list_to_change(self);
  for (const Value& item : items) list.append(item);
  if (self.depth() > Value::kMaxDepth) throw TemplateLimit("lists nested too deeply");
  return Value::none();
}

Value insert_method(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.bind("insert", {"index", "object"});
  if (bound[0] == nullptr || bound[1] == nullptr) throw TemplateError("insert() wants an index and an item");
  const int64_t given = to_integer(*bound[0], "insert");
  append_method(interpreter, self, Arguments{{*bound[1]}, {}});
  auto& items = self.as_list().items;
  const auto last = static_cast<int64_t>(items.size()) - 1;
  const int64_t at = std::clamp<int64_t>(given < 0 ? given + last : given, 0, last);
  std::rotate(items.begin() + at, items.end() - 1, items.end());
  return Value::none();
}

Value pop_method(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const int64_t given = integer_argument(arguments.bind("pop", {"index"})[0], -1, "pop");
  auto& items = interpreter.list_to_change(self).items;
  const auto count = static_cast<int64_t>(items.size());
  const int64_t at = given < 0 ? given + count : given;
  if (count == 0) throw TemplateError("pop from empty list");
  if (at < 0 || at >= count) throw TemplateError("pop index out of range");
  Value item = std::move(items[static_cast<size_t>(at)]);
  items.erase(items.begin() + at);
  return item;
}

Value remove_method(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Value* wanted = arguments.bind("remove", {"value"})[0];
  if (wanted == nullptr) throw TemplateError("remove() wants a value");
  auto& items = interpreter.list_to_change(self).items;
  const auto found =
      std::find_if(items.begin(), items.end(), [wanted](const Value& item) { return values_equal(item, *wanted); });
  if (found == items.end()) throw TemplateError("list.remove(x): x not in list");
  items.erase(found);
  return Value::none();
}

Value clear_method(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  arguments.bind("clear", {});
  interpreter.list_to_change(self).items.clear();
  return Value::none();
}

Value reverse_method(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  arguments.bind("reverse", {});
  auto& items = interpreter.list_to_change(self).items;
  std::reverse(items.begin(), items.end());
  return Value::none();
}

Value list_index(Interpreter&, const Value& self, const Arguments& arguments) {
  const Value* wanted = arguments.bind("index", {"value"})[0];
  const auto& items = self.as_list().items;
  for (size_t at = 0; wanted != nullptr && at < items.size(); ++at) {
    if (values_equal(items[at], *wanted)) return Value::integer(static_cast<int64_t>(at));
  }
  throw TemplateError("the value is not in the list");
}

Value list_count(Interpreter&, const Value& self, const Arguments& arguments) {
  const Value* wanted = arguments.bind("count", {"value"})[0];
  const auto& items = self.as_list().items;
  return Value::integer(std::count_if(items.begin(), items.end(), [wanted](const Value& item) {
    return wanted != nullptr && values_equal(item, *wanted);
  }));
}

const Methods& list_methods() {
  static const Methods methods = {
      {"append", append_method},
      {"index", list_index},
      {"count", list_count},
      {"copy", [](Interpreter&, const Value& self, const Arguments&) { return Value::list(self.as_list().items); }},
      {"extend", extend_method},
      {"insert", insert_method},
      {"pop", pop_method},
      {"remove", remove_method},
      {"reverse", reverse_method},
      {"sort", forbidden},
      {"clear", clear_method},
  };
  return methods;
}

const Methods& tuple_methods() {
  static const Methods methods = {{"index", list_index}, {"count", list_count}};
  return methods;
}

Value dict_get(Interpreter&, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.bind("get", {"key", "default"});
  if (bound[0] == nullptr) throw TemplateError("get() wants a key");
  if (const Value* entry = self.as_dict().find(*bound[0])) return *entry;
  return bound[1] != nullptr ? *bound[1] : Value::none();
}

const Methods& dict_methods() {
  static const Methods methods = {
      {"get", dict_get},
      {"items",
       [](Interpreter&, const Value& self, const Arguments&) {
         std::vector<Value> pairs;
         for (const auto& [key, value] : self.as_dict().entries) pairs.push_back(Value::tuple({key, value}));
         return Value::sequence(SequenceKind::kDictItems, std::move(pairs));
       }},
      {"keys", [](Interpreter&, const Value& self,
                  const Arguments&) { return Value::sequence(SequenceKind::kDictKeys, items_of(self)); }},
      {"values",
       [](Interpreter&, const Value& self, const Arguments&) {
         std::vector<Value> values;
         for (const auto& [key, value] : self.as_dict().entries) values.push_back(value);
         return Value::sequence(SequenceKind::kDictValues, std::move(values));
       }},
      {"copy",
       [](Interpreter&, const Value& self, const Arguments&) {
         Value copy = Value::dict();
         for (const auto& [key, value] : self.as_dict().entries) copy.as_dict().set(key, value);
         return copy;
       }},
      {"pop", forbidden},
      {"popitem", forbidden},
      {"update", forbidden},
      {"setdefault", forbidden},
      {"clear", forbidden},
  };
  return methods;
}

const Methods* methods_of(const Value& self) {
  if (self.is_string()) return &string_methods();
  if (self.is_list() && self.as_list().type == SequenceKind::kList) return &list_methods();
  if (self.is_list() && self.as_list().type == SequenceKind::kTuple) return &tuple_methods();
  if (self.is_dict()) return &dict_methods();
  return nullptr;
}

}  // namespace

bool has_method(const Value& self, std::string_view name) {
  const Methods* methods = methods_of(self);
  return methods != nullptr && methods->contains(name);
}

Value call_method(Interpreter& interpreter, const Value& self, std::string_view name, const Arguments& arguments) {
  return methods_of(self)->at(name)(interpreter, self, arguments);
}

}  // namespace warmpath::jinja
