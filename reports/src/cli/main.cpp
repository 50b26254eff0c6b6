/// The program kvwitness: parses its arguments, calls the library, prints.

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/reports/suite.hpp"
#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/trace_file.hpp"

#include "commands.hpp"
#include "output.hpp"

#include <csignal>
#include <exception>
#include <iostream>
#include <new>

namespace {

using kvwitness::reports::ExitCode;

constexpr const char* kFooter = R"(Start here:
  kvwitness run                  run the library of scenarios on every store; the table ends with one summary line
  kvwitness list                 what there is to run
  kvwitness explain              what the rules say
  kvwitness COMMAND --help       options and examples of a command

Exit codes, the first that applies:
  3  internal error, also: the store that must fail was not blamed, or the process of a case died
  2  usage, or an input that cannot be read
  6  two runs with the same seed differ
  1  a rule is broken
  7  a check never met what it is about, or a seeded fault survived
  8  a stale baseline: a line of a golden file that no case stands behind, or a known failure that passed or expired
  9  inconclusive: the trace cannot tell
  4  nothing was selected
  0  pass

Where a command reads a file, - is standard input, and standard output where it writes one.

Colour: NO_COLOR=1 turns it off, CLICOLOR_FORCE=1 on; else it depends on the terminal.)";

/// Also of a call for help, which ends in 0.
int usage_error(CLI::App& app, const CLI::ParseError& error) {
  return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::invalid_input);
}

int unknown_command(CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  const std::string near = kvwitness::reports::nearest_word(word, known);
  std::cerr << "kvwitness: error: there is no command '" << word << "'";
  if (!near.empty()) std::cerr << "; did you mean '" << near << "'?";
  std::cerr << "\nCommands:";
  for (const std::string& command : known) std::cerr << " " << command;
  std::cerr << "\n";
  return static_cast<int>(ExitCode::invalid_input);
}

int parse_and_run(CLI::App& app, int argc, char** argv, int& exit_code) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const std::string word = argc > 1 ? argv[1] : "";
    const bool names_none = app.get_subcommands().empty() && !word.empty() && !word.starts_with('-');
    if (names_none) return unknown_command(app, word);
    return usage_error(app, error);
  }
  return exit_code;
}

int report_error(const char* kind, const char* what, ExitCode code) {
  kvwitness::cli::clear_progress_line();
  std::cerr << "kvwitness: " << kind << what << "\n";
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that goes away must not take the verdict, which is in the exit code, with it.
  std::signal(SIGPIPE, SIG_IGN);
  kvwitness::trace::set_assert_hook(&kvwitness::trace::flush_open_traces);
  int exit_code = 0;
  CLI::App app("Traced simulation and verification of KV caches", "kvwitness");
  app.set_version_flag("--version", std::string(kvwitness::trace::this_producer()));
  app.require_subcommand(1);
  app.footer(kFooter);
  kvwitness::cli::add_run(app, exit_code);
  kvwitness::cli::add_list(app, exit_code);
  kvwitness::cli::add_merge(app, exit_code);
  kvwitness::cli::add_check(app, exit_code);
  kvwitness::cli::add_inspect(app, exit_code);
  kvwitness::cli::add_convert(app, exit_code);
  kvwitness::cli::add_explain(app, exit_code);
  kvwitness::cli::add_mutants(app, exit_code);
  kvwitness::cli::add_bench_table(app, exit_code);
  kvwitness::cli::add_plan(app, exit_code);
  kvwitness::cli::add_search(app, exit_code);
  kvwitness::cli::add_conform(app, exit_code);
  kvwitness::cli::add_plugin_host(app, exit_code);
  try {
    return parse_and_run(app, argc, argv, exit_code);
  } catch (const kvwitness::trace::Error& error) {
    return report_error("error: ", error.what(), ExitCode::invalid_input);
  } catch (const std::bad_alloc&) {
    return report_error("internal error: ", "out of memory", ExitCode::internal_error);
  } catch (const std::exception& error) {
    return report_error("internal error: ", error.what(), ExitCode::internal_error);
  }
}
