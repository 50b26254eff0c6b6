#include "kvwitness/scenarios/mutants.hpp"

#include "case_options.hpp"
#include "commands.hpp"
#include "foreign_options.hpp"
#include "reports_option.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace kvwitness::cli {
namespace {

struct RunOptions {
  CaseOptions cases;
  ForeignOptions foreign;
  std::vector<std::string> stores;
};

constexpr const char* kFooter = R"(Examples:
  kvwitness run                                           the whole library on every store
  kvwitness run --store ring --filter 'ring/*'            one store, some scenarios
  kvwitness run --filter 'ring/wrap-identity[tokens=17 window=4]'
                                                          one case
  kvwitness run my/scenarios --report junit=out.xml       your own scripts, for a CI server
  kvwitness run --filter ring/wrap-identity --report perfetto=out.json
                                                          a timeline for ui.perfetto.dev
  kvwitness run --filter ring/wrap-identity --trace-dir traces --repeat 3
  kvwitness run --jobs 8 --fail-fast                      in eight processes, until the first failure
  kvwitness run --shard 2/4 --report json=shard-2.json    a quarter of the cases; see kvwitness merge
  kvwitness run --shard env --report json=shard.json      the part that GitLab CI, CircleCI, Buildkite or Slurm ask for
  kvwitness run --shard env/8 --report json=shard.json    the part of an indexed Job of Kubernetes
  kvwitness run --replay out.json                         what was not green in a report, again
  kvwitness run --known-failures known.json               failures that are known do not count
  kvwitness run --budgets kv-budgets.json --update        costs per token: hold to a file, and make it tighter
  kvwitness run --list=json --filter 'ring/*'             what would be run
  kvwitness run --store mutant:ring-physical-order        a store that is wrong on purpose
  kvwitness run --exec 'python3 mine.py' --store ring     a store of one's own beside another; conform says what it can do

Test runners that shard test programs (Bazel: TEST_TOTAL_SHARDS and TEST_SHARD_INDEX; GoogleTest: GTEST_...) are obeyed
without --shard. Other variables count with --shard env only.)";

std::vector<std::string> product_kinds() {
  std::vector<std::string> names;
  const scenarios::StoreRegistry registry = scenarios::product_stores();
  for (const scenarios::StoreKind& kind : registry.all()) names.push_back(kind.name);
  return names;
}

int run(const RunOptions& options) {
  CaseRun run = case_run(options.cases);
  scenarios::StoreRegistry registry = scenarios::with_mutants(scenarios::product_stores());
  std::vector<std::string> stores = options.stores;
  if (options.foreign.are_given()) {
    const std::string name = add_foreign_kind(options.foreign, "run", registry);
    if (std::ranges::find(stores, name) == stores.end()) stores.push_back(name);
    run.suite.skip_unbuildable = true;
  }
  if (run.suite.stores.empty()) run.suite.stores = stores.empty() ? product_kinds() : stores;
  return run_cases(options.cases, registry, std::move(run), write_result);
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App& command = *app.add_subcommand("run", "Run scenarios against stores and judge them");
  add_case_options(command, options->cases);
  repeatable(command.add_option("--store", options->stores,
                                "Store under test; may be repeated (default: every correct one). See list --stores"))
      ->excludes(command.get_option("--replay"));
  add_foreign_options(command, options->foreign);
  command.footer(kFooter);
  command.callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace kvwitness::cli
