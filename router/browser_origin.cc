#include "router/browser_origin.h"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>
#include <string>

#include "router/http.h"

namespace warmpath {

namespace {

bool is_address(int family, std::string_view text) {
  unsigned char bytes[sizeof(in6_addr)];
  return text.size() < INET6_ADDRSTRLEN && inet_pton(family, std::string(text).c_str(), bytes) == 1;
}

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// The host of "HOST", "HOST:PORT" and "[V6]:PORT"; nullopt for anything else, user names and paths included.
std::optional<std::string_view> host_of(std::string_view authority) {
  std::string_view host = authority, rest;
  if (authority.starts_with('[')) {
    const size_t bracket = authority.find(']');
    if (bracket == std::string_view::npos) return std::nullopt;
    host = authority.substr(1, bracket - 1);
    rest = authority.substr(bracket + 1);
    if (!is_address(AF_INET6, host)) return std::nullopt;
  } else {
    const size_t colon = std::min(authority.find(':'), authority.size());
    host = authority.substr(0, colon);
    rest = authority.substr(colon);
    constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
    if (host.empty() || host.find_first_not_of(kAllowed) != std::string_view::npos) return std::nullopt;
  }
  if (!rest.empty() && !is_port(rest.substr(1))) return std::nullopt;
  return host;
}

}  // namespace

bool is_foreign_origin(std::string_view origin) {
  if (origin.empty()) return false;
  const size_t scheme_end = origin.find("://");
  if (scheme_end == std::string_view::npos) return true;  // "null": a sandboxed frame or a file
  const std::optional<std::string_view> host = host_of(origin.substr(scheme_end + 3));
  if (!host) return true;
  const bool is_127 = host->starts_with("127.") && is_address(AF_INET, *host);
  return !is_127 && *host != "::1" && !http_iequals(*host, "localhost");
}

bool is_foreign_host(std::string_view host, const std::vector<std::string>& own_names) {
  if (host.empty()) return false;
  const std::optional<std::string_view> name = host_of(host);
  if (!name) return true;
  if (is_address(AF_INET, *name) || is_address(AF_INET6, *name) || http_iequals(*name, "localhost")) return false;
  return std::none_of(own_names.begin(), own_names.end(),
                      [&](const std::string& own) { return http_iequals(own, *name); });
}

}  // namespace warmpath
