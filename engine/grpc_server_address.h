// Where a replica's gRPC server listens, and who may reach it.
//
//   unix:/run/warmpath/replica-0.sock   mode 0600: the user's own processes
//   127.0.0.1:7001, [::1]:7001          loopback: every user of the machine could connect, so a bearer token is
//   required 0.0.0.0:7001                        the network: refused unless allowed, because the token travels in
//   clear text
//
// Thread safety: pure functions, but for claim_unix_socket (the file system).
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace warmpath {

struct ListenAddress {
  enum class Kind { kUnix, kLoopback, kRemote } kind = Kind::kUnix;
  std::string unix_path;  // for kUnix
  std::string host;       // otherwise, without brackets
  int port = 0;           // 0 = any free one
};

// Messages show the three forms above.
Result<ListenAddress> parse_listen_address(std::string_view text);

// "unix:/path", "127.0.0.1:7001", "[::1]:7001": as gRPC and people write it.
std::string to_string(const ListenAddress& address);

// Refuses a remote address that is not allowed, and a TCP address without a token.
Status check_listen_address(const ListenAddress& address, bool has_token, bool allow_remote);

// Removes the socket of a process that is gone. Refuses when one still listens, when the path is another kind of file
// or too long for the kernel, or when its folder does not exist.
Status claim_unix_socket(const std::string& path);

}  // namespace warmpath
