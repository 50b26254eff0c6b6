#include "kvwitness/reports/bench_table.hpp"

#include "commands.hpp"
#include "output.hpp"

#include <memory>
#include <string>

namespace kvwitness::cli {
namespace {

struct BenchTableOptions {
  std::string results;
  std::string format = "text";
  std::string output = "-";
};

constexpr const char* kFooter =
    R"(A row is a benchmark that tells a ratio: its time to that of what it is held against, both measured in one run. Where
it has a goal, the ratio is to be at most that.

Examples:
  kvwitness_bench --benchmark_out=bench.json --benchmark_out_format=json
  kvwitness bench-table bench.json
  kvwitness bench-table bench.json --format markdown -o bench.md)";

int bench_table(const BenchTableOptions& options) {
  const reports::BenchTable table = reports::read_bench_table(options.results);
  Output output(options.output);
  if (options.format == "markdown") {
    reports::write_bench_markdown(table, output.stream());
  } else {
    reports::write_bench_text(table, output.stream());
  }
  output.close();
  return 0;
}

}  // namespace

void add_bench_table(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<BenchTableOptions>();
  CLI::App& command = *app.add_subcommand("bench-table", "Show results of kvwitness_bench as a table of ratios");
  command.add_option("results", options->results, "JSON of Google Benchmark; - is standard input")->required();
  command.add_option("--format", options->format, "Form of the table")
      ->check(CLI::IsMember({"text", "markdown"}))
      ->capture_default_str();
  command.add_option("-o,--output", options->output, "File; - is standard output")->capture_default_str();
  command.footer(kFooter);
  command.callback([options, &exit_code] { exit_code = bench_table(*options); });
}

}  // namespace kvwitness::cli
