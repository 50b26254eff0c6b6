#include "kvwitness/reports/search.hpp"
#include "kvwitness/reports/matrix.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/error.hpp"

#include "commands.hpp"
#include "foreign_options.hpp"
#include "reports_option.hpp"
#include "table_outputs.hpp"

#include <iostream>
#include <limits>
#include <memory>
#include <optional>

namespace kvwitness::cli {
namespace {

struct SearchCommand {
  ForeignOptions foreign;
  std::string store;
  std::uint64_t seed = 0x5eed;
  double seconds = 60;
  std::optional<std::uint64_t> scripts;
  bool with_refusals = false;
  std::string rule;
  std::string corpus = "kvwitness-search";
  bool mutants = false;
  std::string mutant;
  std::vector<std::string> reports;
};

constexpr const char* kFooter =
    R"(Scripts are made at random from what the store can do; every call in them is legal, so a correct store passes them
all. The first one that fails is made as small as it gets and written into the corpus, as a scenario that
"kvwitness run FILE --store NAME" runs; the next search replays the corpus before it generates anything.

Exit code 1 where a script fails, 0 where none does; of --mutants 7 where a fault was not found.

Examples:
  kvwitness search --store ring                          one minute
  kvwitness search --store ring --time 600 --seed 7      ten, with other scripts
  kvwitness search --store mutant:ring-physical-order    a store that is wrong on purpose
  kvwitness search --store flat --with-refusals --scripts 1000 --rule legal-refused
  kvwitness search --exec 'python3 mine.py'              a store of one's own, in any language
  kvwitness search --mutants --report json=search.json   which seeded faults it finds, and how soon)";

reports::SearchOptions search_options(const SearchCommand& command) {
  reports::SearchOptions options;
  options.store = command.store;
  options.seed = command.seed;
  options.seconds = command.seconds;
  options.scripts_max = command.scripts;
  options.with_refusals = command.with_refusals || command.mutants;
  options.rule = command.rule;
  options.corpus = command.corpus;
  options.progress = progress_line();
  return options;
}

template <class Result>
int report(const Result& result, Outputs outputs) {
  clear_progress_line();
  for (auto& [format, output] : outputs) {
    format == "json" ? reports::write_search_json(result, output->stream())
                     : reports::write_search_text(result, output->stream(), is_colored(*output));
    output->close();
  }
  return reports::exit_code(result);
}

int run_search(const SearchCommand& command) {
  const int subjects =
      (command.mutants ? 1 : 0) + (command.store.empty() ? 0 : 1) + (command.foreign.are_given() ? 1 : 0);
  if (subjects != 1)
    throw trace::Error("search takes one of --store NAME, --plugin FILE, --exec COMMAND and --mutants");
  if (!command.mutants && !command.mutant.empty()) throw trace::Error("--mutant goes with --mutants");
  reports::SearchOptions options = search_options(command);
  Outputs outputs = open_outputs(command.reports, "search", {});
  if (!reports::canary_is_blamed()) {
    std::cerr << "kvwitness: internal error: a store that is known to be wrong was not blamed; no verdict of this run "
                 "can be trusted\n";
    return static_cast<int>(reports::ExitCode::internal_error);
  }
  if (command.mutants) return report(reports::search_mutants({command.mutant, options}), std::move(outputs));
  scenarios::StoreRegistry registry = scenarios::with_mutants(scenarios::product_stores());
  if (command.foreign.are_given()) options.store = add_foreign_kind(command.foreign, "conform", registry);
  return report(reports::search(registry, options), std::move(outputs));
}

}  // namespace

void add_search(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<SearchCommand>();
  CLI::App& command = *app.add_subcommand("search", "Look for a failure with random legal scripts, and make it small");
  command.add_option("--store", options->store, "Store under test. See list --stores")->check(not_empty());
  add_foreign_options(command, options->foreign);
  command.add_option("--seed", options->seed, "Of the first script; the next ones count up from it")
      ->type_name("U64")
      ->capture_default_str();
  command.add_option("--time", options->seconds, "How long to search; making a failure small may take as long again")
      ->type_name("SECONDS")
      ->check(seconds_between(0.001, kDaySeconds))
      ->capture_default_str();
  command.add_option("--scripts", options->scripts, "At most so many scripts (default: as many as the time allows)")
      ->type_name("N")
      ->check(whole_number(1, std::numeric_limits<std::uint32_t>::max()));
  command.add_flag("--with-refusals", options->with_refusals,
                   "Mix calls that must be refused into every second script (always so with --mutants)");
  command.add_option("--rule", options->rule, "Only what this rule blames is a failure")->check(not_empty());
  command.add_option("--corpus", options->corpus, "Where failures are kept, and replayed from first")
      ->type_name("DIR")
      ->check(not_empty())
      ->capture_default_str();
  command.add_flag("--mutants", options->mutants,
                   "Search every seeded fault instead, each until it is found or the time is over; print the table");
  command.add_option("--mutant", options->mutant, "With --mutants: only those whose name this glob matches")
      ->check(not_empty());
  add_table_option(command, options->reports);
  command.footer(kFooter);
  command.callback([options, &exit_code] { exit_code = run_search(*options); });
}

}  // namespace kvwitness::cli
