// Reading one field of a request body with simdjson's on-demand parser: the right type and range, or a WireError that
// names the field. Included by this folder's .cc files only (simdjson is a large header).
//
// Every reader returns false after filling `error`. On-demand parsing checks only what it reads; what is skipped is
// checked for balance and UTF-8, and message text is parsed in full where it is used.
// Thread safety: none needed; a parser belongs to one thread (parse_body).
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "router/wire/wire_error.h"

namespace warmpath {

using JsonValue = simdjson::ondemand::value;
using JsonType = simdjson::ondemand::json_type;

// Why reading stopped: a complete answer for the client, or a syntax error whose place parse_body() adds.
struct JsonFailure {
  WireError error;
  simdjson::error_code syntax = simdjson::SUCCESS;
};

// A field being read: its value, its name as errors spell it, and where a failure goes.
struct JsonField {
  JsonValue& value;
  std::string_view name;
  JsonFailure& failure;

  JsonField item(JsonValue& item_value) const { return {item_value, name, failure}; }

  bool refuse(std::string_view what) const;         // "'NAME' WHAT"
  bool refuse(WireError error) const;               // always false
  bool malformed(simdjson::error_code code) const;  // not JSON
  bool type(JsonType& out) const;

  bool boolean(bool& out) const;
  bool integer(int64_t low, int64_t high, int64_t& out) const;
  bool number(double low, double high, double& out) const;
  bool text(std::string_view& out) const;  // unescaped; lives until the thread's next parse_body()
  bool text(std::string& out) const;
  // The bytes of an object or array as they stand in the body.
  bool raw(std::string_view& out) const;
  // The objects of an array as they stand in the body; more than `most` are refused, and so is anything else.
  bool objects(size_t most, std::vector<std::string_view>& out) const;
  // Calls `each` for every element / member; it returns false to stop with its own error.
  bool elements(const std::function<bool(JsonValue&, size_t)>& each) const;
  bool members(const std::function<bool(std::string_view key, JsonValue&)>& each) const;
};

// Calls `each` for every member of the body's one object, in order; nulls are left out, because on this wire null means
// absent. `body` is followed by at least 64 readable bytes. Errors of the syntax name the byte.
bool parse_body(std::string_view body, WireError& error, const std::function<bool(const JsonField&)>& each);

}  // namespace warmpath
