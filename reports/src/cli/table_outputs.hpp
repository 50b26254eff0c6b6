/// `--report text=FILE` and `--report json=FILE` of commands that print one table of their own.
#pragma once

#include "output.hpp"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kvwitness::cli {

/// Format and where it goes, open.
using Outputs = std::vector<std::pair<std::string, std::unique_ptr<Output>>>;

/// What was asked for, and the text on standard output unless a report goes there. `command` is named in errors,
/// `inputs` is what it reads. Throws trace::Error for an unknown format, a file that cannot be opened, and what
/// ReportFiles refuses.
[[nodiscard]] Outputs open_outputs(const std::vector<std::string>& wanted, const std::string& command,
                                   const std::vector<std::string>& inputs);

void add_table_option(CLI::App& command, std::vector<std::string>& wanted);

/// Whether the report is coloured.
[[nodiscard]] bool is_colored(const Output& output);

}  // namespace kvwitness::cli
