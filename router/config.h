// GatewayConfig: the gateway's configuration file as plain structs, and the schema that fills them.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "config/config.h"
#include "config/difference.h"
#include "policies/policy_rules.h"
#include "router/http_limits.h"
#include "text/added_tokens.h"
#include "text/answer/answer_format.h"

namespace warmpath {

struct AdminConfig {
  std::string listen = "127.0.0.1:9090";  // empty: no admin listener
  std::vector<std::string> hosts;         // names it is reached by, besides addresses and localhost
};

struct AuthConfig {
  std::string keys;               // file of key digests; empty: no keys
  std::string state;              // file of the tenants' salts
  bool insecure_no_auth = false;  // listen beyond this machine without keys
};

struct GatewayLimits : HttpLimits {
  int32_t max_requests = 1024;      // completions in progress; over it: 429
  int32_t max_waiting = 512;        // of those, waiting because every replica is full; over it: 429
  double queue_wait_s = 60;         // how long such a request waits before it gets 429
  double request_timeout_s = 1800;  // from arrival to the last byte; 0 = none
  double keep_alive_s = 10;         // between comments on a silent stream
  double headers_after_s = 10;      // a stream's headers are sent then even without a first token
  int32_t max_attempts = 3;         // replicas tried for one prompt
  double drain_s = 30;              // on SIGTERM, before what is left is aborted
  size_t receipts_bytes = 16 << 20;
};

struct LogConfig {
  std::string level = "info";
  bool access = true;  // one line per request
};

struct IndexConfig {
  size_t max_bytes = size_t{2} << 30;
  double placement_s = 30;        // how long a routed prompt is expected to appear on its replica
  std::string snapshot_file;      // empty: none
  double snapshot_every_s = 300;  // 0: only on shutdown
};

struct EndpointConfig {
  std::string address;     // "unix:/path" or "host:port"
  std::string token_file;  // holds the engine's token; empty: none needed
  Labels labels = {};      // for policies that tell replicas apart
};

enum class MaxTokensRule { kClamp, kRefuse };

// How the model marks up its answers; unset: as its chat template shows.
struct ParsersConfig {
  std::optional<CallFormat> tools;
  std::optional<ReasoningFormat> reasoning;

  bool operator==(const ParsersConfig&) const = default;
};

struct AdmissionConfig {
  bool enabled = false;
  double idle_s = 300;
  double new_session_wait_s = 120;
  double most_wait_s = 300;
  int32_t max_waiting = 1000;

  bool operator==(const AdmissionConfig&) const = default;
};

struct ModelConfig {
  std::string name;
  std::vector<std::string> aliases;
  std::string tokenizer;  // a GGUF file, a folder or a tokenizer.json; empty: fetched from the replica
  ParsersConfig parsers;
  SpecialTokens message_specials = SpecialTokens::kText;
  MaxTokensRule max_tokens_rule = MaxTokensRule::kClamp;
  int64_t encoder_cache_bytes = int64_t{256} << 20;
  PolicyConfig policy;
  std::vector<PolicyRule> policy_rules;
  std::vector<PolicyConfig> shadow_policies;
  AdmissionConfig admission;
  std::vector<EndpointConfig> endpoints;
};

struct GatewayConfig {
  std::string listen = "127.0.0.1:8080";
  int32_t threads = 0;  // 0: one per core
  std::string default_model;
  AdminConfig admin;
  AuthConfig auth;
  GatewayLimits limits;
  LogConfig log;
  IndexConfig index;
  std::vector<ModelConfig> models;
};

const StructSchema<GatewayConfig>& gateway_schema();

struct SocketAddress {
  std::string host;  // without brackets
  uint16_t port = 0;
};
// "127.0.0.1:8080", "[::1]:8080", "localhost:8080"; port 0 picks a free one.
Result<SocketAddress> parse_socket_address(std::string_view text);
// 127.0.0.0/8, ::1, and "localhost".
bool is_loopback(const SocketAddress& address);

}  // namespace warmpath
