// config_reference_markdown: the manual of the configuration file, written from the schema that parses it, so that the
// two cannot disagree. docs/configuration.md is this text, and a test compares them. Thread safety: pure functions.
#pragma once

#include <string>

#include "config/schema.h"

namespace warmpath {

// `defaults` must be a default-constructed object of the schema's struct.
std::string config_reference_markdown(const StructSpec& spec, const void* defaults);

template <typename T>
std::string config_reference_markdown(const StructSchema<T>& schema) {
  const T defaults{};
  return config_reference_markdown(*schema.spec(), &defaults);
}

}  // namespace warmpath
