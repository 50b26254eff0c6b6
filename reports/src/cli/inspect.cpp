#include "kvwitness/reports/inspect.hpp"

#include "kvwitness/reports/suite.hpp"
#include "kvwitness/reports/text.hpp"

#include "commands.hpp"
#include "output.hpp"
#include "reports_option.hpp"
#include "trace_source.hpp"

#include <iostream>

#include <sys/ioctl.h>
#include <unistd.h>

namespace kvwitness::cli {
namespace {

struct InspectArguments {
  std::string trace;
  std::vector<std::string> types;
  reports::EventFilter filter;
  bool events = false;
  bool slots = false;
};

constexpr const char* kFooter = R"(A trace that was cut off is shown as far as it goes, and the exit code is 9.

Examples:
  kvwitness inspect run.jsonl                                   how many events of which type, and their bytes
  kvwitness inspect run.jsonl --events --type AdapterInserted   every copy, one a line
  kvwitness inspect run.jsonl --events --layer 1 --position 17  what happened to a position
  kvwitness inspect run.jsonl --slots --step 0                  slots and windows after every token of a step
  gzip -dc run.jsonl.gz | kvwitness inspect -)";

std::size_t terminal_columns() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40;
  return known ? size.ws_col : 100;
}

int inspect(const InspectArguments& arguments) {
  reports::InspectOptions options;
  options.filter = arguments.filter;
  for (const std::string& type : arguments.types) options.filter.types.push_back(reports::event_type_named(type));
  options.color = reports::want_color(STDOUT_FILENO);
  options.columns = terminal_columns();
  Output output("-");
  const auto write = arguments.slots    ? &reports::write_slots
                     : arguments.events ? &reports::write_events
                                        : &reports::write_summary;
  const reports::Inspected seen = TraceSource().read(
      arguments.trace, [&](const std::filesystem::path& trace) { return write(trace, output.stream(), options); });
  output.close();
  if (!seen.complete) return static_cast<int>(reports::ExitCode::inconclusive);
  if (seen.found) return static_cast<int>(reports::ExitCode::pass);
  std::cerr << "kvwitness: the trace has no such event\n";
  return static_cast<int>(reports::ExitCode::nothing_selected);
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<InspectArguments>();
  CLI::App& command = *app.add_subcommand("inspect", "Look into a trace: summary, events, slots");
  command.add_option("trace", arguments->trace, "Trace, JSONL or blocks; - is standard input")->required();
  CLI::Option* types = repeatable(command.add_option(
      "--type", arguments->types, "Only events of this type (Append, Refused, ...); may be repeated"));
  command.add_option("--step", arguments->filter.step, "Only what belongs to this step of the script, from 0");
  command.add_option("--layer", arguments->filter.layer, "Only this layer");
  command.add_option("--seq", arguments->filter.sequence, "Only this sequence");
  CLI::Option* position = command.add_option("--position", arguments->filter.position, "Only what names this position");
  command.add_option("--store", arguments->filter.store, "Only this store, as the script calls it (sut)");
  CLI::Option* events = command.add_flag("--events", arguments->events, "Print the events, one a line");
  command.add_flag("--slots", arguments->slots, "Draw slots and windows after each step")
      ->excludes(events)
      ->excludes(types)
      ->excludes(position);
  command.footer(kFooter);
  command.callback([arguments, &exit_code] { exit_code = inspect(*arguments); });
}

}  // namespace kvwitness::cli
