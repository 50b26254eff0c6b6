/// The commands of the program. Each adds itself with its options and help; its callback does the work and leaves the
/// exit code.
#pragma once

#include <CLI/CLI.hpp>

namespace kvwitness::cli {

void add_run(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_merge(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_convert(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_mutants(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_search(CLI::App& app, int& exit_code);
void add_conform(CLI::App& app, int& exit_code);
void add_plugin_host(CLI::App& app, int& exit_code);

}  // namespace kvwitness::cli
