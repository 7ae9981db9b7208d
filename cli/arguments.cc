#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <vector>

#include "config/nearest_word.h"

namespace warmpath {

namespace {

// The subcommand that was being parsed, and how its user calls it: "warmpath keys add".
CLI::App* innermost(CLI::App& app, std::string& name) {
  CLI::App* at = &app;
  name = app.get_name();
  for (std::vector<CLI::App*> parsed = at->get_subcommands(); !parsed.empty(); parsed = at->get_subcommands()) {
    at = parsed.back();
    name += " " + at->get_name();
  }
  return at;
}

// What `at` would have understood in the place of `word`.
std::vector<std::string> understood(const CLI::App& at, const std::string& word) {
  std::vector<std::string> names;
  if (word.starts_with('-')) {
    for (const CLI::Option* option : at.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  } else {
    for (const CLI::App* command : at.get_subcommands(nullptr)) {
      if (!command->get_name().empty()) names.push_back(command->get_name());
    }
  }
  return names;
}

std::string explain(const CLI::App& at, const CLI::ParseError& error) {
  const std::vector<std::string> extras = at.remaining();
  // A command that was misspelt is missed, too.
  const bool is_unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                          dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (!is_unknown || extras.empty()) return error.what();
  const std::vector<std::string> names = understood(at, extras[0]);
  const std::string word = extras[0].substr(0, extras[0].find('='));
  const std::string* near = nearest_word(word, names);
  return "unknown argument '" + extras[0] + "'" + (near != nullptr ? "; did you mean " + *near + "?" : "");
}

}  // namespace

std::optional<int> parse_arguments(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    std::string name;
    const CLI::App* at = innermost(app, name);
    return report_usage(name, explain(*at, error));
  }
}

int report_failure(const std::string& command, const Status& status) {
  std::fprintf(stderr, "%s: %s\n", command.c_str(), status.message().c_str());
  return kExitFailure;
}

int report_usage(const std::string& command, const std::string& what) {
  std::fprintf(stderr, "%s: %s\n`%s --help` shows how it is used\n", command.c_str(), what.c_str(), command.c_str());
  return kExitUsage;
}

}  // namespace warmpath
