#include "kvwitness/core/plugin_host.hpp"
#include "kvwitness/reports/conformance.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/error.hpp"

#include "case_options.hpp"
#include "commands.hpp"
#include "foreign_options.hpp"
#include "output.hpp"
#include "reports_option.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace kvwitness::cli {
namespace {

struct ConformCommand {
  CaseOptions cases;
  ForeignOptions foreign;
  std::string store;
  double shrink_seconds = 20;
  std::string profile;
};

constexpr const char* kFooter =
    R"(Runs every scenario whose requirements the store meets, and prints what it can do, each rule's verdict, what a token
costs, and the first scenario that it fails, made small, with expected and observed slots. A capability that is declared
and that no scenario exercised fails. A store that crashes, hangs or talks nonsense fails the scenario at that step, and
is started anew for the next one.

Examples:
  kvwitness conform --plugin ./libmine.so              a plug-in in C (kvwitness/store.h)
  kvwitness conform --exec 'python3 mine.py'           a process, in any language (core/PROTOCOL.md)
  kvwitness conform --store ring                       one of the product's own
  kvwitness conform --exec 'node mine.js' --filter 'ring/*' --profile conformance.json)";

/// The profile is made once, whoever asks for it first.
class LazyProfile {
 public:
  LazyProfile(const CaseRun& run, const scenarios::StoreRegistry& registry, double shrink_seconds)
      : paths_(run.paths), registry_(&registry) {
    options_.store = run.suite.stores.front();
    options_.suite = run.suite;
    options_.shrink_seconds = shrink_seconds;
  }
  const reports::ConformanceResult& of(const reports::SuiteResult& suite) {
    if (!profile_) profile_ = reports::conformance_of(suite, paths_, *registry_, options_);
    clear_progress_line();
    return *profile_;
  }

 private:
  std::vector<std::filesystem::path> paths_;
  const scenarios::StoreRegistry* registry_;
  reports::ConformanceOptions options_{};
  std::optional<reports::ConformanceResult> profile_;
};

int conform(const ConformCommand& command) {
  if (command.foreign.are_given() == !command.store.empty())
    throw trace::Error("conform takes one of --plugin FILE, --exec COMMAND and --store NAME");
  scenarios::StoreRegistry registry = scenarios::with_mutants(scenarios::product_stores());
  CaseRun run = case_run(command.cases);
  run.suite.stores = {command.foreign.are_given() ? add_foreign_kind(command.foreign, "conform", registry)
                                                  : command.store};
  run.suite.skip_unbuildable = true;
  run.suite.require_exercised = true;
  std::optional<Output> json;
  if (!command.profile.empty()) {
    run.outputs = {command.profile};
    json.emplace(command.profile);
  }
  LazyProfile profile(run, registry, command.shrink_seconds);
  const auto write = [&](const reports::SuiteResult& result, std::ostream& out, bool color) {
    reports::write_conformance_text(profile.of(result), out, color);
  };
  const auto conclude = [&](const reports::SuiteResult& result) {
    if (json) {
      reports::write_conformance_json(profile.of(result), json->stream());
      json->close();
    }
    return reports::exit_code(profile.of(result));
  };
  return run_cases(command.cases, registry, std::move(run), write, conclude);
}

}  // namespace

void add_conform(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ConformCommand>();
  CLI::App& command = *app.add_subcommand("conform", "Whether a store, of any language, is right: all that it can do");
  add_foreign_options(command, options->foreign);
  command.add_option("--store", options->store, "One of the product's stores instead. See list --stores")
      ->check(not_empty());
  command
      .add_option("--shrink-time", options->shrink_seconds, "How long to make the first failure small; 0: not at all")
      ->type_name("SECONDS")
      ->check(seconds_between(0, kDaySeconds))
      ->capture_default_str();
  command.add_option("--profile", options->profile, "What is printed, as JSON; --report is about the cases")
      ->type_name("FILE")
      ->check(not_empty());
  add_case_options(command, options->cases);
  command.footer(kFooter);
  command.callback([options, &exit_code] { exit_code = conform(*options); });
}

void add_plugin_host(CLI::App& app, int& exit_code) {
  const auto file = std::make_shared<std::string>();
  CLI::App& command = *app.add_subcommand(
      "plugin-host", "Serve a plug-in over the store protocol, on standard input and output; what --plugin starts");
  command.add_option("plugin", *file, "Shared library with the C interface of kvwitness/store.h")
      ->type_name("FILE")
      ->required();
  command.callback([file, &exit_code] { exit_code = core::serve_plugin(*file, STDIN_FILENO, STDOUT_FILENO); });
}

}  // namespace kvwitness::cli
