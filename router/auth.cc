#include "router/auth.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <cstring>
#include <fstream>
#include <map>

#include "router/salt_file.h"

namespace warmpath {

namespace {

// A bucket chosen by the digest tells a timing attacker nothing about the key: SHA-256 lies between, and the comparison
// inside the bucket takes constant time.
uint64_t bucket_of(const KeyDigest& digest) {
  uint64_t bucket = 0;
  std::memcpy(&bucket, digest.data(), sizeof bucket);
  return bucket;
}

bool starts_with_bearer(std::string_view value) {
  constexpr std::string_view kBearer = "bearer ";
  if (value.size() < kBearer.size()) return false;
  for (size_t at = 0; at < kBearer.size(); ++at) {
    const char c = value[at];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) != kBearer[at]) return false;
  }
  return true;
}

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // some editors begin a file with it

struct KeyLine {
  std::string tenant;
  KeyDigest digest{};
  bool admin = false;
};

// False when the line is not TENANT:HEX[:admin].
bool parse_key_line(std::string_view line, KeyLine& key) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_tenant_name(line.substr(0, colon))) return false;
  key.tenant = line.substr(0, colon);
  std::string_view hex = line.substr(colon + 1);
  if (const size_t more = hex.find(':'); more != std::string_view::npos) {
    if (hex.substr(more) != ":admin") return false;
    key.admin = true;
    hex = hex.substr(0, more);
  }
  const auto bytes = bytes_from_hex(hex);
  if (!bytes || bytes->size() != key.digest.size()) return false;
  std::memcpy(key.digest.data(), bytes->data(), bytes->size());
  return true;
}

Result<std::vector<KeyLine>> read_key_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return failed_precondition(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  std::vector<KeyLine> lines;
  std::string text;
  std::map<KeyDigest, size_t> seen;  // to the line's index
  for (int number = 1; std::getline(file, text); ++number) {
    if (number == 1 && text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    const std::string_view line = trim(std::string_view(text).substr(0, text.find('#')));
    if (line.empty()) continue;
    KeyLine& key = lines.emplace_back();
    if (!parse_key_line(line, key)) {
      // The line itself is not shown: someone may have put a plain key there.
      return failed_precondition(fmt::format(
          "{} line {}: expected TENANT:SHA256-HEX or TENANT:SHA256-HEX:admin (make one with `warmpath keys add`)", path,
          number));
    }
    const auto [first, fresh] = seen.emplace(key.digest, lines.size() - 1);
    if (fresh) continue;
    // Written twice is no harm; meaning two things is.
    if (lines[first->second].tenant != key.tenant || lines[first->second].admin != key.admin) {
      return failed_precondition(fmt::format(
          "{} line {}: this key stands further up with another tenant or right; keep one of the two", path, number));
    }
    lines.pop_back();
  }
  if (lines.empty()) return failed_precondition(path + " holds no keys");
  return lines;
}

}  // namespace

bool is_tenant_name(std::string_view name) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !name.empty() && name.size() <= 64 && name.find_first_not_of(kAllowed) == std::string_view::npos;
}

KeyDigest digest_key(std::string_view key) {
  KeyDigest digest;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  return digest;
}

std::string key_file_line(std::string_view tenant, std::string_view key, bool admin) {
  const KeyDigest digest = digest_key(key);
  const std::string_view bytes(reinterpret_cast<const char*>(digest.data()), digest.size());
  return fmt::format("{}:{}{}", tenant, bytes_to_hex(bytes), admin ? ":admin" : "");
}

std::string random_key() {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::string key = "wp-";
  while (key.size() < 3 + 43) {
    for (const char byte : random_bytes(64)) {
      const size_t letter =
          static_cast<uint8_t>(byte) & 63;  // 62 and 63 are thrown away, so that letters are equally likely
      if (letter < kLetters.size() && key.size() < 3 + 43) key += kLetters[letter];
    }
  }
  return key;
}

Status check_key_file(const std::string& path) { return read_key_file(path).status(); }

std::shared_ptr<const Auth> Auth::open_to_all() {
  auto auth = std::make_shared<Auth>();
  auth->open_ = true;
  auth->everybody_ = {std::make_shared<const Tenant>(Tenant{"default", ""}), true};
  return auth;
}

Result<std::shared_ptr<const Auth>> Auth::load(const std::string& key_file, const std::string& state_file) {
  const Result<std::vector<KeyLine>> read = read_key_file(key_file);
  if (!read.ok()) return Status(read.status().code(), "auth.keys: " + read.status().message());
  const std::vector<KeyLine>& lines = *read;
  std::vector<std::string> tenants;
  for (const KeyLine& line : lines) tenants.push_back(line.tenant);
  Result<SaltsByTenant> salts = load_or_create_salts(state_file, tenants);
  if (!salts.ok()) return salts.status();

  auto auth = std::make_shared<Auth>();
  std::map<std::string, std::shared_ptr<const Tenant>> by_name;
  for (const KeyLine& line : lines) {
    std::shared_ptr<const Tenant>& tenant = by_name[line.tenant];
    if (!tenant) tenant = std::make_shared<const Tenant>(Tenant{line.tenant, salts->at(line.tenant)});
    auth->keys_.emplace(bucket_of(line.digest), Key{line.digest, {tenant, line.admin}});
  }
  return std::shared_ptr<const Auth>(std::move(auth));
}

std::optional<Identity> Auth::identify_key(std::string_view key) const {
  if (open_) return everybody_;
  if (key.empty()) return std::nullopt;
  const KeyDigest digest = digest_key(key);
  const auto [first, last] = keys_.equal_range(bucket_of(digest));
  for (auto at = first; at != last; ++at) {
    if (CRYPTO_memcmp(at->second.digest.data(), digest.data(), digest.size()) == 0) return at->second.identity;
  }
  return std::nullopt;
}

std::optional<Identity> Auth::identify(const HttpRequest& request) const {
  if (open_) return everybody_;
  const std::string_view authorization = request.header("authorization");
  if (starts_with_bearer(authorization)) return identify_key(trim(authorization.substr(7)));
  return identify_key(request.header("x-api-key"));
}

}  // namespace warmpath
