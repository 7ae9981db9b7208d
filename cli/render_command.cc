#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/input_file.h"
#include "model_file/model_store.h"
#include "text/chat_template.h"
#include "text/conversation.h"
#include "text/default_rendering.h"
#include "text/text_pipeline.h"
#include "text/vocabulary.h"

namespace warmpath {

namespace {

constexpr size_t kMaxInputBytes = size_t{256} << 20;

struct Options {
  std::string model;
  std::string template_file;
  std::string conversation_file;
  bool exact = false;
};

int fail(const Status& status) {
  std::fprintf(stderr, "warmpath render: %s\n", status.message().c_str());
  return 1;
}

Result<std::shared_ptr<const ChatTemplate>> load_template(const Options& options) {
  if (!options.template_file.empty()) {
    auto source = read_input(options.template_file, kMaxInputBytes);
    if (!source.ok()) return source.status();
    // No model, so no tokens of its own: placeholders show where they go.
    return ChatTemplate::compile(std::move(*source), "<|bos|>", "<|eos|>");
  }
  const std::string name(options.model.empty() ? default_model().name : std::string_view(options.model));
  std::error_code error;
  Result<Vocabulary> vocabulary = Vocabulary();
  if (std::filesystem::is_directory(name, error)) {
    vocabulary = vocabulary_from_path(name);
  } else {
    auto model = open_model(name);
    if (!model.ok()) return model.status();
    vocabulary = vocabulary_from_gguf(model->file);
  }
  if (!vocabulary.ok()) return vocabulary.status();
  if (vocabulary->chat_template.empty()) {
    return not_found(name + " has no chat template (tokenizer.chat_template); give one with --template FILE");
  }
  return ChatTemplate::compile(vocabulary->chat_template, std::string(vocabulary->text_of(vocabulary->bos)),
                               std::string(vocabulary->text_of(vocabulary->eos)));
}

// What the gateway would refuse, told as it tells it; --exact leaves it to the template.
Status check_shape(const Conversation& conversation) {
  const auto wrong = [](const std::string& path, size_t index, const std::string& what) {
    return invalid_argument("'" + path + "[" + std::to_string(index) + "]" + what);
  };
  const auto has_text = [](const Value* dict, std::string_view key) {
    const Value* value = dict != nullptr && dict->is_dict() ? dict->find(key) : nullptr;
    return value != nullptr && value->is_string();
  };
  const std::vector<Value>& messages = conversation.messages.as_list().items;
  if (messages.empty()) return invalid_argument("'messages' must hold at least one message");
  for (size_t index = 0; index < messages.size(); ++index) {
    if (!messages[index].is_dict()) {
      return wrong("messages", index, "' must be an object, such as {\"role\": \"user\", \"content\": \"Hello\"}");
    }
    if (!has_text(&messages[index], "role")) return wrong("messages", index, ".role' must be a string");
  }
  if (!conversation.tools.is_list()) return {};
  const std::vector<Value>& tools = conversation.tools.as_list().items;
  for (size_t index = 0; index < tools.size(); ++index) {
    if (!tools[index].is_dict() || !has_text(tools[index].find("function"), "name")) {
      return wrong("tools", index,
                   "' must be an object, such as {\"type\": \"function\", \"function\": {\"name\": \"read\"}}");
    }
  }
  return {};
}

int run(const Options& options) {
  const auto chat_template = load_template(options);
  if (!chat_template.ok()) return fail(chat_template.status());
  const auto json = read_input(options.conversation_file, kMaxInputBytes);
  if (!json.ok()) return fail(json.status());
  auto conversation = conversation_from_json(*json);
  const std::string source =
      is_standard_input(options.conversation_file) ? "standard input" : options.conversation_file;
  if (!conversation.ok()) return fail(invalid_argument(source + ": " + conversation.status().message()));
  if (!options.exact) {
    const Status shape = check_shape(*conversation);
    if (!shape.ok()) return fail(invalid_argument(source + ": " + shape.message()));
    auto adapted = adapt_conversation((*chat_template)->abilities(), *conversation);
    if (!adapted.ok()) return fail(adapted.status());
    if (adapted->default_tools) {
      std::fputs("note: the template has no tools branch; tools are written in warmpath's default form\n", stderr);
    }
    conversation = std::move(adapted->conversation);
  }
  const auto text = (*chat_template)->render(*conversation);
  if (!text.ok()) return fail(text.status());
  for (const MarkedText::Part& part : text->parts()) std::fwrite(part.bytes.data(), 1, part.bytes.size(), stdout);
  return 0;
}

}  // namespace

void add_render_command(CLI::App& app, CommandMain& selected) {
  CLI::App* command = app.add_subcommand(
      "render",
      "Show the exact prompt text that a conversation becomes, before it is tokenized.\n"
      "CONVERSATION.json: {\"messages\": [...], \"tools\": [...], \"add_generation_prompt\": true, \"kwargs\": {...},\n"
      "\"bos_token\": \"\", \"eos_token\": \"\", \"now\": \"2026-01-31T12:00:00\"}; only messages are required.");
  const auto options = std::make_shared<Options>();
  CLI::Option* model =
      command->add_option("--model", options->model, "use this model's chat template (default: the default model)");
  command
      ->add_option("--template", options->template_file,
                   "use the chat template in this file (its bos_token and eos_token, unless given: "
                   "<|bos|> and <|eos|>)")
      ->excludes(model);
  command->add_option("CONVERSATION.json", options->conversation_file, "the conversation (default: standard input)");
  command->add_flag("--exact", options->exact,
                    "give the template the messages as they are, without the gateway's adaptations");
  command->callback([&selected, options] { selected = [options] { return run(*options); }; });
}

}  // namespace warmpath
