#include "case_options.hpp"

#include "kvwitness/reports/listing.hpp"
#include "kvwitness/reports/matrix.hpp"
#include "kvwitness/reports/replay.hpp"
#include "kvwitness/reports/selection.hpp"
#include "kvwitness/reports/text.hpp"
#include "kvwitness/trace/error.hpp"

#include "input_file.hpp"
#include "output.hpp"
#include "reports_option.hpp"
#include "temporary_directory.hpp"

#include <algorithm>
#include <iostream>
#include <optional>

#include <unistd.h>

namespace kvwitness::cli {
namespace {

reports::Shard shard_of(const std::string& text) {
  const reports::Environment environment = reports::process_environment();
  if (!text.empty()) return reports::parse_shard(text, environment);
  const std::optional<reports::Shard> asked = reports::shard_of_test_runner(environment);
  if (asked) reports::acknowledge_test_runner(environment);
  return asked.value_or(reports::Shard{});
}

/// Traces that only a timeline needs are gone as soon as it has them.
void hand_to_reports(Reports& reports, const reports::CaseResult& done, bool temporary) {
  reports.add_case(done);
  std::error_code ignored;
  if (temporary && !done.trace.empty()) std::filesystem::remove(done.trace, ignored);
}

std::string why_nothing_is_selected(const CaseOptions& options) {
  return options.replay.empty() ? why_none_is_selected(options.selection)
                                : options.replay + " has nothing but green cases";
}

std::string why_nothing_was_run(const CaseOptions& options, const reports::SuiteResult& result) {
  const auto is_skipped = [](const reports::CaseResult& one) { return !one.skipped_because.empty(); };
  const auto skipped = std::ranges::find_if(result.cases, is_skipped);
  if (skipped == result.cases.end()) return why_nothing_is_selected(options);
  return "no store has what the cases require, " + skipped->skipped_because;
}

/// The cases of a report that were not green, as they were asked for unless the options say something else.
CaseRun replayed(CaseRun run, const CaseOptions& options) {
  reports::Replay replay = reports::load_replay(options.replay);
  const SelectionOptions& selection = options.selection;
  if (!selection.paths.empty() || replay.request.paths.empty()) {
    run.paths = selected_paths(selection);
  } else {
    run.paths = replay.request.paths;
  }
  if (!run.suite.seed) run.suite.seed = replay.request.seed;
  if (run.suite.params.empty()) run.suite.params = replay.request.params;
  if (run.suite.repeat == 1) run.suite.repeat = replay.request.repeat;
  run.suite.with_slow = true;
  run.suite.stores = std::move(replay.stores);
  run.suite.only = std::move(replay.cases);
  return run;
}

/// Files that no report may overwrite.
std::vector<std::string> inputs_of(const CaseOptions& options) {
  std::vector<std::string> inputs = options.selection.paths;
  for (const std::string& file : {options.known_failures, options.budgets, options.replay})
    if (!file.empty()) inputs.push_back(file);
  return inputs;
}

int list_cases(const CaseOptions& options, const scenarios::StoreRegistry& registry, const CaseRun& run) {
  const reports::SuiteResult listed = reports::list_suite(run.paths, registry, run.suite);
  Output output("-");
  const bool has_some = options.list == "json"
                            ? reports::write_case_list_json(listed, output.stream())
                            : reports::write_case_list(listed, output.stream(), reports::want_color(STDOUT_FILENO));
  output.close();
  if (has_some || listed.selection->cases != 0) return static_cast<int>(reports::ExitCode::pass);
  std::cerr << "kvwitness: nothing to list: " << why_nothing_is_selected(options) << "\n";
  return static_cast<int>(reports::ExitCode::nothing_selected);
}

}  // namespace

void add_case_options(CLI::App& command, CaseOptions& options) {
  add_selection_options(command, options.selection);
  command.add_flag("--list{text}", options.list, "Only list the cases, one a line; --list=json for programs")
      ->check(CLI::IsMember({"text", "json"}));
  command
      .add_option("--shard", options.shard,
                  "Only part I of N of the cases; env takes the part from the CI system or scheduler, env/N where "
                  "that does not tell N. Without it TEST_SHARD_INDEX and GTEST_SHARD_INDEX count, see below")
      ->type_name("I/N")
      ->check(not_empty());
  command.add_option("--jobs", options.jobs, "Processes that run cases; no verdict and no order depends on it")
      ->type_name("N")
      ->check(whole_number(1, 4096))
      ->capture_default_str();
  CLI::Option* repeat =
      command.add_option("--repeat", options.repeat, "Run each case N times; one that tells other events ends in 6")
          ->type_name("N")
          ->check(whole_number(1, 1000000))
          ->capture_default_str();
  command.add_flag("--check-determinism", options.check_determinism, "The same as --repeat 2")->excludes(repeat);
  command.add_flag("--fail-fast", options.fail_fast, "Run nothing after the first case that is not green");
  CLI::Option* budgets = command
                             .add_option("--budgets", options.budgets,
                                         "What decode steps may cost, by scenario and store; a stale line ends in 8")
                             ->type_name("FILE")
                             ->check(not_empty());
  CLI::Option* update =
      command
          .add_flag(
              "--update{all}", options.update,
              "Write the goldens beside scripts (name.golden.jsonl) anew, for scripts that have one or are named, "
              "and lower budgets to what was measured; --update=goldens or =budgets does one of both")
          ->check(CLI::IsMember({"all", "goldens", "budgets"}));
  command.add_flag("--allow-growth", options.allow_growth, "With --update: raise budgets too")
      ->needs(budgets)
      ->needs(update);
  command
      .add_option("--known-failures", options.known_failures,
                  "List of verdicts that are expected not to pass; one that passes, or a stale line, ends in 8")
      ->type_name("FILE")
      ->check(not_empty());
  CLI::Option* replay =
      command
          .add_option("--replay", options.replay,
                      "Run the cases of a JSON report again that were not green, or a script that a search has kept on "
                      "the store that it was found on")
          ->type_name("FILE")
          ->check(not_empty());
  for (const char* other : {"--filter", "--tag", "--with-slow"}) replay->excludes(command.get_option(other));
  command.add_option("--trace-dir", options.trace_dir, "Save every case's trace here")
      ->type_name("DIR")
      ->check(not_empty());
  command.add_option("--trace-format", options.trace_format, "Form of saved traces")
      ->check(CLI::IsMember({"jsonl", "blocks"}))
      ->capture_default_str();
  command
      .add_option("--clock", options.clock,
                  "Time in traces: mono stamps the ends of spans; verdicts and digests do not depend on it")
      ->check(CLI::IsMember({"none", "mono"}))
      ->capture_default_str();
  add_report_option(command, options.reports);
}

CaseRun case_run(const CaseOptions& options) {
  CaseRun run;
  reports::SuiteOptions& suite = run.suite;
  suite = suite_options(options.selection);
  suite.trace_dir = options.trace_dir;
  suite.trace_format = options.trace_format;
  suite.clock = options.clock == "mono" ? trace::ClockKind::mono : trace::ClockKind::none;
  suite.repeat = options.check_determinism ? 2 : options.repeat;
  suite.shard = shard_of(options.shard);
  suite.jobs = options.jobs;
  suite.fail_fast = options.fail_fast;
  suite.known_failures = options.known_failures;
  suite.budgets = options.budgets;
  suite.update_goldens = options.update == "all" || options.update == "goldens";
  suite.update_budgets = !options.budgets.empty() && (options.update == "all" || options.update == "budgets");
  suite.allow_budget_growth = options.allow_growth;
  suite.progress = progress_line();
  if (options.update == "budgets" && options.budgets.empty())
    throw trace::Error("--update=budgets needs --budgets FILE");
  if (options.allow_growth && !suite.update_budgets)
    throw trace::Error("--allow-growth is about --budgets FILE --update");
  if (suite.update_budgets && options.budgets == reports::kStandardInput)
    throw trace::Error("--update needs a file of budgets to write to, not standard input");
  if (!options.replay.empty()) return replayed(std::move(run), options);
  run.paths = selected_paths(options.selection);
  return run;
}

int run_cases(const CaseOptions& options, const scenarios::StoreRegistry& registry, CaseRun run,
              const WriteResult& fallback, const Conclude& conclude) {
  if (!options.list.empty()) return list_cases(options, registry, run);
  reports::SuiteOptions& suite = run.suite;
  Reports reports(options.reports, inputs_of(options), run.outputs);
  std::optional<reports::TemporaryDirectory> temporary;
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
  reports::SuiteResult result = reports::run_suite(run.paths, registry, suite);
  clear_progress_line();
  if (temporary) {
    for (reports::CaseResult& one : result.cases) one.trace.clear();
  }
  reports.finish(result, fallback);
  tell_troubles(result);
  const int code = conclude ? conclude(result) : reports::exit_code(result);
  if (code == static_cast<int>(reports::ExitCode::nothing_selected))
    std::cerr << "kvwitness: nothing was run: " << why_nothing_was_run(options, result) << "\n";
  else if (result.slow_left_out != 0 && reports.is_for_people())
    std::cerr << "kvwitness: left out: " << result.slow_left_out << (result.slow_left_out == 1 ? " case" : " cases")
              << " of scripts tagged slow; --with-slow runs them too\n";
  return code;
}

void tell_troubles(const reports::SuiteResult& result) {
  for (const reports::CaseResult& one : result.cases) {
    if (one.died_because.empty()) continue;
    std::cerr << "kvwitness: internal error: " << reports::case_name(one.scenario, one.variant) << " on " << one.store
              << ": " << one.died_because << '\n';
  }
  for (const reports::CapabilityUse& use : reports::unexercised(result))
    std::cerr << "kvwitness: unexercised: " << use.store << " declares " << use.name
              << ", which no scenario exercised\n";
  for (const std::string& line : result.stale_baselines) std::cerr << "kvwitness: stale: " << line << '\n';
}

void write_result(const reports::SuiteResult& result, std::ostream& out, bool color) {
  reports::write_text(result, out, {.color = color});
}

}  // namespace kvwitness::cli
