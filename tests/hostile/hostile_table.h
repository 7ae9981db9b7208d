// A table of hostile requests and the answers they must get, and the client that goes through it.
//
// A table is a YAML list of rows:
//   name     what is hostile about it
//   send     the exact bytes; or instead
//   post     a path, with `json` as the body (and `type`, default application/json, and `headers`, whole lines)
//   get      a path, with `headers`
//   method   replaces POST or GET in the latter two
//   listener `admin` for the admin listener; default: the main one
//   status   the expected status, a list of the statuses of successive answers on the connection, where an inner list
//            means any of these
//   body     `error`: an OpenAI error object (the default from 400 on); `json`: any JSON; `any`; `empty`
//   code, param, error_type   what the (last) error object must hold
//   header   names (one or a list) that the last answer must carry
//   closes   true: the server closes behind the last answer
//   pieces   the bytes are sent in pieces of so many
//   then     close, reset or half_close right after sending, without waiting for an answer
//
// In `send`, `post`, `get`, `json` and `headers`: <<N*TEXT>> repeats, <<hex:00ff>> is raw bytes, and <<NAME>> is one of
// the variables given to the loader. They nest.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace warmpath {

struct HostileRow {
  std::string name;
  std::string bytes;
  bool admin = false;
  std::vector<std::vector<int>> statuses;  // per answer: the allowed ones; empty when `then` is set
  std::string body, code, param, error_type;
  std::vector<std::string> headers;
  bool closes = false;
  size_t pieces = 0;
  std::string then;
};

using HostileVariables = std::map<std::string, std::string>;

Result<std::vector<HostileRow>> load_hostile_table(const std::string& path, const HostileVariables& variables);

// Plays one row against a server on 127.0.0.1. Returns what was wrong with the answer; empty = as expected.
std::string play_hostile_row(const HostileRow& row, uint16_t port);

// `ok`, `ok_len` (decimal) and `ok_hex` for a valid body.
HostileVariables hostile_variables(const std::string& ok_body);

}  // namespace warmpath
