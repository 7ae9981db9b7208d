#include "cli/byte_size.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

namespace warmpath {

Result<int64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  double factor = 0;
  for (const auto& [name, value] : {std::pair<std::string_view, double>{"", 1},
                                    {"B", 1},
                                    {"KiB", 1024.0},
                                    {"MiB", 1048576.0},
                                    {"GiB", 1073741824.0},
                                    {"TiB", 1099511627776.0}}) {
    if (unit == name) factor = value;
  }
  if (error != std::errc() || factor == 0 || !std::isfinite(number) || number <= 0 || number * factor > 1e18) {
    return invalid_argument(fmt::format("'{}' is not a size; write 512MiB, 1.5GiB or a number of bytes", text));
  }
  return static_cast<int64_t>(number * factor);
}

}  // namespace warmpath
