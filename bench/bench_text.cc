// bench_text: how fast text becomes tokens, on one core.
//
//   bench_text [--quick] [--json] [--only bpe|turn|render] [--hf-python PYTHON]
//
//   bpe     Cold tokenizing, per family of byte-level BPE vocabularies, of a SentencePiece vocabulary, and with the
//           regular expressions of an unknown tokenizer.json: of this project's own sources, and of the hardest test
//           documents (many scripts, hardly a word twice).
//   turn    One more turn of a 100,000-token session through the gateway's whole text path: read the messages from
//           JSON, render, tokenize.
//   render  Each chat template of the shared model data over a long agent's history.
//
// With --hf-python, Hugging Face tokenizers and Jinja2 do the same in the same run. CPU time of this thread, medians.
// The last line is one JSON object when --json is given.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "model_file/gguf_file.h"
#include "text/mixed_text_for_test.h"
#include "text/prompt_encoder.h"
#include "text/rules_json.h"
#include "text/vocabulary_for_test.h"

namespace warmpath {
namespace {

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// What coding agents send: this project's own sources and pages, once each, in a fixed order.
std::string project_text(size_t max_bytes) {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path root = WARMPATH_SOURCE_DIR;
  for (const char* room : {"base", "bench", "cli", "config", "docs", "engine", "kernels", "loadtest", "model_file",
                           "policies", "proto", "radix_index", "router", "scripts", "tests", "text"}) {
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / room, error)) {
      const std::string extension = entry.path().extension().string();
      const bool is_text = extension == ".cc" || extension == ".h" || extension == ".md" || extension == ".py";
      if (is_text && entry.path().filename() != "unicode_data.cc") paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::string text;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    text.append(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (text.size() > max_bytes) break;
  }
  text.resize(std::min(text.size(), max_bytes));
  return text;
}

// The hardest of the test documents: many scripts, control characters, random letters; hardly a piece comes twice.
std::string mixed_text(size_t bytes) {
  std::string text;
  for (uint64_t index = 0; text.size() < bytes; ++index) text += MixedText::document(index, 77) + "\n";
  return text;
}

struct Loaded {
  std::string path;
  Vocabulary vocabulary;
  std::shared_ptr<const Tokenizer> tokenizer;
};

// What no family's scanner does, so that PCRE2 runs it.
constexpr std::string_view kOwnPattern =
    R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "behavior": "Isolated", "invert": false,
        "pattern": {"Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,2}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]}})";

Result<std::shared_ptr<const TextRules>> rules_from_json(std::string_view json) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(simdjson::padded_string(json)).get(root)) return invalid_argument("not JSON");
  auto rules = std::make_shared<TextRules>();
  WARMPATH_RETURN_IF_ERROR(read_rules(JsonNode(root, "bench_text"), *rules));
  return std::shared_ptr<const TextRules>(std::move(rules));
}

std::optional<Loaded> load(const std::string& family) {
  const bool own_pattern = family == "own-pattern";
  const auto path = find_vocabulary(own_pattern || family == "seed-coder" ? "llama-bpe" : family);
  if (!path) return std::nullopt;
  const auto file = GgufFile::open(*path);
  if (!file.ok()) return std::nullopt;
  auto vocabulary = vocabulary_from_gguf(*file);
  if (!vocabulary.ok()) return std::nullopt;
  if (vocabulary->model == "gpt2") {
    auto rules = own_pattern ? rules_from_json(kOwnPattern) : rules_of_family("gpt2", family, false);
    if (!rules.ok()) return std::nullopt;
    vocabulary->rules = *std::move(rules);
  }
  auto tokenizer = Tokenizer::create(*vocabulary);
  if (!tokenizer.ok()) return std::nullopt;
  return Loaded{*path, *std::move(vocabulary), *std::move(tokenizer)};
}

// The lines that a command prints; none when it fails.
std::vector<std::string> lines_of(const std::string& command) {
  std::vector<std::string> lines;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return lines;
  std::array<char, 1024> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) lines.emplace_back(line.data());
  if (pclose(pipe) != 0) lines.clear();
  return lines;
}

// MB/s of Hugging Face tokenizers on each text file; empty when they cannot be run.
std::vector<double> hugging_face_mb_per_s(const std::string& python, const Loaded& loaded, const std::string& family,
                                          const std::string& text_path, const std::string& mixed_path) {
  const std::string root = WARMPATH_SOURCE_DIR;
  std::vector<double> speeds;
  for (const std::string& line :
       lines_of(fmt::format("TOKENIZERS_PARALLELISM=false '{}' '{}/text/reference/bpe_speed.py' '{}' "
                            "'{}/../shared/model_data/pre_tokenizers.json' {} '{}' '{}'",
                            python, root, loaded.path, root, family, text_path, mixed_path))) {
    speeds.push_back(std::atof(line.c_str()));
  }
  return speeds.size() == 2 ? speeds : std::vector<double>();
}

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<uint8_t>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

struct TurnTimes {
  double turn_us = 0;
  double read_us = 0;
  double render_us = 0;
  double whole_render_us = 0;
  double cold_ms = 0;
  size_t tokens = 0;
};

// A session of about 100,000 tokens that grows by two messages a turn, as raw JSON messages.
TurnTimes time_turns(const Loaded& loaded, int turns) {
  const std::string source =
      loaded.vocabulary.chat_template.empty() ? synthetic_vocabulary().chat_template : loaded.vocabulary.chat_template;
  const auto compiled = ChatTemplate::compile(source, std::string(loaded.vocabulary.text_of(loaded.vocabulary.bos)),
                                              std::string(loaded.vocabulary.text_of(loaded.vocabulary.eos)));
  if (!compiled.ok()) return {};
  PromptEncoder encoder(loaded.tokenizer, *compiled, {});
  std::vector<std::string> raw;
  const auto add_message = [&raw](size_t bytes) {
    const uint64_t index = raw.size();
    raw.push_back(fmt::format(R"({{"role":"{}","content":{}}})", index % 2 == 0 ? "user" : "assistant",
                              json_string(MixedText::document(index / 2 * 6 + index % 2, 78, bytes))));
  };
  std::optional<Rendering> before;
  const auto encode = [&]() -> TurnTimes {
    TurnTimes times;
    const double start = thread_seconds();
    Conversation conversation;
    for (const std::string& message : raw) conversation.add_message(*encoder.messages().read(message));
    const double read = thread_seconds();
    const auto prompt = encoder.encode_conversation(conversation);
    const double end = thread_seconds();
    times.read_us = (read - start) * 1e6;
    times.turn_us = (end - start) * 1e6;
    // For their own figures: the encoder has rendered already.
    auto after = (*compiled)->render_after(before ? &*before : nullptr, conversation);
    const double rendered = thread_seconds();
    const auto whole = (*compiled)->render(conversation);
    const double rendered_whole = thread_seconds();
    times.render_us = (rendered - end) * 1e6;
    times.whole_render_us = (rendered_whole - rendered) * 1e6;
    if (after.ok()) before = *std::move(after);
    times.tokens = whole.ok() && prompt.ok() ? prompt->tokens.size() : 0;
    return times;
  };
  double cold_ms = 0;
  for (size_t tokens = 0; tokens < 100'000;) {
    for (int message = 0; message < 8; ++message) add_message(4000);
    const TurnTimes times = encode();
    if (times.tokens == 0) return {};
    tokens = times.tokens;
    cold_ms += times.turn_us / 1e3;
  }
  std::vector<TurnTimes> measured;
  for (int turn = 0; turn < turns; ++turn) {
    add_message(400);
    add_message(1800);
    measured.push_back(encode());
  }
  const auto median = [&measured](double TurnTimes::*time) {
    std::vector<double> values;
    for (const TurnTimes& each : measured) values.push_back(each.*time);
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
  };
  return {median(&TurnTimes::turn_us),
          median(&TurnTimes::read_us),
          median(&TurnTimes::render_us),
          median(&TurnTimes::whole_render_us),
          cold_ms,
          measured.back().tokens};
}

using Fields = std::map<std::string, double>;

// Sets the field, or lowers it.
void keep_lowest(Fields& fields, const std::string& name, double value) {
  const auto [field, added] = fields.emplace(name, value);
  if (!added) field->second = std::min(field->second, value);
}

std::string field_name(std::string text) {
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

// MB/s of a tokenizer that has seen nothing yet.
double cold_mb_per_s(const Vocabulary& vocabulary, const std::string& text, int rounds) {
  std::vector<TokenId> ids;
  ids.reserve(text.size());
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const auto fresh = Tokenizer::create(vocabulary);
    ids.clear();
    const double start = thread_seconds();
    (void)(*fresh)->encode(text, SpecialTokens::kText, ids);
    seconds.push_back(thread_seconds() - start);
  }
  std::sort(seconds.begin(), seconds.end());
  return static_cast<double>(text.size()) / seconds[seconds.size() / 2] / 1e6;
}

double one_char_ms(const Tokenizer& tokenizer) {
  double worst = 0;
  std::vector<TokenId> ids;
  for (const char filler : {' ', 'a', '=', '\n'}) {
    const std::string run_of_one(4 << 20, filler);
    ids.clear();
    const double start = thread_seconds();
    (void)tokenizer.encode(run_of_one, SpecialTokens::kText, ids);
    worst = std::max(worst, (thread_seconds() - start) * 1e3);
  }
  return worst;
}

void measure_bpe(bool quick, const std::string& python, Fields& fields) {
  const std::string text = project_text(quick ? 1 << 20 : 4 << 20);
  const std::string mixed = mixed_text(1 << 20);
  fmt::print("{:.1f} MB of this project's sources and pages\n", static_cast<double>(text.size()) / 1e6);
  const std::string text_path = fmt::format("/tmp/warmpath_bench_text_{}.txt", std::time(nullptr));
  const std::string mixed_path = text_path + ".mixed";
  if (!python.empty()) {
    std::ofstream(text_path, std::ios::binary) << text;
    std::ofstream(mixed_path, std::ios::binary) << mixed;
  }
  bool compared = false;
  for (const char* family : {"smollm", "gpt-2", "llama-bpe", "qwen2", "qwen35", "deepseek-llm", "deepseek-coder",
                             "deepseek-v3", "gpt-4o", "tekken", "kimi-k2", "llama-spm", "seed-coder", "own-pattern"}) {
    const auto loaded = load(family);
    if (!loaded) {
      fmt::print("{:14} no vocabulary on this machine\n", family);
      continue;
    }
    const double speed = cold_mb_per_s(loaded->vocabulary, text, quick ? 3 : 5);
    const double mixed_speed = cold_mb_per_s(loaded->vocabulary, mixed, 3);
    const double worst_ms = one_char_ms(*loaded->tokenizer);
    fmt::print("{:14} {:6.1f} MB/s cold, {:5.1f} on mixed scripts, {:4.0f} ms for 4 MB of one character", family, speed,
               mixed_speed, worst_ms);
    const std::string key = field_name(family);
    fields["bpe_mb_per_s_" + key] = speed;
    fields["bpe_mixed_mb_per_s_" + key] = mixed_speed;
    fields["one_char_4mb_ms"] = std::max(fields["one_char_4mb_ms"], worst_ms);
    keep_lowest(fields, "bpe_mb_per_s", speed);
    keep_lowest(fields, "bpe_mixed_mb_per_s", mixed_speed);
    // Building its tokenizers takes longer than the measurement: with --quick only the first family is compared.
    if (!python.empty() && !(quick && compared)) {
      const auto peer = hugging_face_mb_per_s(python, *loaded, family, text_path, mixed_path);
      if (!peer.empty()) {
        fmt::print("; Hugging Face tokenizers {:.1f} and {:.1f}", peer[0], peer[1]);
        fields["hf_bpe_mb_per_s_" + key] = peer[0];
        fields["hf_bpe_mixed_mb_per_s_" + key] = peer[1];
        keep_lowest(fields, "hf_bpe_mb_per_s", peer[0]);
        keep_lowest(fields, "hf_bpe_mixed_mb_per_s", peer[1]);
        compared = true;
      }
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  std::remove(text_path.c_str());
  std::remove(mixed_path.c_str());
}

void measure_turns(bool quick, Fields& fields) {
  auto loaded = load("smollm");
  if (!loaded) {
    const Vocabulary vocabulary = synthetic_vocabulary();
    loaded = Loaded{"", vocabulary, *Tokenizer::create(vocabulary)};
  }
  const TurnTimes turns = time_turns(*loaded, quick ? 15 : 60);
  fmt::print(
      "one more turn at {} tokens: {:.0f} us (of which reading messages {:.0f}, rendering {:.0f}; rendering whole "
      "would take {:.0f}); the session cold {:.0f} ms\n",
      turns.tokens, turns.turn_us, turns.read_us, turns.render_us, turns.whole_render_us, turns.cold_ms);
  fields["turn_us"] = turns.turn_us;
  fields["turn_read_us"] = turns.read_us;
  fields["turn_render_us"] = turns.render_us;
  fields["turn_whole_render_us"] = turns.whole_render_us;
  fields["turn_tokens"] = static_cast<double>(turns.tokens);
}

// Microseconds of one rendering: the median of `rounds` batches.
double render_us(const ChatTemplate& compiled, const Conversation& conversation, int rounds) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    constexpr int kBatch = 20;
    const double start = thread_seconds();
    for (int each = 0; each < kBatch; ++each) (void)compiled.render(conversation);
    times.push_back((thread_seconds() - start) * 1e6 / kBatch);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void measure_rendering(bool quick, const std::string& python, Fields& fields) {
  const std::filesystem::path data = std::filesystem::path(WARMPATH_SOURCE_DIR) / "../shared/model_data";
  const auto read = [](const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  };
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(data / "chat_templates", error)) {
    paths.push_back(entry.path());
  }
  if (paths.empty()) fmt::print("no chat templates on this machine\n");
  std::sort(paths.begin(), paths.end());
  // The first of these that both render.
  const std::vector<std::string> names = {"11_long_agent_history.json", "02_system_multi_turn.json",
                                          "01_single_turn.json"};
  std::map<std::string, double> peers;  // template and conversation -> microseconds
  if (!python.empty() && !paths.empty()) {
    for (const std::string& line : lines_of(fmt::format("'{}' '{}/text/reference/render_speed.py' '{}' {}", python,
                                                        WARMPATH_SOURCE_DIR, data.string(), fmt::join(names, " ")))) {
      std::istringstream words(line);
      std::string name, conversation;
      double us = 0;
      if (words >> name >> conversation >> us) peers[name + " " + conversation] = us;
    }
  }
  for (const auto& path : paths) {
    const auto compiled = ChatTemplate::compile(read(path), "<|bos|>", "<|eos|>");
    const std::string name = path.filename().string();
    for (const std::string& conversation_name : names) {
      auto conversation = conversation_from_json(read(data / "conversations" / conversation_name));
      if (!compiled.ok() || !conversation.ok() || !(*compiled)->render(*conversation).ok()) continue;
      const double us = render_us(**compiled, *conversation, quick ? 5 : 21);
      const std::string key = field_name(path.stem().string());
      fields["render_us_" + key] = us;
      fields["render_us"] += us;
      const auto peer = peers.find(name + " " + conversation_name);
      fmt::print("{:55} {:26} {:7.1f} us{}\n", name, conversation_name, us,
                 peer != peers.end() ? fmt::format(", Jinja2 {:.1f}", peer->second) : "");
      if (peer != peers.end()) {
        fields["jinja2_render_us_" + key] = peer->second;
        fields["jinja2_render_us"] += peer->second;
        fields["render_us_beside_jinja2"] += us;
      }
      break;
    }
  }
}

int run(bool quick, bool json, const std::string& only, const std::string& python) {
  Fields fields;
  if (only.empty() || only == "bpe") measure_bpe(quick, python, fields);
  if (only.empty() || only == "turn") measure_turns(quick, fields);
  if (only.empty() || only == "render") measure_rendering(quick, python, fields);
  if (json) {
    std::string object;
    for (const auto& [name, value] : fields)
      object += fmt::format("{}\"{}\": {:.6g}", object.empty() ? "" : ", ", name, value);
    fmt::print("{{{}}}\n", object);
  }
  return 0;
}

}  // namespace
}  // namespace warmpath

int main(int argc, char** argv) {
  bool quick = false;
  bool json = false;
  std::string only;
  std::string python;
  for (int index = 1; index < argc; ++index) {
    const std::string argument = argv[index];
    if (argument == "--quick") {
      quick = true;
    } else if (argument == "--json") {
      json = true;
    } else if (argument == "--only" && index + 1 < argc) {
      only = argv[++index];
    } else if (argument == "--hf-python" && index + 1 < argc) {
      python = argv[++index];
    } else {
      fmt::print(
          "usage: bench_text [--quick] [--json] [--only bpe|turn|render] [--hf-python PYTHON]\n"
          "PYTHON: an interpreter with the packages tokenizers, gguf, xxhash and jinja2, to run beside it\n");
      return argument == "--help" ? 0 : 2;
    }
  }
  return warmpath::run(quick, json, only, python);
}
