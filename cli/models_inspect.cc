#include "cli/models_inspect.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdio>
#include <utility>
#include <vector>

#include "engine/model_report.h"
#include "text/model_text.h"

namespace warmpath {

namespace {

namespace json = boost::json;

using Abilities = std::vector<std::pair<std::string_view, bool>>;

Abilities named(const TemplateAbilities& abilities) {
  return {{"system", abilities.system_role},          {"tools", abilities.tools},
          {"tool_calls", abilities.tool_calls},       {"tool_results", abilities.tool_results},
          {"content_parts", abilities.content_parts}, {"reasoning", abilities.reasoning}};
}

std::string gigabytes(int64_t bytes) {
  return bytes < 1'000'000'000 ? fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6)
                               : fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

std::string count(int64_t number) {
  return number < 1'000'000'000 ? fmt::format("{:.1f} M", static_cast<double>(number) / 1e6)
                                : fmt::format("{:.2f} G", static_cast<double>(number) / 1e9);
}

json::object shape_of(const ModelReport& report) {
  json::object shape;
  if (!report.config) return shape;
  const ModelShape& config = *report.config;
  shape = {{"layers", config.layers},
           {"width", config.width},
           {"heads", config.heads},
           {"kv_heads", config.kv_heads},
           {"head_dim", config.head_dim},
           {"ffn", config.ffn},
           {"vocabulary", config.vocabulary},
           {"tied_embeddings", report.tied},
           {"biases", report.biases},
           {"head_norms", config.head_norms},
           {"rope", report.rope}};
  return shape;
}

void print_json(const ModelReport& report) {
  json::object out = {{"name", report.name},
                      {"path", report.path},
                      {"format", report.format},
                      {"architecture", report.architecture},
                      {"title", report.title},
                      {"parameters", report.parameters},
                      {"tensor_bytes", report.tensor_bytes}};
  json::array types;
  for (const TensorTypeShare& share : report.types) {
    types.push_back(json::object{
        {"type", share.type}, {"tensors", share.tensors}, {"elements", share.elements}, {"bytes", share.bytes}});
  }
  out["tensor_types"] = std::move(types);
  if (report.config) {
    out["shape"] = shape_of(report);
    out["context_tokens"] = report.config->context;
    out["kv_bytes_per_token"] = report.kv_bytes_per_token;
    out["weights_memory_bytes"] = report.packed_bytes;
    out["available_memory_bytes"] = report.available_bytes;
    out["context_that_fits"] = report.context_that_fits;
  }
  if (report.tokenizer) {
    const TokenizerReport& tokenizer = *report.tokenizer;
    json::array ends;
    for (const std::string& token : tokenizer.end_tokens) ends.emplace_back(printable(token));
    out["tokenizer"] = json::object{{"model", tokenizer.model},        {"family", tokenizer.family},
                                    {"tokens", tokenizer.tokens},      {"merges", tokenizer.merges},
                                    {"bos", printable(tokenizer.bos)}, {"eos", printable(tokenizer.eos)},
                                    {"add_bos", tokenizer.add_bos},    {"end_tokens", std::move(ends)}};
  }
  json::object abilities;
  if (report.abilities) {
    for (const auto& [name, has] : named(*report.abilities)) abilities[name] = has;
  }
  out["chat_template"] = json::object{{"present", report.has_template}, {"abilities", std::move(abilities)}};
  out["supported"] = report.refusals.empty();
  out["refusals"] = json::value_from(report.refusals);
  out["unread_keys"] = json::value_from(report.unnoticed);
  std::printf("%s\n", json::serialize(out).c_str());
}

void line(std::string_view what, const std::string& text) {
  std::printf("%-14s %s\n", std::string(what).c_str(), text.c_str());
}

void print_text(const ModelReport& report) {
  line("model", report.title.empty() || report.title == report.name
                    ? report.name
                    : fmt::format("{} ({})", report.name, report.title));
  line("file", fmt::format("{}{}{}", report.format, report.path.empty() ? "" : ", ", report.path));
  line("architecture", report.architecture);
  const double bits =
      report.parameters > 0 ? 8 * static_cast<double>(report.tensor_bytes) / static_cast<double>(report.parameters) : 0;
  line("parameters",
       fmt::format("{} in {} ({:.2f} bits each)", count(report.parameters), gigabytes(report.tensor_bytes), bits));
  std::string types;
  for (const TensorTypeShare& share : report.types) {
    types += fmt::format(
        "{}{} {:.1f}% ({} tensors)", types.empty() ? "" : ", ", share.type,
        100 * static_cast<double>(share.bytes) / static_cast<double>(std::max<int64_t>(1, report.tensor_bytes)),
        share.tensors);
  }
  line("types", types);
  if (report.config) {
    const ModelShape& config = *report.config;
    line("shape",
         fmt::format("{} layers, width {}, {} heads on {} KV heads of {}, feed-forward {}, vocabulary {}{}{}{}",
                     config.layers, config.width, config.heads, config.kv_heads, config.head_dim, config.ffn,
                     config.vocabulary, report.tied ? ", tied" : "", report.biases ? ", biases" : "",
                     config.head_norms ? ", head norms" : ""));
    line("rope", report.rope);
    line("context", fmt::format("{} tokens, {} bytes of KV each", config.context, report.kv_bytes_per_token));
    line("memory",
         fmt::format("{} of weights; of the {} that are free here, a context of {} tokens fits beside them{}",
                     gigabytes(report.packed_bytes), gigabytes(report.available_bytes), report.context_that_fits,
                     report.context_that_fits < config.context ? " (less than the model's)" : ""));
  }
  if (report.tokenizer) {
    const TokenizerReport& tokenizer = *report.tokenizer;
    std::string ends;
    for (const std::string& token : tokenizer.end_tokens) ends += " " + printable(token);
    line("tokenizer", fmt::format("{} '{}', {} tokens, {} merges{}; ends on{}", printable(tokenizer.model),
                                  printable(tokenizer.family), tokenizer.tokens, tokenizer.merges,
                                  tokenizer.add_bos ? fmt::format(", starts with {}", printable(tokenizer.bos)) : "",
                                  ends.empty() ? " nothing" : ends));
  }
  if (report.abilities) {
    std::string can;
    std::string cannot;
    for (const auto& [name, has] : named(*report.abilities)) (has ? can : cannot) += " " + std::string(name);
    line("chat template",
         fmt::format("knows{};{} not", can.empty() ? " nothing" : can, cannot.empty() ? " nothing" : cannot));
  } else if (!report.has_template) {
    line("chat template", "none");
  }
  for (const std::string& key : report.unnoticed) line("not read", key);
  for (const std::string& why : report.refusals) line("REFUSED", why);
  if (report.refusals.empty())
    line("runs", fmt::format("yes: warmpath up --model {}", report.path.empty() ? report.name : report.path));
}

}  // namespace

int inspect_model(const std::string& spec, bool json_wanted) {
  const Result<OpenModel> model = open_model_with_text(spec);
  if (!model.ok()) {
    if (json_wanted) {
      std::printf("%s\n",
                  json::serialize(json::object{{"supported", false},
                                               {"refusals", json::array{json::string(model.status().message())}}})
                      .c_str());
    } else {
      std::fprintf(stderr, "warmpath models inspect: %s\n", model.status().message().c_str());
    }
    return 1;
  }
  const ModelReport report = report_model(*model);
  json_wanted ? print_json(report) : print_text(report);
  return report.refusals.empty() ? 0 : 1;
}

}  // namespace warmpath
