#include "kvwitness/reports/convert.hpp"

#include "kvwitness/reports/perfetto.hpp"
#include "kvwitness/reports/suite.hpp"
#include "kvwitness/trace/error.hpp"

#include "commands.hpp"
#include "input_file.hpp"
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
  gzip -dc run.jsonl.gz | kvwitness convert - --to blocks -o run.blocks
  kvwitness convert run.blocks --to jsonl -o - | grep Refused
  kvwitness convert run.jsonl --to perfetto -o run.perfetto.json
  kvwitness convert --from vllm kv-events.msgpack --to jsonl -o kv-events.jsonl)";

int incomplete(const std::string& why) {
  std::cerr << "kvwitness: the trace is incomplete: " << why << "\n";
  return static_cast<int>(reports::ExitCode::inconclusive);
}

/// Standard output may be the trace too, appended to by the shell.
void refuse_same_file(const ConvertOptions& options) {
  if (options.trace == reports::kStandardInput) return;  // which is read to its end first
  const bool is_standard = options.output == "-";
  std::error_code differs;
  if (std::filesystem::equivalent(options.trace, is_standard ? "/dev/stdout" : options.output, differs))
    throw trace::Error((is_standard ? "standard output" : options.output) + " is the trace that is converted");
}

int convert_to_timeline(const ConvertOptions& options, const std::filesystem::path& trace) {
  const reports::CaseResult judged = reports::check_trace(trace);
  Output output(options.output);
  reports::PerfettoWriter writer(output.stream());
  writer.add_trace(trace, judged.verdict);
  writer.finish();
  output.close();
  return judged.incomplete.empty() ? 0 : incomplete(judged.incomplete);
}

trace::TraceEnd convert_to_output(const std::filesystem::path& trace, trace::TraceFormat format) {
  Output output("-");
  trace::TraceEnd end = reports::convert_trace(trace, format, output.stream());
  output.close();
  return end;
}

int convert_trace(const ConvertOptions& options, const std::filesystem::path& trace) {
  if (options.to == "perfetto") return convert_to_timeline(options, trace);
  const trace::TraceFormat format = *trace::trace_format(options.to);
  const trace::TraceEnd end =
      options.output == "-" ? convert_to_output(trace, format) : reports::convert_trace(trace, format, options.output);
  return end.complete ? 0 : incomplete(end.why);
}

int convert(const ConvertOptions& options) {
  refuse_same_file(options);
  return TraceSource(options.from).read(options.trace, [&](const std::filesystem::path& trace) {
    return convert_trace(options, trace);
  });
}

}  // namespace

void add_convert(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ConvertOptions>();
  CLI::App& command = *app.add_subcommand("convert", "Convert a trace into another form");
  command.add_option("trace", options->trace, "Trace, JSONL or blocks, or what --from says; - is standard input")
      ->required();
  add_from_option(command, options->from);
  command.add_option("--to", options->to, "Form")->required()->check(CLI::IsMember({"jsonl", "blocks", "perfetto"}));
  command.add_option("-o,--output", options->output, "File; - is standard output")->required();
  command.footer(kFooter);
  command.callback([options, &exit_code] { exit_code = convert(*options); });
}

}  // namespace kvwitness::cli
