#include "router/config_checks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "config/nearest_word.h"
#include "router/auth.h"

namespace warmpath {

namespace {

using Problems = std::vector<ConfigProblem>;

void check_listener(const std::string& path, const std::string& text, const AuthConfig& auth, Problems& problems) {
  const Result<SocketAddress> address = parse_socket_address(text);
  if (!address.ok()) {
    problems.push_back({path, address.status().message()});
  } else if (!is_loopback(*address) && auth.keys.empty() && !auth.insecure_no_auth) {
    problems.push_back(
        {path, fmt::format("{} can be reached from other machines and there are no keys. Set auth.keys (`warmpath keys "
                           "add NAME` makes one), listen on 127.0.0.1, or set auth.insecure_no_auth "
                           "(--insecure-no-auth)",
                           text)});
  }
}

void check_names(const GatewayConfig& config, Problems& problems) {
  std::map<std::string, std::string> owner;
  std::vector<std::string> all;
  const auto claim = [&](std::string path, const std::string& name, const std::string& model) {
    if (name.empty()) {
      problems.push_back({std::move(path), "is empty"});
      return;
    }
    const auto [found, fresh] = owner.emplace(name, model);
    if (fresh) {
      all.push_back(name);
    } else {
      problems.push_back({std::move(path), fmt::format("the name \"{}\" already belongs to {}", name, found->second)});
    }
  };
  for (size_t model = 0; model < config.models.size(); ++model) {
    const ModelConfig& of = config.models[model];
    if (!of.name.empty()) claim(fmt::format("models[{}].name", model), of.name, of.name);
    for (size_t alias = 0; alias < of.aliases.size(); ++alias) {
      claim(fmt::format("models[{}].aliases[{}]", model, alias), of.aliases[alias], of.name);
    }
  }
  // A model without a name, or no models, has been reported already, and may be the one that is meant.
  const bool all_named = std::all_of(config.models.begin(), config.models.end(),
                                     [](const ModelConfig& model) { return !model.name.empty(); });
  if (!config.default_model.empty() && all_named && !all.empty() && !owner.contains(config.default_model)) {
    problems.push_back({"default_model", fmt::format("no model is called \"{}\"{}", config.default_model,
                                                     suggest_word(config.default_model, all))});
  }
}

// "unix:/PATH", or HOST:PORT with a port to connect to.
bool is_endpoint(std::string_view text) {
  constexpr std::string_view kUnix = "unix:";
  if (text.starts_with(kUnix)) return text.size() > kUnix.size() + 1 && text[kUnix.size()] == '/';
  const Result<SocketAddress> address = parse_socket_address(text);
  return address.ok() && address->port != 0 && address->host.find('/') == std::string::npos;
}

void check_readable(std::string path, const std::string& file, Problems& problems) {
  if (file.empty() || access(file.c_str(), R_OK) == 0) return;
  problems.push_back({std::move(path), fmt::format("cannot read {}: {}", file, std::strerror(errno))});
}

}  // namespace

Problems find_config_problems(const GatewayConfig& config) {
  Problems problems;
  check_listener("listen", config.listen, config.auth, problems);
  if (!config.admin.listen.empty()) check_listener("admin.listen", config.admin.listen, config.auth, problems);
  const Result<SocketAddress> main = parse_socket_address(config.listen),
                              admin = parse_socket_address(config.admin.listen);
  if (main.ok() && admin.ok() && main->port != 0 && main->port == admin->port && main->host == admin->host) {
    problems.push_back(
        {"admin.listen", fmt::format("{} is the address of listen too; each needs its own port", config.listen)});
  }
  check_names(config, problems);
  return problems;
}

Problems find_reference_problems(const GatewayConfig& config) {
  Problems problems;
  if (!config.auth.keys.empty()) {
    const Status keys = check_key_file(config.auth.keys);
    if (!keys.ok()) problems.push_back({"auth.keys", keys.message()});
  }
  for (size_t model = 0; model < config.models.size(); ++model) {
    const std::string path = fmt::format("models[{}]", model);
    check_readable(path + ".tokenizer", config.models[model].tokenizer, problems);
    for (size_t index = 0; index < config.models[model].endpoints.size(); ++index) {
      const EndpointConfig& endpoint = config.models[model].endpoints[index];
      const std::string of_endpoint = fmt::format("{}.endpoints[{}]", path, index);
      if (!is_endpoint(endpoint.address)) {
        problems.push_back(
            {of_endpoint + ".address",
             fmt::format("\"{}\" is no address of a replica; write unix:/PATH or HOST:PORT", endpoint.address)});
      }
      check_readable(of_endpoint + ".token_file", endpoint.token_file, problems);
    }
  }
  return problems;
}

void report_config_problems(const Problems& problems, CheckContext& context) {
  for (const ConfigProblem& problem : problems) {
    if (context.is_clean(problem.path)) context.error_at(problem.path, problem.message);
  }
}

Status check_gateway_config(const GatewayConfig& config) {
  const Problems problems = find_config_problems(config);
  if (problems.empty()) return {};
  return invalid_argument(fmt::format("{}: {}", problems[0].path, problems[0].message));
}

}  // namespace warmpath
