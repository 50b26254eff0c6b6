/// Options that say which scenarios a command is about.
#pragma once

#include "kvwitness/reports/suite.hpp"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace kvwitness::cli {

struct SelectionOptions {
  std::vector<std::string> paths;
  std::string filter;
  std::vector<std::string> tags;
  bool with_slow = false;
  std::string seed;
  std::vector<std::string> params;
};

void add_selection_options(CLI::App& command, SelectionOptions& options);

/// The options as the suite takes them. Throws trace::Error for a seed or parameter that cannot be read.
[[nodiscard]] reports::SuiteOptions suite_options(const SelectionOptions& options);

/// The paths given, or the library that ships with the program. Throws trace::Error where there is none.
[[nodiscard]] std::vector<std::filesystem::path> selected_paths(const SelectionOptions& options);

/// Why none of the cases is selected, one line: nothing matches, or what does is tagged slow. Throws as loading does.
[[nodiscard]] std::string why_none_is_selected(const SelectionOptions& options);

}  // namespace kvwitness::cli
