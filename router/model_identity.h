// ModelIdentity: what the usable replicas of a model agree on, and what turns requests into their tokens.
// Thread safety: immutable; any thread.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "proto/describe.h"
#include "router/base_finder.h"
#include "router/config.h"
#include "text/answer/marker.h"
#include "text/prompt_encoder.h"

namespace warmpath {

struct ModelIdentity {
  ReplicaDescription description;  // of the replica it came from; the others' limits may differ
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<PromptEncoder> encoder;
  std::shared_ptr<BaseFinder> bases;
  std::shared_ptr<const AnswerMarkers> markers;  // how its answers are marked up
  std::string system_fingerprint;                // "fp_" and the first half of the KV fingerprint
};

// Builds the encoder from `tokenizer_file` (a GGUF without tensors, as the replica sent it), whose hash must be the one
// that `description` names. With `config.tokenizer` (a GGUF file, a folder or a tokenizer.json) the text pipeline comes
// from there instead, and is refused unless its tokenizer encodes as the replica's does. `config.parsers` overrules
// what the template shows of calls and reasoning.
Result<std::shared_ptr<const ModelIdentity>> make_identity(const ReplicaDescription& description,
                                                           const std::string& tokenizer_file,
                                                           const ModelConfig& config);

}  // namespace warmpath
