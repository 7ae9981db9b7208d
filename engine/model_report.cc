#include "engine/model_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string_view>

#include "engine/cpu_backend.h"
#include "engine/model_tensors.h"
#include "model_file/safetensors_folder.h"
#include "text/text_pipeline.h"

namespace warmpath {

namespace {

std::string text_or_nothing(const GgufFile& file, std::string_view key) {
  const Result<std::string_view> text = file.get_string_or(key, "");
  return text.ok() ? printable(*text) : std::string();
}

void report_tensors(const GgufFile& file, ModelReport& report) {
  std::map<std::string, TensorTypeShare, std::less<>> shares;
  for (const GgufTensor& tensor : file.tensors()) {
    const std::string type(tensor_type_name(tensor.type));
    TensorTypeShare& share = shares[type];
    share.type = type;
    ++share.tensors;
    share.elements += static_cast<int64_t>(tensor.elements);
    share.bytes += static_cast<int64_t>(tensor.data.size());
    report.biases = report.biases || tensor.name.ends_with(".bias");
    if (tensor.name == "rope_freqs.weight") continue;
    report.parameters += static_cast<int64_t>(tensor.elements);
    report.tensor_bytes += static_cast<int64_t>(tensor.data.size());
  }
  for (auto& [type, share] : shares) report.types.push_back(std::move(share));
  std::ranges::sort(report.types, std::greater<>(), &TensorTypeShare::bytes);
  report.tied = file.find_tensor("output.weight") == nullptr;
}

std::string rope_in_words(const GgufFile& file, const ModelShape& config) {
  const auto key = [&](std::string_view name) { return fmt::format("{}.rope.{}", config.architecture, name); };
  std::string words = fmt::format("base {:g}, {}", file.get_float_or(key("freq_base"), 10000).value(),
                                  config.rotation.style == RopeStyle::kAdjacent ? "adjacent pairs" : "paired halves");
  const auto rotated = static_cast<int32_t>(2 * config.rotation.inv_freq.size());
  if (rotated != config.head_dim) words += fmt::format(", {} of {} dimensions", rotated, config.head_dim);
  if (file.find_tensor("rope_freqs.weight") != nullptr) words += ", Llama 3 scaling";
  const std::string_view scaling = file.get_string_or(key("scaling.type"), "none").value();
  if (scaling != "none") {
    words += fmt::format(", {} scaling by {:g}", scaling, file.get_float_or(key("scaling.factor"), 1).value());
  }
  return words;
}

void report_computation(const GgufFile& file, ModelReport& report) {
  Result<ModelShape> config = read_model_config(file);
  if (!config.ok()) {
    report.refusals.push_back(config.status().message());
    return;
  }
  report.config = *std::move(config);
  if (const Status status = check_model_tensors(file, *report.config); !status.ok()) {
    report.refusals.push_back(status.message());
  }
  report.rope = rope_in_words(file, *report.config);
  report.packed_bytes = packed_weight_bytes(file, Precision::kQuantized);
  const KvLayout layout = report.config->kv_layout(kv_type_of(Precision::kQuantized));
  report.kv_bytes_per_token = layout.block_bytes() / KvLayout::kTokens;
  report.available_bytes = available_memory_bytes();
  report.context_that_fits =
      std::min<int64_t>(report.config->context,
                        context_that_fits(report.available_bytes, report.packed_bytes, report.kv_bytes_per_token));
  const std::string prefix = report.architecture + ".";
  for (const GgufEntry& entry : file.entries()) {
    if (!entry.key.starts_with(prefix)) continue;
    if (!is_known_key(entry.key.substr(prefix.size()))) report.unnoticed.push_back(printable(entry.key));
  }
}

void report_text(const GgufFile& file, ModelReport& report) {
  Result<Vocabulary> vocabulary = vocabulary_from_gguf(file);
  if (!vocabulary.ok()) {
    report.refusals.push_back(vocabulary.status().message());
    return;
  }
  TokenizerReport& tokenizer = report.tokenizer.emplace();
  tokenizer.model = vocabulary->model;
  tokenizer.family = vocabulary->pre;
  tokenizer.tokens = static_cast<int64_t>(vocabulary->tokens.size());
  tokenizer.merges = static_cast<int64_t>(vocabulary->merges.size());
  tokenizer.bos = vocabulary->text_of(vocabulary->bos);
  tokenizer.eos = vocabulary->text_of(vocabulary->eos);
  tokenizer.add_bos =
      std::count(vocabulary->prompt_prefix.begin(), vocabulary->prompt_prefix.end(), vocabulary->bos) > 0;
  for (const TokenId id : vocabulary->end_of_generation) tokenizer.end_tokens.emplace_back(vocabulary->text_of(id));
  report.has_template = !vocabulary->chat_template.empty();
  if (report.config && tokenizer.tokens > report.config->vocabulary) {
    report.refusals.push_back(fmt::format("{}: the tokenizer has {} tokens, the model only {}", file.name(),
                                          tokenizer.tokens, report.config->vocabulary));
  }
  const Result<TextPipeline> pipeline = make_text_pipeline(*std::move(vocabulary));
  if (!pipeline.ok()) {
    report.refusals.push_back(pipeline.status().message());
  } else if (pipeline->chat_template != nullptr) {
    report.abilities = pipeline->chat_template->abilities();
  }
}

}  // namespace

int64_t available_memory_bytes() {
  std::ifstream in("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  for (std::string unit; in >> key >> kib; std::getline(in, unit)) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

int64_t context_that_fits(int64_t available, int64_t packed_bytes, int64_t kv_bytes_per_token) {
  return std::max<int64_t>(0, available / 10 * 9 - packed_bytes) / std::max<int64_t>(1, kv_bytes_per_token);
}

int64_t packed_weight_bytes(const GgufFile& file, Precision precision) {
  int64_t bytes = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.shape.size() != 2 || !is_supported(tensor.type)) continue;
    bytes += PackedMatrix::bytes_of(PackedMatrix::panel_kind(tensor.type, precision),
                                    static_cast<int64_t>(tensor.rows()), static_cast<int64_t>(tensor.columns()));
  }
  return bytes;
}

ModelReport report_model(const OpenModel& model) {
  ModelReport report;
  const GgufFile& file = model.file;
  report.name = model.name;
  report.path = model.path.string();
  report.format = model.synthetic ? "synthetic" : is_model_folder(model.path) ? "safetensors folder" : "GGUF";
  report.architecture = text_or_nothing(file, "general.architecture");
  report.title = text_or_nothing(file, "general.name");
  report_tensors(file, report);
  report_computation(file, report);
  report_text(file, report);
  return report;
}

}  // namespace warmpath
