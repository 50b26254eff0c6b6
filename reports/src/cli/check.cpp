#include "kvwitness/reports/text.hpp"

#include "commands.hpp"
#include "reports_option.hpp"
#include "trace_source.hpp"

namespace kvwitness::cli {
namespace {

struct CheckOptions {
  std::vector<std::string> traces;
  std::string from;
  std::vector<std::string> rules;
  std::vector<std::string> reports;
};

constexpr const char* kFooter =
    R"(The trace's header carries what the script claimed, so the verdict is the run's, rule by rule. "not met": the trace has
nothing that the rule is about. "inconclusive": it has, but cannot tell (cut off, events lost, digests left out, nothing
measured); the reason is given, and no pass is claimed.

Examples:
  kvwitness check traces/ring+wrap-identity@tokens=17,window=4@ring.jsonl
  kvwitness check run.blocks --rule position-order --rule window-exact
  kvwitness check *.jsonl --report junit=out.xml
  my-engine | kvwitness check -
  kvwitness check --from vllm kv-events.jsonl)";

int check(const CheckOptions& options) {
  Reports reports(options.reports, options.traces);
  reports::SuiteResult result;
  TraceSource source(options.from);
  for (const std::string& trace : options.traces) {
    source.read(trace, [&](const std::filesystem::path& file) {
      result.cases.push_back(reports::check_trace(file, {.only = options.rules}));
      reports.add_case(result.cases.back());
    });
    result.cases.back().trace = trace;
    result.seconds += result.cases.back().seconds;
  }
  reports.finish(result, [](const reports::SuiteResult& done, std::ostream& out, bool color) {
    for (const reports::CaseResult& one : done.cases) reports::write_rules(one, out, {.color = color});
  });
  return reports::exit_code(result);
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App& command = *app.add_subcommand("check", "Judge saved traces, rule by rule");
  command.add_option("traces", options->traces, "Traces, JSONL or blocks, or what --from says; - is standard input")
      ->required();
  add_from_option(command, options->from);
  repeatable(command.add_option("--rule", options->rules, "Judge by this rule only; may be repeated"));
  add_report_option(command, options->reports);
  command.footer(kFooter);
  command.callback([options, &exit_code] { exit_code = check(*options); });
}

}  // namespace kvwitness::cli
