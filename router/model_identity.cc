#include "router/model_identity.h"

#include <fmt/format.h>

#include <span>

#include "base/hash128.h"
#include "base/log.h"
#include "model_file/gguf_file.h"
#include "text/text_pipeline.h"

namespace warmpath {

namespace {

Result<TextPipeline> pipeline_of(const GgufFile& file) {
  Result<Vocabulary> vocabulary = vocabulary_from_gguf(file);
  if (!vocabulary.ok()) return vocabulary.status();
  return make_text_pipeline(*std::move(vocabulary));
}

Result<TextPipeline> pipeline_from_bytes(const std::string& bytes) {
  Result<GgufFile> file = GgufFile::parse(std::as_bytes(std::span(bytes)), "the replica's tokenizer");
  if (!file.ok()) return file.status();
  return pipeline_of(*file);
}

Result<TextPipeline> pipeline_from_path(const std::string& path) {
  Result<Vocabulary> vocabulary = vocabulary_from_path(path);
  if (!vocabulary.ok()) return vocabulary.status();
  return make_text_pipeline(*std::move(vocabulary));
}

}  // namespace

Result<std::shared_ptr<const ModelIdentity>> make_identity(const ReplicaDescription& description,
                                                           const std::string& tokenizer_file,
                                                           const ModelConfig& config) {
  if (hash128(tokenizer_file) != description.tokenizer_hash) {
    return Status(StatusCode::kDataLoss, "the tokenizer that the replica sent is not the one it described");
  }
  Result<TextPipeline> pipeline = pipeline_from_bytes(tokenizer_file);
  if (!pipeline.ok()) return pipeline.status();
  if (!config.tokenizer.empty()) {
    Result<TextPipeline> own = pipeline_from_path(config.tokenizer);
    if (!own.ok()) return own.status();
    if (own->tokenizer->fingerprint() != pipeline->tokenizer->fingerprint()) {
      return failed_precondition(fmt::format("{} does not hold the replica's tokenizer", config.tokenizer));
    }
    pipeline = std::move(own);
  }
  if (pipeline->tokenizer->size() > description.vocabulary) {
    return failed_precondition(fmt::format("the tokenizer has {} tokens, the model only {}",
                                           pipeline->tokenizer->size(), description.vocabulary));
  }
  auto identity = std::make_shared<ModelIdentity>();
  identity->description = description;
  identity->tokenizer = pipeline->tokenizer;
  PromptEncoder::Options options;
  options.cache_bytes = static_cast<size_t>(config.encoder_cache_bytes) / 2;
  options.message_cache_bytes = static_cast<size_t>(config.encoder_cache_bytes) / 2;
  options.message_specials = config.message_specials;
  identity->encoder = std::make_shared<PromptEncoder>(pipeline->tokenizer, pipeline->chat_template, options);
  identity->bases = std::make_shared<BaseFinder>();
  AnswerFormat format = detect_answer_format(pipeline->chat_template ? pipeline->chat_template->source() : "");
  format.calls = config.parsers.tools.value_or(format.calls);
  format.reasoning = config.parsers.reasoning.value_or(format.reasoning);
  identity->markers = std::make_shared<const AnswerMarkers>(format, pipeline->tokenizer.get());
  identity->system_fingerprint = "fp_" + to_hex(description.fingerprint).substr(0, 16);
  return std::shared_ptr<const ModelIdentity>(std::move(identity));
}

}  // namespace warmpath
