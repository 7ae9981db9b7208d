// The subcommands of `warmpath`. Each registers its flags and, when chosen, stores what to run.
// Thread safety: main thread, before anything else starts.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace warmpath {

using CommandMain = std::function<int()>;  // returns the process's exit code

void add_up_command(CLI::App& app, CommandMain& selected);
void add_gateway_command(CLI::App& app, CommandMain& selected);
void add_mock_replica_command(CLI::App& app, CommandMain& selected);
void add_models_command(CLI::App& app, CommandMain& selected);
void add_tokenize_command(CLI::App& app, CommandMain& selected);
void add_render_command(CLI::App& app, CommandMain& selected);
void add_keys_command(CLI::App& app, CommandMain& selected);
void add_replay_command(CLI::App& app, CommandMain& selected);
void add_simulate_command(CLI::App& app, CommandMain& selected);
void add_doctor_command(CLI::App& app, CommandMain& selected);

}  // namespace warmpath
