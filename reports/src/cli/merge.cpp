#include "kvwitness/reports/merge.hpp"

#include "kvwitness/reports/json.hpp"
#include "kvwitness/trace/error.hpp"

#include "case_options.hpp"
#include "commands.hpp"
#include "reports_option.hpp"

#include <memory>
#include <string>
#include <vector>

namespace kvwitness::cli {
namespace {

struct MergeOptions {
  std::vector<std::string> files;
  std::vector<std::string> reports;
};

constexpr const char* kFooter =
    R"(Every shard of one run must be there once: the same scripts, stores, options and version of kvwitness. The result is that
of one run, case by case in its order, and so is the exit code. There are no timelines: those are made from traces.

Examples:
  kvwitness merge shard-1.json shard-2.json shard-3.json shard-4.json
  kvwitness merge shard-*.json --report junit=out.xml --report json=all.json)";

int merge(const MergeOptions& options) {
  for (const std::string& wanted : options.reports) {
    if (name_and_value(wanted, "--report").first == "perfetto")
      throw trace::Error("merge has no traces to make a timeline from; kvwitness convert makes one of a saved trace");
  }
  std::vector<reports::ShardReport> shards;
  for (const std::string& file : options.files) shards.push_back({file, reports::load_json(file)});
  const reports::SuiteResult whole = reports::merge_shards(std::move(shards));
  Reports(options.reports, options.files).finish(whole, write_result);
  tell_troubles(whole);
  return reports::exit_code(whole);
}

}  // namespace

void add_merge(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<MergeOptions>();
  CLI::App& command = *app.add_subcommand("merge", "Join the JSON reports of shards");
  command.add_option("reports", options->files, "JSON reports of run --shard; - is standard input")->required();
  add_report_option(command, options->reports);
  command.footer(kFooter);
  command.callback([options, &exit_code] { exit_code = merge(*options); });
}

}  // namespace kvwitness::cli
