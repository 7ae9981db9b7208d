#include "cli/replica_window.h"

#include <future>
#include <memory>

#include "router/grpc_upstream.h"

namespace warmpath {

int replica_window(const std::string& address) {
  const auto upstream = make_grpc_upstream(address);
  const auto answer = std::make_shared<std::promise<int>>();
  auto window = answer->get_future();
  upstream->describe(5, [answer](Result<ReplicaDescription> description) {
    answer->set_value(description.ok() ? description->context_tokens : 0);
  });
  return window.get();
}

}  // namespace warmpath
