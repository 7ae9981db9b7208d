// ModelReport: what a user wants to know of a model before running it: its shape, what its weights are quantized to,
// what its context costs in memory, what its tokenizer and template are, and what this engine would refuse and why.
//
// Only the directory of the file is read, not the weights (but for the fingerprint, see file_hash.h). Thread safety:
// pure functions of the file system and of the machine's free memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/model_config.h"
#include "kernels/packed_matrix.h"
#include "model_file/model_store.h"
#include "text/chat_template.h"

namespace warmpath {

struct TensorTypeShare {
  std::string type;
  int64_t tensors = 0;
  int64_t elements = 0;
  int64_t bytes = 0;
};

struct TokenizerReport {
  std::string model;   // tokenizer.ggml.model
  std::string family;  // tokenizer.ggml.pre
  int64_t tokens = 0;
  int64_t merges = 0;
  std::string bos, eos;  // as text; empty: none
  bool add_bos = false;
  std::vector<std::string> end_tokens;
};

struct ModelReport {
  std::string name;
  std::string path;          // empty: synthetic
  std::string format;        // GGUF, safetensors folder, synthetic
  std::string architecture;  // as the file says, known or not
  std::string title;         // general.name
  int64_t parameters = 0;
  int64_t tensor_bytes = 0;
  std::vector<TensorTypeShare> types;  // most bytes first
  std::optional<ModelShape> config;    // when the engine understands it
  bool tied = false;
  bool biases = false;
  std::string rope;  // in words

  // With the default (fast) precision.
  int64_t packed_bytes = 0;  // of the weights in memory
  int64_t kv_bytes_per_token = 0;
  int64_t available_bytes = 0;  // memory of this machine that is free
  int64_t context_that_fits = 0;

  std::optional<TokenizerReport> tokenizer;
  bool has_template = false;
  std::optional<TemplateAbilities> abilities;  // when the template compiles

  std::vector<std::string> refusals;   // why the engine would not run it; empty: it would
  std::vector<std::string> unnoticed;  // keys of the architecture that nothing here reads
};

ModelReport report_model(const OpenModel& model);

// MemAvailable of this machine; 0 when it cannot be read.
int64_t available_memory_bytes();
// Tokens of context whose KV fits in `available` bytes beside the weights: a tenth is left for everything else.
int64_t context_that_fits(int64_t available, int64_t packed_bytes, int64_t kv_bytes_per_token);
// Bytes of a file's weights in memory, before they are loaded.
int64_t packed_weight_bytes(const GgufFile& file, Precision precision);

}  // namespace warmpath
