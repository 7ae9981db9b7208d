// MockHttp: the HTTP face of mock replicas: POST /v1/chat/completions and /v1/completions (streamed and not), GET
// /v1/models and /health. It exists to stand behind proxies that speak only HTTP, and as an HTTP upstream in tests.
//
// One thread with epoll serves every replica of the process. Prompts are not tokenized: four bytes of the raw JSON of
// `messages` (or `prompt`) are one token, so that a growing conversation still shares a prefix, at next to no cost.
// Thread safety: start() and the destructor from one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "loadtest/mock_engine.h"

namespace warmpath {

struct MockHttpFace {
  MockEngine* engine = nullptr;  // outlives the server
  std::string model;             // named in answers
  uint16_t port = 0;             // 0 = any free one
};

class MockHttp {
 public:
  // Listens on `host` (a numeric IPv4 address) for each face.
  static Result<std::unique_ptr<MockHttp>> start(const std::string& host, std::vector<MockHttpFace> faces);
  ~MockHttp();

  // The real ports, in the faces' order.
  const std::vector<uint16_t>& ports() const;

 private:
  class Server;
  explicit MockHttp(std::unique_ptr<Server> server);
  std::unique_ptr<Server> server_;
};

}  // namespace warmpath
