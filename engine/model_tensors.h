// Which tensors a model of a ModelShape has, by the names of GGUF files, and whether a file has just those.
//
// A tensor that the forward pass would not read is refused: a model that needs it computes something else. Thread
// safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/model_config.h"
#include "model_file/gguf_file.h"

namespace warmpath {

struct ExpectedTensor {
  std::string name;
  int64_t rows = 0;
  int64_t columns = 0;  // of a matrix; 0: a vector of `rows` floats
  bool optional = false;
};

std::vector<ExpectedTensor> expected_tensors(const ModelShape& config);

// Missing, misshapen, unknown tensors and unsupported types are refused by name and byte offset.
Status check_model_tensors(const GgufFile& file, const ModelShape& config);

}  // namespace warmpath
