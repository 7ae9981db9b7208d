// RequestSink: where a request's output goes.
// Called on the engine's loop thread, in order; must not block and must not call back into the engine except cancel().
#pragma once

#include "base/status.h"
#include "proto/generate.h"

namespace warmpath {

class RequestSink {
 public:
  virtual ~RequestSink() = default;
  virtual void on_update(GenerateUpdate update) = 0;
  // The last call. Ok after the update that carried `timings`; otherwise why the request ended early.
  virtual void on_done(Status status) = 0;
};

}  // namespace warmpath
