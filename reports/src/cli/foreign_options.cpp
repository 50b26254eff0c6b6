#include "foreign_options.hpp"

#include "kvwitness/scenarios/foreign.hpp"

#include "reports_option.hpp"

#include <chrono>
#include <filesystem>

namespace kvwitness::cli {
namespace {

core::ForeignCommand command_of(const ForeignOptions& options) {
  core::ForeignCommand command;
  command.time_limit = std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_seconds * 1000));
  if (!options.plugin.empty()) {
    command.argv = {std::filesystem::read_symlink("/proc/self/exe").string(), "plugin-host", options.plugin};
    command.counts_allocations = true;
  } else {
    command.argv = {"/bin/sh", "-c", options.exec};
  }
  return command;
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

void add_foreign_options(CLI::App& command, ForeignOptions& options) {
  CLI::Option* plugin = command
                            .add_option("--plugin", options.plugin,
                                        "A store in a shared library with the C interface of kvwitness/store.h")
                            ->type_name("FILE")
                            ->check(CLI::ExistingFile);
  command
      .add_option("--exec", options.exec,
                  "A store in another process: a shell command that speaks the store protocol (core/PROTOCOL.md)")
      ->type_name("COMMAND")
      ->check(not_empty())
      ->excludes(plugin);
  command.add_option("--timeout", options.timeout_seconds, "How long a foreign store may take for an answer")
      ->type_name("SECONDS")
      ->check(seconds_between(0.001, kDaySeconds))
      ->capture_default_str();
}

std::string add_foreign_kind(const ForeignOptions& options, const std::string& replayed_by,
                             scenarios::StoreRegistry& registry) {
  const core::ForeignCommand command = command_of(options);
  const core::ForeignHello hello = core::ask_foreign(command);
  const bool is_plugin = !options.plugin.empty();
  registry.add(scenarios::foreign_kind(
      command, hello,
      replayed_by + (is_plugin ? " --plugin " + quoted(options.plugin) : " --exec " + quoted(options.exec))));
  return hello.name;
}

}  // namespace kvwitness::cli
