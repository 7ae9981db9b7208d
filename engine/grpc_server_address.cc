#include "engine/grpc_server_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

namespace warmpath {

namespace {

constexpr std::string_view kUnixPrefix = "unix:";

Status malformed(std::string_view text) {
  return invalid_argument(fmt::format(
      "'{}' is not an address to listen on; write unix:/path/to/socket, 127.0.0.1:PORT or [::1]:PORT", text));
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool is_numeric_host(const std::string& host) {
  in6_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1 || inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  ListenAddress address;
  if (text.starts_with(kUnixPrefix)) {
    address.unix_path = text.substr(kUnixPrefix.size());
    // gRPC also takes unix:///path.
    if (address.unix_path.starts_with("///")) address.unix_path.erase(0, 2);
    if (address.unix_path.empty() || address.unix_path.find('\0') != std::string::npos) return malformed(text);
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return malformed(text);
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return malformed(text);  // IPv6 without brackets: where the port starts is a guess
  }
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size() || address.port < 0 || address.port > 65535) {
    return malformed(text);
  }
  address.host = host;
  if (address.host != "localhost" && !is_numeric_host(address.host)) return malformed(text);
  address.kind = is_loopback(address.host) ? ListenAddress::Kind::kLoopback : ListenAddress::Kind::kRemote;
  return address;
}

std::string to_string(const ListenAddress& address) {
  if (address.kind == ListenAddress::Kind::kUnix) return std::string(kUnixPrefix) + address.unix_path;
  const bool v6 = address.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", address.host, v6 ? "]" : "", address.port);
}

Status check_listen_address(const ListenAddress& address, bool has_token, bool allow_remote) {
  if (address.kind == ListenAddress::Kind::kUnix) return {};
  if (address.kind == ListenAddress::Kind::kRemote && !allow_remote) {
    return failed_precondition(
        fmt::format("{} can be reached from other machines, and prompts and the token travel there in clear text; "
                    "listen on unix:/path or 127.0.0.1, or allow it with --allow-remote on a network that you trust",
                    to_string(address)));
  }
  if (!has_token) {
    return failed_precondition(
        fmt::format("{} can be reached by every user of this machine; give a token file (--token-file FILE), or listen "
                    "on unix:/path, which only your own processes can open",
                    to_string(address)));
  }
  return {};
}

Status claim_unix_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return invalid_argument(
        fmt::format("the socket path {} has {} bytes; the kernel takes at most {}: use a shorter one", path,
                    path.size(), sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored)) {
    return not_found(fmt::format("the folder of the socket {} does not exist; create it first", path));
  }
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode)) {
    return failed_precondition(fmt::format("{} exists and is no socket; it is left alone: choose another path", path));
  }
  const FileDescriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (probe.get() >= 0 &&
      (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 || errno == EAGAIN)) {
    return failed_precondition(fmt::format("another process listens on {}; stop it, or choose another path", path));
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return failed_precondition(
        fmt::format("the stale socket {} cannot be removed: {}", path, std::strerror(errno)));  // NOLINT
  }
  return {};
}

}  // namespace warmpath
