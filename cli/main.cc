#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "base/version.h"
#include "cli/arguments.h"
#include "cli/command.h"

int main(int argc, char** argv) {
  CLI::App app{
      "warmpath: one URL in front of your own LLM replicas. It knows which replica holds which prompt prefix and sends "
      "each\n"
      "request where the least work is left.\n\n"
      "Start here:  warmpath up        a gateway and two replicas on this machine, with the default model\n"
      "             warmpath doctor    what this machine has, and what to do about what it lacks",
      "warmpath"};
  app.set_version_flag("--version", std::string("warmpath ") + warmpath::kVersion);
  app.require_subcommand(1);
  app.fallthrough(false);

  warmpath::CommandMain selected;
  warmpath::add_up_command(app, selected);
  warmpath::add_gateway_command(app, selected);
  warmpath::add_mock_replica_command(app, selected);
  warmpath::add_models_command(app, selected);
  warmpath::add_tokenize_command(app, selected);
  warmpath::add_render_command(app, selected);
  warmpath::add_keys_command(app, selected);
  warmpath::add_replay_command(app, selected);
  warmpath::add_simulate_command(app, selected);
  warmpath::add_doctor_command(app, selected);
  for (CLI::App* command : app.get_subcommands({})) {
    command->set_version_flag("--version", std::string("warmpath ") + warmpath::kVersion);
  }
  if (argc == 1) {
    std::fputs(app.help().c_str(), stdout);
    return warmpath::kExitUsage;
  }
  if (const std::optional<int> code = warmpath::parse_arguments(app, argc, argv)) return *code;
  try {
    return selected();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "warmpath: %s\n", error.what());
    return warmpath::kExitFailure;
  }
}
