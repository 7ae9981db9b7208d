// Who is asking: API keys to tenants, and each tenant's salt.
//
// The key file holds one key a line, `TENANT:SHA256-OF-THE-KEY-IN-HEX[:admin]`; `#` starts a comment. A tenant may have
// several keys, so that they can be rotated; an admin key also reads other tenants' receipts. Keys themselves are never
// stored. Each tenant's salt (128 random bits, part of its chains' roots, so that no tenant can probe another's cache)
// lives in a state file of mode 0600, so that a restart keeps the caches warm.
// Thread safety: immutable once loaded; any thread. A reload builds a new Auth.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "router/http.h"

namespace warmpath {

using KeyDigest = std::array<uint8_t, 32>;

struct Tenant {
  std::string name;
  std::string salt;  // bytes
};

struct Identity {
  std::shared_ptr<const Tenant> tenant;
  bool admin = false;
};

// Names of tenants: 1 to 64 of [A-Za-z0-9._-].
bool is_tenant_name(std::string_view name);

KeyDigest digest_key(std::string_view key);
// A line for the key file.
std::string key_file_line(std::string_view tenant, std::string_view key, bool admin = false);
// Ok when every line of the file is a key's and there is at least one; else names file and line.
Status check_key_file(const std::string& path);
// A fresh key: "wp-" and 43 random base62 characters (256 bits).
std::string random_key();

class Auth {
 public:
  // Without keys: everybody is the tenant "default", with an empty salt (one tenant needs no protection from itself,
  // and gateways that share replicas agree on it) and reads all receipts.
  static std::shared_ptr<const Auth> open_to_all();
  // Reads `key_file`, and reads and completes `state_file`. Errors name file and line.
  static Result<std::shared_ptr<const Auth>> load(const std::string& key_file, const std::string& state_file);

  bool required() const { return !open_; }
  // From `Authorization: Bearer KEY` or `x-api-key: KEY`; nullopt when neither names a known key.
  std::optional<Identity> identify(const HttpRequest& request) const;
  std::optional<Identity> identify_key(std::string_view key) const;
  size_t keys() const { return keys_.size(); }

 private:
  struct Key {
    KeyDigest digest;
    Identity identity;
  };

  bool open_ = false;
  Identity everybody_;
  std::unordered_multimap<uint64_t, Key> keys_;  // by the digest's first 8 bytes
};

}  // namespace warmpath
