// Which requests a web page elsewhere may have sent.
#include "router/browser_origin.h"

#include <gtest/gtest.h>

namespace warmpath {
namespace {

TEST(BrowserOrigin, PagesOfThisMachineAreAtHome) {
  for (const char* origin : {"", "http://localhost:3000", "http://localhost", "https://127.0.0.1",
                             "http://127.8.9.1:80", "http://[::1]:8080", "http://LocalHost:1", "tauri://localhost"}) {
    EXPECT_FALSE(is_foreign_origin(origin)) << origin;
  }
}

TEST(BrowserOrigin, EverythingElseIsForeign) {
  for (const char* origin : {"null",
                             "http://evil.com",
                             "http://evil.com:8080",
                             "http://127.0.0.1:1@evil.com",
                             "http://localhost@evil.com",
                             "http://localhost:1@evil.com",
                             "http://127.0.0.1.evil.com",
                             "http://localhost.evil.com",
                             "http://[::1].evil.com",
                             "http://[::1]evil.com",
                             "http://127.0.0.1/",
                             "http://localhost/@evil.com",
                             "http://localhost:80:80",
                             "http://localhost:",
                             "http://localhost:x",
                             "http://127.1",
                             "http://127.0.0.256",
                             "http://[::2]",
                             "http://[::1",
                             "://",
                             "http://",
                             "http:// localhost",
                             "127.0.0.1",
                             "http://localhost http://evil.com",
                             "http://0.0.0.0"}) {
    EXPECT_TRUE(is_foreign_origin(origin)) << origin;
  }
}

TEST(BrowserOrigin, AHostIsOursOrAnAddress) {
  for (const char* host : {"", "localhost", "localhost:9090", "127.0.0.1:9090", "10.1.2.3", "[::1]:9090", "[fe80::1]",
                           "Gateway.Internal:9090", "0.0.0.0:1"}) {
    EXPECT_FALSE(is_foreign_host(host, {"gateway.internal"})) << host;
  }
  for (const char* host : {"evil.com", "evil.com:9090", "localhost.evil.com", "127.0.0.1.evil.com", "[::1].evil.com",
                           "127.0.0.1@evil.com", "gateway.internal.evil.com", "localhost:9090:1", "a b", "[x]"}) {
    EXPECT_TRUE(is_foreign_host(host, {"gateway.internal"})) << host;
  }
}

}  // namespace
}  // namespace warmpath
