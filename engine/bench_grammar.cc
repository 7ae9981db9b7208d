// bench_grammar: what structured output costs: compiling the tool sets of coding agents, and one mask per token.
//
//   bench_grammar [--quick] [--json]
//
// The vocabulary is the default model's where it is in the store, else the synthetic one; the tools are those of the
// recorded requests beside the source tree, else a few of its own. CPU time of this thread. A mask's time is that of
// moving on by one token and filling the next mask. The last line is one JSON object when --json is given.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/grammar_walk.h"
#include "model_file/gguf_file.h"
#include "model_file/model_store.h"
#include "text/answer/call_grammar.h"
#include "text/json_value.h"
#include "text/vocabulary.h"

namespace warmpath {
namespace {

constexpr const char* kOwnTools = R"([{"type":"function","function":{"name":"read_file","parameters":{"type":"object",
  "properties":{"path":{"type":"string"},"limit":{"type":"integer","minimum":1}},"required":["path"]}}},
  {"type":"function","function":{"name":"run","parameters":{"type":"object","properties":{"command":{"type":"string"},
  "timeout":{"type":"number"},"env":{"type":"object","additionalProperties":{"type":"string"}}},"required":["command"]}}}])";

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double part(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(share * static_cast<double>(values.size())))];
}

Vocabulary bench_vocabulary() {
  const auto store = model_store_path();
  if (store.ok()) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(*store, error)) {
      if (entry.path().extension() != ".gguf") continue;
      const auto file = GgufFile::open(entry.path());
      if (!file.ok()) continue;
      auto vocabulary = vocabulary_from_gguf(*file);
      if (vocabulary.ok()) return *std::move(vocabulary);
    }
  }
  return synthetic_vocabulary();
}

// A tool as the chat wire has it, from any wire; none where the model would not see it.
Value as_function(const Value& tool) {
  const Value* inner = tool.find("function");
  const Value& function = inner != nullptr ? *inner : tool;
  const Value* name = function.find("name");
  const Value* schema = function.find("parameters");
  if (schema == nullptr) schema = function.find("input_schema");
  if (name == nullptr || schema == nullptr) return Value::none();
  Value plain = Value::dict();
  plain.as_dict().set("name", *name);
  plain.as_dict().set("parameters", *schema);
  Value whole = Value::dict();
  whole.as_dict().set("type", Value::string("function", Origin::kMessage));
  whole.as_dict().set("function", std::move(plain));
  return whole;
}

std::vector<Value> tool_sets() {
  std::vector<Value> sets;
  std::set<std::string> seen;
  std::error_code error;
  const auto root = std::filesystem::path(WARMPATH_SOURCE_DIR).parent_path() / "shared" / "agent_requests";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root, error)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const auto document = value_from_json(bytes);
    const Value* body = document.ok() ? document->find("body") : nullptr;
    const Value* tools = body == nullptr ? nullptr : body->find("tools");
    if (tools == nullptr || !tools->is_list()) continue;
    std::vector<Value> functions;
    std::string key;
    for (const Value& tool : tools->as_list().items) {
      Value function = as_function(tool);
      if (!function.is_dict()) continue;
      key += parameters_schema(function) + '\n';
      functions.push_back(std::move(function));
    }
    if (!functions.empty() && seen.insert(key).second) sets.push_back(Value::list(std::move(functions)));
  }
  if (sets.empty()) sets.push_back(*value_from_json(kOwnTools));
  return sets;
}

int run(bool quick, bool json) {
  if (!GrammarCompiler::available()) {
    fmt::print("this build has no structured output (cmake/Xgrammar.cmake)\n");
    return 1;
  }
  const Vocabulary vocabulary = bench_vocabulary();
  const TokenText text(vocabulary);
  const auto size = static_cast<TokenId>(vocabulary.tokens.size());
  double begin = thread_seconds();
  const auto compiler = GrammarCompiler::create(text, size, vocabulary.end_of_generation);
  if (!compiler.ok()) {
    fmt::print("{}\n", compiler.status().message());
    return 1;
  }
  const double tables_ms = (thread_seconds() - begin) * 1e3;
  fmt::print("vocabulary of {} tokens: tables in {:.0f} ms\n", size, tables_ms);
  const AnswerMarkers markers({CallFormat::kTagged, ReasoningFormat::kNone, ArgumentFormat::kJson}, nullptr);
  std::vector<double> compile_ms, mask_us, bytes;
  std::mt19937 random(5);
  std::vector<Value> sets = tool_sets();
  if (quick && sets.size() > 3) sets.resize(3);
  for (const Value& tools : sets) {
    begin = thread_seconds();
    const auto compiled = (*compiler)->compile(call_grammar(markers, tools, {}, true));
    const double ms = (thread_seconds() - begin) * 1e3;
    if (!compiled.ok()) {
      fmt::print("a tool set of {} is refused: {}\n", tools.as_list().items.size(), compiled.status().message());
      continue;
    }
    compile_ms.push_back(ms);
    bytes.push_back(static_cast<double>((*compiled)->bytes()));
    size_t tokens = 0;
    for (int walk = 0; walk < (quick ? 10 : 50); ++walk) {
      const auto matcher = GrammarMatcher::create(*compiled, vocabulary.end_of_generation);
      const GrammarWalk path = walk_grammar(*matcher, text, random, 200);
      const auto again = GrammarMatcher::create(*compiled, vocabulary.end_of_generation);
      for (const TokenId token : path.tokens) {
        begin = thread_seconds();
        again->accept(token);
        mask_us.push_back((thread_seconds() - begin) * 1e6);
      }
      tokens += path.tokens.size();
    }
    fmt::print("{:3} tools: compiled in {:.1f} ms, {:.2f} MB; {} tokens walked\n", tools.as_list().items.size(), ms,
               bytes.back() / 1e6, tokens);
  }
  fmt::print("a mask: {:.1f} us at the median, {:.1f} us at the 99th percentile, {:.1f} us at most\n",
             part(mask_us, 0.5), part(mask_us, 0.99), part(mask_us, 1));
  if (json) {
    fmt::print(
        "{{\"vocabulary\": {}, \"tables_ms\": {:.1f}, \"tool_sets\": {}, \"compile_ms\": {:.2f}, \"compile_max_ms\": "
        "{:.2f}, "
        "\"compiled_max_bytes\": {:.0f}, \"masks\": {}, \"mask_p50_us\": {:.2f}, \"mask_p99_us\": {:.2f}, "
        "\"mask_max_us\": {:.2f}}}\n",
        size, tables_ms, compile_ms.size(), part(compile_ms, 0.5), part(compile_ms, 1), part(bytes, 1), mask_us.size(),
        part(mask_us, 0.5), part(mask_us, 0.99), part(mask_us, 1));
  }
  return 0;
}

}  // namespace
}  // namespace warmpath

int main(int argc, char** argv) {
  bool quick = false, json = false;
  for (int index = 1; index < argc; ++index) {
    const std::string argument = argv[index];
    if (argument == "--quick") {
      quick = true;
    } else if (argument == "--json") {
      json = true;
    } else {
      fmt::print("usage: bench_grammar [--quick] [--json]\n");
      return 2;
    }
  }
  return warmpath::run(quick, json);
}
