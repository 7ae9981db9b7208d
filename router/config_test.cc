// The configuration file, as users write it.
#include "router/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "router/config_checks.h"

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

TEST(GatewayConfigFile, EverythingThatIsWrongIsToldAtOnceAndAtItsPlace) {
  const std::string text =
      "listen: 0.0.0.0:80\n"
      "admin: {listen: nowhere}\n"
      "default_model: smolm\n"
      "limits: {drain_s: -1}\n"
      "models:\n"
      "  - {name: smollm, aliases: [a, b], endpoints: [\"unix:/x\", foo]}\n"
      "  - name: other\n"
      "    aliases:\n"
      "      - other\n"
      "      - b\n"
      "    tokenizer: /nonexistent/t.gguf\n"
      "    endpoints: [{address: \"h:1\", token_file: /nonexistent/token}]\n";
  GatewayConfig config;
  std::vector<ConfigError> errors;
  parse_config_into(*gateway_schema().spec(), text, read_environment, &config, errors,
                    [&](CheckContext& context) { report_config_problems(find_reference_problems(config), context); });
  const std::string found = format_config_errors("f", errors);
  for (const char* expected :
       {"f:1:9: listen: 0.0.0.0:80 can be reached", "f:2:17: admin.listen: \"nowhere\" is no HOST:PORT",
        "f:3:16: default_model: no model is called \"smolm\"; did you mean \"smollm\"?",
        "f:4:19: limits.drain_s: must be at least 0", "f:6:60: models[0].endpoints[1].address: \"foo\" is no address",
        "f:9:9: models[1].aliases[0]: the name \"other\" already belongs to other",
        "f:10:9: models[1].aliases[1]: the name \"b\" already belongs to smollm",
        "f:11:16: models[1].tokenizer: cannot read /nonexistent/t.gguf: No such file",
        "f:12:46: models[1].endpoints[0].token_file: cannot read /nonexistent/token"}) {
    EXPECT_THAT(found, HasSubstr(expected));
  }
  EXPECT_EQ(errors.size(), 9u) << found;
}

TEST(GatewayConfigFile, AMistakeIsToldOnce) {
  for (const char* text : {"modles: [{name: m, endpoints: [a]}]\ndefault_model: m\n",
                           "default_model: m\nmodels: [{nmae: m, endpoints: [a]}]\n", "models: 7\ndefault_model: m\n",
                           "models: [{name: \"\", endpoints: [a]}]\n",
                           "models: [{name: m, endpoints: [a]}, {name: m, endpoints: [b]}]\n"}) {
    const auto result = parse(text);
    EXPECT_EQ(result.errors.size(), 1u) << result.error_text();
  }
}

TEST(GatewayConfigFile, Loopback) {
  EXPECT_TRUE(is_loopback({"127.0.0.1", 1}));
  EXPECT_TRUE(is_loopback({"::1", 1}));
  EXPECT_FALSE(is_loopback({"127.example.org", 1}));
  EXPECT_FALSE(is_loopback({"0.0.0.0", 1}));
}

}  // namespace
}  // namespace warmpath
