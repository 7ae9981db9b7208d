#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/input_file.h"
#include "model_file/model_store.h"
#include "text/chat_template.h"
#include "text/conversation.h"
#include "text/default_rendering.h"
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
    return ChatTemplate::compile(std::move(*source), "", "");
  }
  auto model = open_model(options.model.empty() ? default_model().name : std::string_view(options.model));
  if (!model.ok()) return model.status();
  auto vocabulary = vocabulary_from_gguf(model->file);
  if (!vocabulary.ok()) return vocabulary.status();
  if (vocabulary->chat_template.empty()) {
    return not_found(model->name + " has no chat template (tokenizer.chat_template); give one with --template FILE");
  }
  return ChatTemplate::compile(vocabulary->chat_template, std::string(vocabulary->text_of(vocabulary->bos)),
                               std::string(vocabulary->text_of(vocabulary->eos)));
}

int run(const Options& options) {
  const auto chat_template = load_template(options);
  if (!chat_template.ok()) return fail(chat_template.status());
  const auto json = read_input(options.conversation_file, kMaxInputBytes);
  if (!json.ok()) return fail(json.status());
  auto conversation = conversation_from_json(*json);
  if (!conversation.ok()) return fail(conversation.status());
  if (!options.exact) {
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
  command->add_option("--template", options->template_file, "use the chat template in this file")->excludes(model);
  command->add_option("CONVERSATION.json", options->conversation_file, "the conversation (default: standard input)");
  command->add_flag("--exact", options->exact,
                    "give the template the messages as they are, without the gateway's adaptations");
  command->callback([&selected, options] { selected = [options] { return run(*options); }; });
}

}  // namespace warmpath
