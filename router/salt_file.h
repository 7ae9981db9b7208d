// The state file of tenants' salts: one `TENANT SALT-IN-HEX` a line, mode 0600, replaced atomically.
// Thread safety: pure functions; processes that share one file wait for each other (flock on FILE.lock).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace warmpath {

using SaltsByTenant = std::map<std::string, std::string>;  // salts as bytes, 16 each

// Salts of all `tenants`: those in the file, and new random ones for the others, which are added to the file (created
// if absent) before this returns. A file that others can read is refused.
Result<SaltsByTenant> load_or_create_salts(const std::string& path, const std::vector<std::string>& tenants);

// `count` bytes from the kernel.
std::string random_bytes(size_t count);
std::string bytes_to_hex(std::string_view bytes);
// nullopt unless `hex` is an even number of hexadecimal digits.
std::optional<std::string> bytes_from_hex(std::string_view hex);

}  // namespace warmpath
