// Ids for requests and answers: 24 hexadecimal digits that nobody can guess. Thread safety: any thread.
#pragma once

#include <string>
#include <string_view>

namespace warmpath {

// `prefix` and the digits.
std::string random_id(std::string_view prefix);

}  // namespace warmpath
