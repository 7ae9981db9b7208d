// bench_text: how fast text becomes tokens. Cold byte-level BPE per family on one core (Hugging Face tokenizers beside
// it in the same run with --hf-python), and one more turn of a 100,000-token session through the gateway's whole text
// path: read the messages from JSON, render, tokenize.
//
//   bench_text [--quick] [--json] [--hf-python PYTHON]
//
// CPU time of this thread, medians. The last line is one JSON object when --json is given.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model_file/gguf_file.h"
#include "text/mixed_text_for_test.h"
#include "text/prompt_encoder.h"
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

std::optional<Loaded> load(const std::string& family) {
  const auto path = find_vocabulary(family);
  if (!path) return std::nullopt;
  const auto file = GgufFile::open(*path);
  if (!file.ok()) return std::nullopt;
  auto vocabulary = vocabulary_from_gguf(*file);
  if (!vocabulary.ok()) return std::nullopt;
  auto tokenizer = Tokenizer::create(*vocabulary);
  if (!tokenizer.ok()) return std::nullopt;
  return Loaded{*path, *std::move(vocabulary), *std::move(tokenizer)};
}

// MB/s of Hugging Face tokenizers on the text in `text_path`; 0 when it cannot be run.
double hugging_face_mb_per_s(const std::string& python, const Loaded& loaded, const std::string& family,
                             const std::string& text_path) {
  const std::string root = WARMPATH_SOURCE_DIR;
  const std::string command = fmt::format(
      "TOKENIZERS_PARALLELISM=false '{}' '{}/text/reference/bpe_speed.py' '{}' "
      "'{}/../shared/model_data/pre_tokenizers.json' {} '{}'",
      python, root, loaded.path, root, family, text_path);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return 0;
  std::array<char, 256> line{};
  const bool read = std::fgets(line.data(), line.size(), pipe) != nullptr;
  return pclose(pipe) == 0 && read ? std::atof(line.data()) : 0;
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
  const auto encode = [&](TurnTimes* times) -> size_t {
    const double start = thread_seconds();
    Conversation conversation;
    for (const std::string& message : raw) conversation.add_message(*encoder.messages().read(message));
    const double read = thread_seconds();
    const auto text = compiled.value()->render(conversation);
    const double rendered = thread_seconds();
    const auto prompt = encoder.encode_conversation(conversation);
    const double end = thread_seconds();
    if (times != nullptr) {
      times->read_us = (read - start) * 1e6;
      times->render_us = (rendered - read) * 1e6;
      // The explicit rendering above is for its own figure only: encode_conversation renders again.
      times->turn_us = (end - start - (rendered - read)) * 1e6;
    }
    return text.ok() && prompt.ok() ? prompt->tokens.size() : 0;
  };
  TurnTimes times;
  while (times.tokens < 100'000) {
    for (int message = 0; message < 8; ++message) add_message(4000);
    const double start = thread_seconds();
    times.tokens = encode(nullptr);
    times.cold_ms += (thread_seconds() - start) * 1e3;
  }
  std::vector<TurnTimes> measured;
  for (int turn = 0; turn < turns; ++turn) {
    add_message(400);
    add_message(1800);
    TurnTimes one;
    one.tokens = encode(&one);
    measured.push_back(one);
  }
  std::sort(measured.begin(), measured.end(), [](const auto& a, const auto& b) { return a.turn_us < b.turn_us; });
  TurnTimes result = measured[measured.size() / 2];
  result.cold_ms = times.cold_ms;
  return result;
}

int run(bool quick, bool json, const std::string& python) {
  std::map<std::string, double> fields;
  const std::string text = project_text(quick ? 1 << 20 : 4 << 20);
  const std::string mixed = mixed_text(1 << 20);
  fmt::print("{:.1f} MB of this project's sources and pages\n", static_cast<double>(text.size()) / 1e6);
  const std::string text_path = fmt::format("/tmp/warmpath_bench_text_{}.txt", std::time(nullptr));
  if (!python.empty()) std::ofstream(text_path, std::ios::binary) << text;
  std::optional<Loaded> first;
  for (const char* family : {"smollm", "gpt-2", "llama-bpe", "qwen2", "qwen35"}) {
    const auto loaded = load(family);
    if (!loaded) {
      fmt::print("{:10} no vocabulary on this machine\n", family);
      continue;
    }
    if (!first) first = loaded;
    std::vector<TokenId> ids;
    ids.reserve(text.size());
    // Cold: a tokenizer that has seen nothing yet.
    std::vector<double> rounds;
    for (int round = 0; round < (quick ? 3 : 5); ++round) {
      const auto fresh = Tokenizer::create(loaded->vocabulary);
      ids.clear();
      const double start = thread_seconds();
      (void)(*fresh)->encode(text, SpecialTokens::kText, ids);
      rounds.push_back(thread_seconds() - start);
    }
    std::sort(rounds.begin(), rounds.end());
    const double mb_per_s = static_cast<double>(text.size()) / rounds[rounds.size() / 2] / 1e6;
    const double mixed_start = thread_seconds();
    ids.clear();
    (void)loaded->tokenizer->encode(mixed, SpecialTokens::kText, ids);
    const double mixed_mb_per_s = static_cast<double>(mixed.size()) / (thread_seconds() - mixed_start) / 1e6;
    double worst_ms = 0;
    for (const char filler : {' ', 'a', '=', '\n'}) {
      const std::string run_of_one(4 << 20, filler);
      const double start = thread_seconds();
      ids.clear();
      (void)loaded->tokenizer->encode(run_of_one, SpecialTokens::kText, ids);
      worst_ms = std::max(worst_ms, (thread_seconds() - start) * 1e3);
    }
    // Building its tokenizers takes longer than the measurement: with --quick only the first family is compared.
    const bool with_peer = !python.empty() && !(quick && fields.contains("hf_bpe_mb_per_s"));
    const double peer = !with_peer ? 0 : hugging_face_mb_per_s(python, *loaded, family, text_path);
    fmt::print("{:10} {:7.1f} MB/s cold, {:5.1f} on mixed scripts, {:4.0f} ms for 4 MB of one character{}\n", family,
               mb_per_s, mixed_mb_per_s, worst_ms,
               peer > 0 ? fmt::format(", Hugging Face tokenizers {:.1f} MB/s", peer) : "");
    std::string key = family;
    std::replace(key.begin(), key.end(), '-', '_');
    fields["bpe_mb_per_s_" + key] = mb_per_s;
    fields["bpe_mixed_mb_per_s_" + key] = mixed_mb_per_s;
    fields["one_char_4mb_ms"] = std::max(fields["one_char_4mb_ms"], worst_ms);
    fields["bpe_mb_per_s"] = fields.contains("bpe_mb_per_s") ? std::min(fields["bpe_mb_per_s"], mb_per_s) : mb_per_s;
    if (peer > 0) {
      fields["hf_bpe_mb_per_s_" + key] = peer;
      fields["hf_bpe_mb_per_s"] = fields.contains("hf_bpe_mb_per_s") ? std::min(fields["hf_bpe_mb_per_s"], peer) : peer;
    }
  }
  std::remove(text_path.c_str());
  if (!first) {
    const Vocabulary vocabulary = synthetic_vocabulary();
    first = Loaded{"", vocabulary, *Tokenizer::create(vocabulary)};
  }
  const TurnTimes turns = time_turns(*first, quick ? 15 : 60);
  fmt::print(
      "one more turn at {} tokens: {:.0f} us (reading messages {:.0f}, rendering {:.0f}); the session cold {:.0f} ms\n",
      turns.tokens, turns.turn_us, turns.read_us, turns.render_us, turns.cold_ms);
  fields["turn_us"] = turns.turn_us;
  fields["turn_read_us"] = turns.read_us;
  fields["turn_render_us"] = turns.render_us;
  fields["turn_tokens"] = static_cast<double>(turns.tokens);
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
  std::string python;
  for (int index = 1; index < argc; ++index) {
    const std::string argument = argv[index];
    if (argument == "--quick") {
      quick = true;
    } else if (argument == "--json") {
      json = true;
    } else if (argument == "--hf-python" && index + 1 < argc) {
      python = argv[++index];
    } else {
      fmt::print(
          "usage: bench_text [--quick] [--json] [--hf-python PYTHON]\n"
          "PYTHON: an interpreter with the packages tokenizers and gguf, to run beside it\n");
      return argument == "--help" ? 0 : 2;
    }
  }
  return warmpath::run(quick, json, python);
}
