/// What there is to run.
#pragma once

#include "kvwitness/reports/suite.hpp"
#include "kvwitness/scenarios/registry.hpp"

#include <filesystem>
#include <iosfwd>
#include <vector>

namespace kvwitness::reports {

/// Selected scenarios with title, tags, number of cases and what they require; false where none is selected. Throws
/// trace::Error as `run_suite` does.
bool write_scenarios(const std::vector<std::filesystem::path>& paths, const SuiteOptions& options, std::ostream& out,
                     bool color);
/// The same as a JSON array, with the lesson of each script and its cases by name.
bool write_scenarios_json(const std::vector<std::filesystem::path>& paths, const SuiteOptions& options,
                          std::ostream& out);

/// Store kinds with title and capabilities.
void write_stores(const scenarios::StoreRegistry& registry, std::ostream& out, bool color);
void write_stores_json(const scenarios::StoreRegistry& registry, std::ostream& out);

}  // namespace kvwitness::reports
