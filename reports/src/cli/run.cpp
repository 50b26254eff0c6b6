#include "kvwitness/reports/matrix.hpp"
#include "kvwitness/reports/text.hpp"
#include "kvwitness/scenarios/mutants.hpp"

#include "commands.hpp"
#include "reports_option.hpp"
#include "selection_options.hpp"

#include <iostream>
#include <optional>

namespace kvwitness::cli {
namespace {

struct RunOptions {
  SelectionOptions selection;
  std::vector<std::string> stores;
  std::string trace_dir;
  std::string trace_format = "jsonl";
  std::string clock = "none";
  std::vector<std::string> reports;
  bool check_determinism = false;
  bool update = false;
};

constexpr const char* kFooter = R"(Examples:
  kvwitness run                                           the whole library on every store
  kvwitness run --store ring --filter 'ring/*'            one store, some scenarios
  kvwitness run --filter 'ring/wrap-identity[tokens=17 window=4]'
                                                          one case
  kvwitness run my/scenarios --report junit=out.xml       your own scripts, for a CI server
  kvwitness run --filter ring/wrap-identity --report perfetto=out.json
                                                          a timeline for ui.perfetto.dev
  kvwitness run --filter ring/wrap-identity --trace-dir traces --check-determinism
  kvwitness run --store mutant:ring-physical-order        a store that is wrong on purpose)";

std::vector<std::string> product_kinds() {
  std::vector<std::string> names;
  const scenarios::StoreRegistry registry = scenarios::product_stores();
  for (const scenarios::StoreKind& kind : registry.all()) names.push_back(kind.name);
  return names;
}

/// Traces that only a timeline needs are gone as soon as it has them.
void hand_to_reports(Reports& reports, const reports::CaseResult& done, bool temporary) {
  reports.add_case(done);
  std::error_code ignored;
  if (temporary && !done.trace.empty()) std::filesystem::remove(done.trace, ignored);
}

int run(const RunOptions& options) {
  reports::SuiteOptions suite = suite_options(options.selection);
  suite.stores = options.stores.empty() ? product_kinds() : options.stores;
  suite.trace_dir = options.trace_dir;
  suite.trace_format = options.trace_format;
  suite.clock = options.clock == "mono" ? trace::ClockKind::mono : trace::ClockKind::none;
  suite.check_determinism = options.check_determinism;
  suite.update_goldens = options.update;
  suite.progress = progress_line();
  Reports reports(options.reports, options.selection.paths);
  std::optional<TemporaryDirectory> temporary;
  if (reports.needs_traces() && options.trace_dir.empty()) {
    suite.trace_dir = temporary.emplace().path();
    suite.trace_format = "blocks";
  }
  suite.on_case = [&](const reports::CaseResult& done) { hand_to_reports(reports, done, temporary.has_value()); };
  if (!reports::canary_is_blamed()) {
    std::cerr
        << "kvwitness: internal error: a store that is known to be wrong was not blamed; no verdict of this run can be "
           "trusted\n";
    return static_cast<int>(reports::ExitCode::internal_error);
  }
  reports::SuiteResult result = reports::run_suite(selected_paths(options.selection),
                                                   scenarios::with_mutants(scenarios::product_stores()), suite);
  clear_progress_line();
  if (temporary) {
    for (reports::CaseResult& one : result.cases) one.trace.clear();
  }
  reports.finish(result, [](const reports::SuiteResult& done, std::ostream& out, bool color) {
    reports::write_text(done, out, {.color = color});
  });
  for (const std::string& line : result.stale_goldens) std::cerr << "kvwitness: stale golden: " << line << '\n';
  const int code = reports::exit_code(result);
  if (code == static_cast<int>(reports::ExitCode::nothing_selected)) {
    std::cerr << "kvwitness: nothing was run: "
              << (result.cases.empty() ? why_none_is_selected(options.selection)
                                       : "no store has what the cases require, " + result.cases.front().skipped_because)
              << "\n";
  }
  return code;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App& command = *app.add_subcommand("run", "Run scenarios against stores and judge them");
  add_selection_options(command, options->selection);
  command
      .add_option("--store", options->stores,
                  "Store under test; may be repeated (default: every correct one). See list --stores")
      ->take_all()
      ->expected(1);
  command.add_option("--trace-dir", options->trace_dir, "Save every case's trace here")
      ->type_name("DIR")
      ->check(not_empty());
  command.add_option("--trace-format", options->trace_format, "Form of saved traces")
      ->check(CLI::IsMember({"jsonl", "blocks"}))
      ->capture_default_str();
  command
      .add_option("--clock", options->clock,
                  "Time in traces: mono stamps the ends of spans; verdicts and digests do not depend on it")
      ->check(CLI::IsMember({"none", "mono"}))
      ->capture_default_str();
  command.add_flag("--check-determinism", options->check_determinism, "Run each case twice and compare the digests");
  command.add_flag("--update", options->update,
                   "Write the goldens beside scripts (name.golden.jsonl) anew, for scripts that have one or are named");
  add_report_option(command, options->reports);
  command.footer(kFooter);
  command.callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace kvwitness::cli
