#include "router/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "config/nearest_word.h"
#include "router/config_checks.h"

namespace warmpath {

namespace {

template <typename M>
M GatewayLimits::*of_http(M HttpLimits::*member) {
  return member;
}

StructSchema<AdminConfig> admin_schema() {
  StructSchema<AdminConfig> schema("The listener for operators: /metrics and /receipts. Written as its address alone.");
  schema.field("listen", &AdminConfig::listen, {.doc = "HOST:PORT; empty switches it off."})
      .field("hosts", &AdminConfig::hosts,
             {.doc = "Names under which this listener is reached, besides `localhost` and IP addresses, which always "
                     "are allowed. Other names in a request's Host header are refused, because a web page can make "
                     "its own name point here."})
      .shorthand("listen");
  return schema;
}

StructSchema<AuthConfig> auth_schema() {
  StructSchema<AuthConfig> schema("Who may use the gateway.");
  schema
      .field("keys", &AuthConfig::keys,
             {.doc = "File of API keys, one TENANT:SHA256-HEX a line (`warmpath keys add NAME --file FILE`). Without "
                     "it anyone who "
                     "can connect may ask."})
      .field("state", &AuthConfig::state,
             {.doc = "File of the tenants' random salts (mode 0600, created when absent). Keep it: a new salt makes "
                     "every cached prefix of its tenant useless.",
              .default_note = "the path of `keys` with .salts behind it"})
      .field("insecure_no_auth", &AuthConfig::insecure_no_auth,
             {.doc = "Listen on an address other than loopback although there are no keys."});
  return schema;
}

StructSchema<GatewayLimits> limits_schema() {
  StructSchema<GatewayLimits> schema("Bounds that protect the gateway and its replicas.");
  using L = GatewayLimits;
  schema
      .field("max_requests", &L::max_requests,
             {.doc = "Completions in progress, waiting ones included; more get 429.", .min = 1})
      .field("max_waiting", &L::max_waiting,
             {.doc = "Of those, requests held because every replica is full; more get 429.", .min = 0})
      .field("queue_wait_s", &L::queue_wait_s,
             {.doc = "How long such a request is held before it gets 429.", .min = 0, .unit = "seconds"})
      .field("request_timeout_s", &L::request_timeout_s,
             {.doc = "From a request's arrival to its last byte; 0 for no limit.", .min = 0, .unit = "seconds"})
      .field("keep_alive_s", &L::keep_alive_s,
             {.doc = "Between comments on a stream that has nothing to say.", .min = 0.01, .unit = "seconds"})
      .field("headers_after_s", &L::headers_after_s,
             {.doc = "A stream's headers are sent after this time even if no token is there yet; until then an error "
                     "still gets its own status.",
              .min = 0,
              .unit = "seconds"})
      .field("max_attempts", &L::max_attempts, {.doc = "Replicas tried for one prompt.", .min = 1, .max = 16})
      .field("drain_s", &L::drain_s,
             {.doc = "On SIGTERM: time for requests in progress before they are aborted.", .min = 0, .unit = "seconds"})
      .field("receipts_bytes", &L::receipts_bytes,
             {.doc = "Memory for the receipts of the latest requests.", .min = 0, .unit = "bytes"})
      .field("max_body_bytes", of_http(&HttpLimits::max_body_bytes),
             {.doc = "Largest request body; larger ones get 413.", .min = 1, .unit = "bytes"})
      .field("max_total_body_bytes", of_http(&HttpLimits::max_total_body_bytes),
             {.doc = "All request bodies in memory together; a request that does not fit gets 503.",
              .min = 1,
              .unit = "bytes"})
      .field("max_head_bytes", of_http(&HttpLimits::max_head_bytes),
             {.doc = "Request line and header fields together.", .min = 1024, .unit = "bytes"})
      .field(
          "max_connections", of_http(&HttpLimits::max_connections),
          {.doc = "Open connections per listener. Over it idle ones are closed to make room; if there are none: 503.",
           .min = 1})
      .field("max_unsent_bytes", of_http(&HttpLimits::max_unsent_bytes),
             {.doc = "Stream bytes queued for a client that does not read, before it is cut off.",
              .min = 1024,
              .unit = "bytes"})
      .field("idle_s", of_http(&HttpLimits::idle_s),
             {.doc = "Between requests on one connection.", .min = 0.01, .unit = "seconds"})
      .field("head_read_s", of_http(&HttpLimits::head_read_s),
             {.doc = "For the header of a request.", .min = 0.01, .unit = "seconds"})
      .field("body_stall_s", of_http(&HttpLimits::body_stall_s),
             {.doc = "Without a byte of the body.", .min = 0.01, .unit = "seconds"})
      .field("write_stall_s", of_http(&HttpLimits::write_stall_s),
             {.doc = "Without the client taking a byte of its answer.", .min = 0.01, .unit = "seconds"});
  return schema;
}

StructSchema<LogConfig> log_schema() {
  StructSchema<LogConfig> schema("Log lines go to stderr and never hold prompt text or keys.");
  schema
      .field("level", &LogConfig::level,
             {.doc = "Least important lines shown.", .words = {"debug", "info", "warn", "error", "off"}})
      .field("access", &LogConfig::access, {.doc = "One line per request."});
  return schema;
}

StructSchema<IndexConfig> index_schema() {
  StructSchema<IndexConfig> schema("The index of which replica holds which prefix.");
  schema
      .field("max_bytes", &IndexConfig::max_bytes,
             {.doc = "Memory; past it the least recently matched prefixes are forgotten.",
              .min = 8 << 20,
              .unit = "bytes"})
      .field(
          "snapshot_file", &IndexConfig::snapshot_file,
          {.doc = "Where the index is kept while the gateway is down: read at the start, written now and then and on "
                  "shutdown. A replica that restarted meanwhile starts empty. It tells who holds which prompts (by "
                  "hash), so it is readable by its owner only.",
           .default_note = "not kept"})
      .field(
          "snapshot_every_s", &IndexConfig::snapshot_every_s,
          {.doc = "Between two writings of the snapshot; 0 writes it on shutdown only.", .min = 0, .unit = "seconds"})
      .field("placement_s", &IndexConfig::placement_s,
             {.doc = "How long a prompt just routed to a replica counts as held there, unless its events confirm it.",
              .min = 0,
              .unit = "seconds"});
  return schema;
}

StructSchema<EndpointConfig> endpoint_schema() {
  StructSchema<EndpointConfig> schema("One engine. Written as its address alone where no token is needed.");
  schema
      .field("address", &EndpointConfig::address,
             {.doc = "unix:/PATH or HOST:PORT of a warmpath-engine.", .required = true})
      .field("token_file", &EndpointConfig::token_file, {.doc = "File that holds the engine's token."})
      .field("labels", &EndpointConfig::labels,
             {.doc = "Names and values, for the `label` filter of policies: {pool: spot}.", .max_items = 64})
      .shorthand("address");
  return schema;
}

StructSchema<ParsersConfig> parsers_schema() {
  using Tools = std::optional<CallFormat>;
  using Reasoning = std::optional<ReasoningFormat>;
  StructSchema<ParsersConfig> schema("How calls of tools and reasoning are told from an answer's text.");
  schema
      .choice("tools", &ParsersConfig::tools,
              std::vector<ChoiceWord<Tools>>{{"auto", std::nullopt},
                                             {"none", CallFormat::kNone},
                                             {"tagged", CallFormat::kTagged},
                                             {"llama3", CallFormat::kLlama3},
                                             {"mistral", CallFormat::kMistral},
                                             {"deepseek", CallFormat::kDeepSeek},
                                             {"kimi", CallFormat::kKimi},
                                             {"harmony", CallFormat::kHarmony}},
              {.doc = "How the model writes calls. `tagged`: <tool_call> as Hermes, Qwen, Qwen3-Coder and GLM fill it; "
                      "`harmony`: gpt-oss; `auto`: as its chat template shows, else `tagged`."})
      .choice("reasoning", &ParsersConfig::reasoning,
              std::vector<ChoiceWord<Reasoning>>{{"auto", std::nullopt},
                                                 {"none", ReasoningFormat::kNone},
                                                 {"think", ReasoningFormat::kThink},
                                                 {"bracket", ReasoningFormat::kBracket}},
              {.doc = "How it marks reasoning. `think`: <think>; `bracket`: [THINK]; `auto`: as its chat template "
                      "shows, else none."});
  return schema;
}

StructSchema<AdmissionConfig> admission_schema() {
  using A = AdmissionConfig;
  StructSchema<A> schema(
      "Session admission: as many sessions run as the replicas' KV holds, the oldest first; the others wait between "
      "two turns instead of evicting each other's caches.");
  schema
      .field("enabled", &A::enabled,
             {.doc = "Needs replicas that tell their KV capacity, and a session's turns at the same gateway."})
      .field("idle_s", &A::idle_s,
             {.doc = "A session that has been silent for so long has given up its place.", .min = 1, .unit = "seconds"})
      .field("new_session_wait_s", &A::new_session_wait_s,
             {.doc = "A new session waits so long at most; then it begins, and may have to wait after its first turn.",
              .min = 0,
              .unit = "seconds"})
      .field(
          "most_wait_s", &A::most_wait_s,
          {.doc = "A turn that has waited so long gets 429 with Retry-After; its session keeps its rank. Streams get "
                  "their headers and keep-alives meanwhile.",
           .min = 1,
           .unit = "seconds"})
      .field("max_waiting", &A::max_waiting, {.doc = "Turns that may wait; over it: 429.", .min = 0, .max = 1'000'000});
  return schema;
}

void check_rules(const ModelConfig& model, CheckContext& context) {
  std::vector<std::string> names = model.aliases;
  names.push_back(model.name);
  for (size_t rule = 0; rule < model.policy_rules.size(); ++rule) {
    const std::vector<std::string>& asked = model.policy_rules[rule].match.models;
    for (size_t n = 0; n < asked.size(); ++n) {
      if (std::find(names.begin(), names.end(), asked[n]) != names.end()) continue;
      context.error_at(
          fmt::format("policy_rules[{}].match.models[{}]", rule, n),
          fmt::format("nobody asks for {} as \"{}\"{}", model.name, asked[n], suggest_word(asked[n], names)));
    }
  }
}

void check_shadows(const ModelConfig& model, CheckContext& context) {
  std::set<std::string> shown;
  for (size_t n = 0; n < model.shadow_policies.size(); ++n) {
    const std::string& name = model.shadow_policies[n].shown_name();
    if (shown.insert(name).second) continue;
    context.error_at(fmt::format("shadow_policies[{}]", n),
                     fmt::format("another one is shown as \"{}\" too; give one of them a label", name));
  }
}

StructSchema<ModelConfig> model_schema() {
  StructSchema<ModelConfig> schema("A model and the replicas that serve it.");
  schema.field("name", &ModelConfig::name, {.doc = "What clients call it.", .required = true})
      .field("aliases", &ModelConfig::aliases, {.doc = "Other names for it."})
      .field("tokenizer", &ModelConfig::tokenizer,
             {.doc = "A GGUF file, a model's folder or a tokenizer.json with the tokenizer and chat template; it must "
                     "be the replicas' own.",
              .default_note = "fetched from the first replica"})
      .section("parsers", &ModelConfig::parsers, parsers_schema())
      .choice("message_specials", &ModelConfig::message_specials,
              std::vector<ChoiceWord<SpecialTokens>>{{"text", SpecialTokens::kText}, {"parse", SpecialTokens::kParse}},
              {.doc = "What the spelling of a control token (`</s>`, say) inside a message is: `text` keeps it data, "
                      "`parse` makes it the token, as engines do that parse control tokens everywhere."})
      .choice(
          "max_tokens_rule", &ModelConfig::max_tokens_rule,
          std::vector<ChoiceWord<MaxTokensRule>>{{"clamp", MaxTokensRule::kClamp}, {"refuse", MaxTokensRule::kRefuse}},
          {.doc = "When prompt and max_tokens together exceed the context: `clamp` answers with as many tokens as "
                  "fit, `refuse` says context_length_exceeded. A prompt that does not fit is always refused."})
      .field(
          "encoder_cache_bytes", &ModelConfig::encoder_cache_bytes,
          {.doc = "Memory for texts already tokenized and messages already parsed.", .min = 1 << 20, .unit = "bytes"})
      .section("policy", &ModelConfig::policy, policy_schema(), {.doc = "How a replica is chosen."})
      .list("policy_rules", &ModelConfig::policy_rules, policy_rule_schema(),
            {.doc = "Other policies for some requests: by tenant, name asked for, header or prompt length.",
             .max_items = 100})
      .list("shadow_policies", &ModelConfig::shadow_policies, policy_schema(),
            {.doc = "Policies that are asked about every prompt and never obeyed: receipts and metrics tell what they "
                    "would have saved, in predicted seconds.",
             .max_items = 16})
      .section("admission", &ModelConfig::admission, admission_schema())
      .list("endpoints", &ModelConfig::endpoints, endpoint_schema(),
            {.doc = "Where it is served.", .required = true, .min_items = 1, .max_items = 4096, .item_key = "address"})
      .check([](const ModelConfig& model, CheckContext& context) {
        if (model.name.empty()) context.error("name", "is empty");
        check_rules(model, context);
        check_shadows(model, context);
      });
  return schema;
}

}  // namespace

const StructSchema<GatewayConfig>& gateway_schema() {
  static const StructSchema<GatewayConfig> kSchema = [] {
    StructSchema<GatewayConfig> schema("The configuration of `warmpath gateway`.");
    schema
        .field("listen", &GatewayConfig::listen, {.doc = "HOST:PORT for clients. Other than loopback needs auth.keys."})
        .field("threads", &GatewayConfig::threads, {.doc = "I/O threads; 0 for one per core.", .min = 0, .max = 256})
        .field("default_model", &GatewayConfig::default_model,
               {.doc = "Serves requests that name no model.", .default_note = "the first model"})
        .section("admin", &GatewayConfig::admin, admin_schema())
        .section("auth", &GatewayConfig::auth, auth_schema())
        .section("limits", &GatewayConfig::limits, limits_schema())
        .section("log", &GatewayConfig::log, log_schema())
        .section("index", &GatewayConfig::index, index_schema())
        .list("models", &GatewayConfig::models, model_schema(),
              {.doc = "What is served.", .required = true, .min_items = 1, .max_items = 256, .item_key = "name"});
    schema.check_always([](const GatewayConfig& config, CheckContext& context) {
      report_config_problems(find_config_problems(config), context);
    });
    return schema;
  }();
  return kSchema;
}

Result<SocketAddress> parse_socket_address(std::string_view text) {
  const auto wrong = [&] {
    return invalid_argument(fmt::format("\"{}\" is no HOST:PORT (such as 127.0.0.1:8080 or [::1]:8080)", text));
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong();
  SocketAddress address;
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong();
  }
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (host.empty() || error != std::errc() || end != port.data() + port.size()) return wrong();
  address.host = host;
  return address;
}

bool is_loopback(const SocketAddress& address) {
  const bool is_127 =
      address.host.starts_with("127.") && address.host.find_first_not_of("0123456789.") == std::string::npos;
  return is_127 || address.host == "::1" || address.host == "localhost";
}

}  // namespace warmpath
