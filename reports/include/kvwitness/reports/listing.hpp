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

/// The cases of `list_suite`, one a line, and how many they are of the whole selection; false where there is none.
bool write_case_list(const SuiteResult& listed, std::ostream& out, bool color);
/// The same as one JSON object. Schema: reports/schema/cases-1.json.
bool write_case_list_json(const SuiteResult& listed, std::ostream& out);

/// Store kinds with title and capabilities.
void write_stores(const scenarios::StoreRegistry& registry, std::ostream& out, bool color);
void write_stores_json(const scenarios::StoreRegistry& registry, std::ostream& out);

}  // namespace kvwitness::reports
