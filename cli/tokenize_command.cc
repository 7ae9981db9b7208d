#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/input_file.h"
#include "model_file/model_store.h"
#include "text/text_pipeline.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace warmpath {

namespace {

constexpr size_t kMaxInputBytes = size_t{1} << 30;

struct Options {
  std::string model = std::string(default_model().name);
  std::string file;
  bool detokenize = false;
  bool pieces = false;
  bool parse_special = false;
};

int fail(const Status& status) {
  std::fprintf(stderr, "warmpath tokenize: %s\n", status.message().c_str());
  return 1;
}

// Ids separated by anything that is not a digit or a minus sign, so that JSON arrays and plain columns both work.
Result<std::vector<TokenId>> parse_ids(const std::string& text, int vocabulary) {
  std::vector<TokenId> ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    if ((*at < '0' || *at > '9') && *at != '-') {
      ++at;
      continue;
    }
    TokenId id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || id < 0 || id >= vocabulary) {
      return invalid_argument("at byte " + std::to_string(at - text.data()) + ": not a token id of this model (0 to " +
                              std::to_string(vocabulary - 1) + ")");
    }
    ids.push_back(id);
    at = next;
  }
  return ids;
}

// A token's bytes as a quoted line.
void print_piece(TokenId id, std::string_view bytes) {
  std::printf("%d\t\"", id);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      std::printf("\\%c", c);
    } else if (c == '\n') {
      std::fputs("\\n", stdout);
    } else if (byte < 0x20 || byte >= 0x7f) {
      std::printf("\\x%02x", byte);
    } else {
      std::putchar(c);
    }
  }
  std::puts("\"");
}

// A folder, a tokenizer.json, or whatever else `--model` takes.
Result<Vocabulary> vocabulary_of(const std::string& model) {
  std::error_code error;
  if (model.ends_with(".json") || std::filesystem::is_directory(model, error)) return vocabulary_from_path(model);
  auto open = open_model(model);
  if (!open.ok()) return open.status();
  return vocabulary_from_gguf(open->file);
}

int run(const Options& options) {
  auto vocabulary = vocabulary_of(options.model);
  if (!vocabulary.ok()) return fail(vocabulary.status());
  auto tokenizer = Tokenizer::create(std::move(*vocabulary));
  if (!tokenizer.ok()) return fail(tokenizer.status());
  const auto input = read_input(options.file, kMaxInputBytes);
  if (!input.ok()) return fail(input.status());

  if (options.detokenize) {
    const auto ids = parse_ids(*input, (*tokenizer)->size());
    if (!ids.ok()) return fail(ids.status());
    const std::string text = (*tokenizer)->decode(*ids);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
  const auto encoded =
      (*tokenizer)->encode(*input, options.parse_special ? SpecialTokens::kParse : SpecialTokens::kText);
  if (!encoded.ok()) return fail(encoded.status());
  const std::vector<TokenId>& ids = *encoded;
  if (options.pieces) {
    for (const TokenId id : ids) print_piece(id, (*tokenizer)->token_bytes(id));
  } else {
    std::string line;
    for (const TokenId id : ids) line += (line.empty() ? "" : " ") + std::to_string(id);
    std::puts(line.c_str());
  }
  std::fprintf(stderr, "%zu tokens, %zu bytes\n", ids.size(), input->size());
  return 0;
}

}  // namespace

void add_tokenize_command(CLI::App& app, CommandMain& selected) {
  CLI::App* command = app.add_subcommand(
      "tokenize",
      "Show the token ids of a text, exactly as the gateway and the engine see them; or turn ids back into text.");
  const auto options = std::make_shared<Options>();
  command
      ->add_option("--model", options->model,
                   "a model's name, a GGUF file, a Hugging Face folder, a tokenizer.json, or synthetic:SHAPE")
      ->capture_default_str();
  command->add_option("FILE", options->file, "the text (default: standard input)");
  command->add_flag("--detokenize", options->detokenize,
                    "FILE holds ids (separated by spaces, commas or lines): print their text");
  command->add_flag("--pieces", options->pieces, "one token a line: id and bytes");
  command->add_flag("--parse-special", options->parse_special,
                    "read control tokens such as <|im_end|> in the text as the tokens; otherwise they are plain text");
  command->callback([&selected, options] { selected = [options] { return run(*options); }; });
}

}  // namespace warmpath
