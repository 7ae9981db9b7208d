#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "cli/arguments.h"
#include "cli/command.h"
#include "router/auth.h"

namespace warmpath {

namespace {

struct Options {
  std::string tenant;
  std::string file;
  bool admin = false;
};

int add(const Options& options) {
  const auto fail = [](const std::string& why) {
    std::fprintf(stderr, "warmpath keys add: %s\n", why.c_str());
    return 1;
  };
  if (!is_tenant_name(options.tenant)) {
    return report_usage("warmpath keys add",
                        "'" + options.tenant + "' is not a tenant's name: 1 to 64 letters, digits, '.', '_' or '-'");
  }
  std::error_code error;
  bool unfinished_line = false;
  if (std::filesystem::exists(options.file, error) && std::filesystem::file_size(options.file, error) > 0) {
    const Status sound = check_key_file(options.file);
    if (!sound.ok()) return fail(sound.message() + "; nothing was added");
    std::ifstream in(options.file, std::ios::binary);
    in.seekg(-1, std::ios::end);
    unfinished_line = in.get() != '\n';
  }
  const std::string key = random_key();
  const std::string line = (unfinished_line ? "\n" : "") + key_file_line(options.tenant, key, options.admin) + "\n";
  const int file = open(options.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return fail("cannot write " + options.file + ": " + strerror(errno));
  const bool written = write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(file);
  if (!written) return fail("cannot write " + options.file + ": " + strerror(errno));
  std::printf("%s\n", key.c_str());
  std::fprintf(stderr,
               "This key of tenant %s is shown once; %s keeps only its SHA-256.\n"
               "A running gateway takes it after SIGHUP.\n",
               options.tenant.c_str(), options.file.c_str());
  return 0;
}

}  // namespace

void add_keys_command(CLI::App& app, CommandMain& selected) {
  CLI::App* keys =
      app.add_subcommand("keys", "Make API keys for the gateway's clients (auth.keys in its configuration).");
  keys->require_subcommand(1);
  CLI::App* adding = keys->add_subcommand("add", "Make a key, print it, and append its SHA-256 to the key file.");
  const auto options = std::make_shared<Options>();
  adding->add_option("TENANT", options->tenant, "whose key it is; tenants never share cached prompts")->required();
  adding->add_option("--file", options->file, "the key file")->required();
  adding->add_flag("--admin", options->admin, "the key may also read every tenant's receipts");
  adding->callback([&selected, options] { selected = [options] { return add(*options); }; });
}

}  // namespace warmpath
