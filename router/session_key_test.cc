#include "router/session_key.h"

#include <gtest/gtest.h>

namespace warmpath {
namespace {

Hash128 key(std::vector<std::pair<std::string_view, std::string_view>> headers, std::string_view tenant = "t",
            std::string_view cache_key = "") {
  HttpRequest request;
  request.headers = std::move(headers);
  return session_key_of(request, tenant, cache_key);
}

TEST(SessionKey, EachAgentsWayOfNamingASession) {
  EXPECT_TRUE(key({}).is_zero());
  EXPECT_FALSE(key({{"Session-Id", "s"}, {"Thread-Id", "x"}}).is_zero());
  EXPECT_FALSE(key({{"X-Claude-Code-Session-Id", "s"}}).is_zero());
  EXPECT_FALSE(key({{"session_id", "s"}}).is_zero());
  EXPECT_FALSE(key({{"x-session-affinity", "ses_1"}}).is_zero());
  EXPECT_FALSE(key({}, "t", "cache-key").is_zero());
}

TEST(SessionKey, SubagentsAndTenantsAreApart) {
  const auto parent = key({{"session-id", "s"}, {"thread-id", "s"}});
  EXPECT_EQ(parent, key({{"session-id", "s"}, {"thread-id", "s"}}, "t", "ignored"));
  EXPECT_NE(parent, key({{"session-id", "s"}, {"thread-id", "child"}}));
  EXPECT_NE(parent, key({{"session-id", "s"}, {"thread-id", "s"}}, "other"));
  EXPECT_NE(key({{"session-id", "session-1"}}), key({{"session-id", "session-12"}}));
  EXPECT_NE(key({{"session-id", "ab"}, {"thread-id", "c"}}), key({{"session-id", "a"}, {"thread-id", "bc"}}));
}

TEST(SessionKey, AbsurdlyLongNamesAreIgnored) {
  const std::string longest(512, 'x');
  const std::string too_long(513, 'x');
  EXPECT_FALSE(key({{"x-session-id", longest}}).is_zero());
  EXPECT_TRUE(key({{"x-session-id", too_long}}).is_zero());
}

}  // namespace
}  // namespace warmpath
