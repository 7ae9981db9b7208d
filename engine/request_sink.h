// RequestSink: where a request's output goes.
// Called on the engine's loop thread, in order; must not block and must not call back into the engine except cancel().
#pragma once

#include "base/status.h"
#include "proto/generate.h"

namespace warmpath {

class RequestSink {
 public:
  virtual ~RequestSink() = default;
  // `tokens` is output only: the end or stop token that ends a choice is named by its ChoiceFinish (whose
  // completion_tokens counts it, and the request's output_prefix).
  virtual void on_update(GenerateUpdate update) = 0;
  // All that this step (or whatever else made updates) has to say was handed to its sinks: send it. Called after
  // on_update(); on_done() needs none.
  virtual void flush() {}
  // The last call. Ok after the update that carried `timings`; otherwise why the request ended early.
  virtual void on_done(Status status) = 0;
};

}  // namespace warmpath
