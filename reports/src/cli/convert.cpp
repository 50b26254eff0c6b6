#include "kvwitness/reports/convert.hpp"

#include "kvwitness/reports/perfetto.hpp"
#include "kvwitness/reports/suite.hpp"
#include "kvwitness/trace/error.hpp"

#include "commands.hpp"
#include "output.hpp"
#include "trace_source.hpp"

#include <filesystem>
#include <iostream>
#include <system_error>

namespace kvwitness::cli {
namespace {

struct ConvertOptions {
  std::string trace;
  std::string from;
  std::string to;
  std::string output;
};

constexpr const char* kFooter =
    R"(jsonl and blocks lose nothing either way. perfetto is a timeline for ui.perfetto.dev: slices for phases, steps, calls
and attention, instants for adapters, refusals and violations, counters for live bytes and resident positions.
A trace that was cut off is converted as far as it goes, and the exit code is 9.

Examples:
  kvwitness convert run.jsonl --to blocks -o run.blocks
  kvwitness convert run.blocks --to jsonl -o - | grep Refused
  kvwitness convert run.jsonl --to perfetto -o run.perfetto.json
  kvwitness convert --from vllm kv-events.msgpack --to jsonl -o kv-events.jsonl)";

int incomplete(const std::string& why) {
  std::cerr << "kvwitness: the trace is incomplete: " << why << "\n";
  return static_cast<int>(reports::ExitCode::inconclusive);
}

int convert_to_timeline(const ConvertOptions& options, const std::filesystem::path& trace) {
  const reports::CaseResult judged = reports::check_trace(trace);
  std::error_code differs;
  if (std::filesystem::equivalent(options.trace, options.output, differs)) {
    throw trace::Error(options.output + " is the trace that is converted");
  }
  Output output(options.output);
  reports::PerfettoWriter writer(output.stream());
  writer.add_trace(trace, judged.verdict);
  writer.finish();
  output.close();
  return judged.incomplete.empty() ? 0 : incomplete(judged.incomplete);
}

int convert(const ConvertOptions& options) {
  TraceSource source(options.from);
  const std::filesystem::path trace = source.trace_of(options.trace);
  if (options.to == "perfetto") return convert_to_timeline(options, trace);
  const std::string to = options.output == "-" ? "/dev/stdout" : options.output;
  const trace::TraceEnd end = reports::convert_trace(trace, *trace::trace_format(options.to), to);
  return end.complete ? 0 : incomplete(end.why);
}

}  // namespace

void add_convert(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ConvertOptions>();
  CLI::App& command = *app.add_subcommand("convert", "Convert a trace into another form");
  command.add_option("trace", options->trace, "Trace, JSONL or blocks, or what --from says")->required();
  add_from_option(command, options->from);
  command.add_option("--to", options->to, "Form")->required()->check(CLI::IsMember({"jsonl", "blocks", "perfetto"}));
  command.add_option("-o,--output", options->output, "File; - is standard output")->required();
  command.footer(kFooter);
  command.callback([options, &exit_code] { exit_code = convert(*options); });
}

}  // namespace kvwitness::cli
