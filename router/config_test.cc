// The configuration file, as users write it.
#include "router/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warmpath {
namespace {

using ::testing::HasSubstr;

ConfigResult<GatewayConfig> parse(const std::string& text) { return parse_config(gateway_schema(), text, "f.yaml"); }

constexpr const char* kSmall = R"(
listen: 127.0.0.1:8080
admin: 127.0.0.1:9090
models:
  - name: smollm2
    policy: predicted_seconds
    endpoints:
      - unix:/run/warmpath/replica-0.sock
      - {address: "10.0.0.2:7000", token_file: /etc/token}
)";

TEST(GatewayConfigFile, TheReadmesExample) {
  const auto result = parse(kSmall);
  ASSERT_TRUE(result.ok()) << result.error_text();
  EXPECT_EQ(result.config->admin.listen, "127.0.0.1:9090");
  const ModelConfig& model = result.config->models.at(0);
  EXPECT_EQ(model.policy.name, "predicted_seconds");
  EXPECT_EQ(model.endpoints.at(0).address, "unix:/run/warmpath/replica-0.sock");
  EXPECT_EQ(model.endpoints.at(1).token_file, "/etc/token");
}

TEST(GatewayConfigFile, LimitsOfTheHttpServerAreSetHere) {
  const auto result = parse(std::string(kSmall) + "limits: {max_body_bytes: 1MiB, drain_s: 5, max_attempts: 2}\n");
  ASSERT_TRUE(result.ok()) << result.error_text();
  EXPECT_EQ(result.config->limits.max_body_bytes, 1u << 20);
  EXPECT_EQ(result.config->limits.drain_s, 5);
  EXPECT_EQ(result.config->limits.max_attempts, 2);
}

TEST(GatewayConfigFile, MistakesAreExplained) {
  const std::pair<std::string, const char*> rows[] = {
      {"listen: 0.0.0.0:8080\n", "there are no keys"},
      {"listen: \"[::]:8080\"\n", "there are no keys"},
      {"admin: 0.0.0.0:1\n", "there are no keys"},
      {"listen: 8080\n", "is no HOST:PORT"},
      {"listen: ::1:8080\n", "is no HOST:PORT"},
      {"default_model: nobody\n", "no model is called"},
      {"lisen: 127.0.0.1:1\n", "listen"},
  };
  const std::string models = "models: [{name: m, endpoints: [a]}]\n";
  for (const auto& [text, expected] : rows) {
    const auto result = parse(text + models);
    EXPECT_FALSE(result.ok()) << text;
    EXPECT_THAT(result.error_text(), HasSubstr(expected)) << text;
  }
  EXPECT_THAT(parse("models: [{name: m, aliases: [x], endpoints: [a]}, {name: x, endpoints: [b]}]\n").error_text(),
              HasSubstr("already belongs to m"));
  EXPECT_FALSE(parse("models: []\n").ok());
  EXPECT_TRUE(parse("listen: 0.0.0.0:80\nauth: {insecure_no_auth: true}\n" + models).ok());
  EXPECT_TRUE(parse("listen: 0.0.0.0:80\nauth: {keys: /etc/keys}\n" + models).ok());
}

TEST(GatewayConfigFile, Loopback) {
  EXPECT_TRUE(is_loopback({"127.0.0.1", 1}));
  EXPECT_TRUE(is_loopback({"::1", 1}));
  EXPECT_FALSE(is_loopback({"127.example.org", 1}));
  EXPECT_FALSE(is_loopback({"0.0.0.0", 1}));
}

}  // namespace
}  // namespace warmpath
