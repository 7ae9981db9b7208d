// GenerationOptions: the fields that chat completions and completions share, read and range-checked.
//
// A field that changes the output and is not supported is refused unless it holds its neutral value; a field that
// cannot change the output (user, metadata, store, ...) is ignored, and so is any field this server has never heard of.
// Thread safety: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "proto/sampling.h"
#include "router/wire/output_rules.h"
#include "router/wire/wire_error.h"

namespace warmpath {

struct JsonField;

struct GenerationOptions {
  std::string model;  // empty: absent
  SamplingParams sampling;
  bool stream = false;
  bool include_usage = false;    // stream_options.include_usage
  std::string cache_salt;        // keeps this caller's cached prefixes apart within its tenant
  std::string prompt_cache_key;  // a hint that names the session
  OutputRules rules;             // what the answer must look like
};

enum class FieldOutcome {
  kRead,     // known and fine (or known and harmless)
  kUnknown,  // not a shared field: the wire's own, or nobody's
  kRefused,  // the error is filled
};

FieldOutcome read_shared_field(const JsonField& field, GenerationOptions& options);

// Stop strings under whatever name: a string or an array of strings.
bool read_stop(const JsonField& field, GenerationOptions& options);

// For fields whose only supported value is "nothing": false unless the value is false, empty, or the number `neutral`.
bool read_neutral(const JsonField& field, std::optional<double> neutral, std::string_view why);

}  // namespace warmpath
