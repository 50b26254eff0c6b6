#include "table_outputs.hpp"

#include "kvwitness/reports/text.hpp"
#include "kvwitness/trace/error.hpp"

#include "reports_option.hpp"

#include <unistd.h>

namespace kvwitness::cli {

Outputs open_outputs(const std::vector<std::string>& wanted, const std::string& command,
                     const std::vector<std::string>& inputs) {
  Outputs outputs;
  ReportFiles files(inputs);
  for (const std::string& one : wanted) {
    const auto [format, file] = name_and_value(one, "--report");
    if (format != "text" && format != "json")
      throw trace::Error("unknown report format '" + format + "' of " + command + "; there are text and json");
    files.claim(file);
    outputs.emplace_back(format, std::make_unique<Output>(file));
  }
  if (!files.standard_is_taken()) outputs.emplace_back("text", std::make_unique<Output>("-"));
  return outputs;
}

void add_table_option(CLI::App& command, std::vector<std::string>& wanted) {
  repeatable(
      command.add_option("--report", wanted, "text=FILE or json=FILE; FILE - is standard output. May be repeated"))
      ->type_name("FORMAT=FILE");
}

bool is_colored(const Output& output) {
  return output.is_standard() && reports::want_color(STDOUT_FILENO);
}

}  // namespace kvwitness::cli
