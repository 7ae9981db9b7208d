// The JSON of GET /v1/models: one shape that the OpenAI and the Anthropic SDKs both read.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "router/fleet.h"

namespace warmpath {

// Every model under its name and each alias.
std::string model_list_json(const Fleet& fleet, int64_t created);
// The object for one name; "" when nobody is called that.
std::string model_json(const Fleet& fleet, std::string_view name, int64_t created);

}  // namespace warmpath
