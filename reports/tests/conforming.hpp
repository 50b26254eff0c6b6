/// Stores of other processes, asked to conform, and what came of it.
#pragma once

#include "files.hpp"
#include "kvwitness/reports/conformance.hpp"
#include "kvwitness/scenarios/foreign.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace kvwitness::reports::testing {

inline const std::filesystem::path kLibrary = KVWITNESS_SOURCE_DIR "/scenarios/library";
inline const std::string kForeign = KVWITNESS_SOURCE_DIR "/reports/examples/foreign/";

inline core::ForeignCommand python(std::vector<std::string> arguments) {
  core::ForeignCommand command;
  command.argv = {"python3"};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  return command;
}

inline core::ForeignCommand plugin(const std::string& file) {
  return {{KVWITNESS_BINARY_DIR "/bin/kvwitness", "plugin-host", file}, std::chrono::seconds(10), true};
}

inline ConformanceResult conform_to(const core::ForeignCommand& command,
                                    const std::vector<std::filesystem::path>& paths, const std::string& filter = {},
                                    double shrink_seconds = 5) {
  const core::ForeignHello hello = core::ask_foreign(command);
  scenarios::StoreRegistry registry = scenarios::product_stores();
  registry.add(scenarios::foreign_kind(command, hello, "conform --exec '...'"));
  ConformanceOptions options;
  options.store = hello.name;
  options.suite.filter = filter;
  options.shrink_seconds = shrink_seconds;
  return run_conformance(paths, registry, options);
}

inline ConformanceResult conform(const core::ForeignCommand& command, const std::filesystem::path& path,
                                 const std::string& filter = {}) {
  return conform_to(command, {path}, filter);
}

/// Rules that blame a faulty store in scenarios that a correct one passes.
inline std::vector<std::string> blaming(const ConformanceResult& result) {
  std::vector<std::string> rules;
  for (const RuleProfile& rule : result.rules)
    if (rule.status == verify::Status::fail) rules.push_back(rule.rule);
  return rules;
}

inline bool blames(const ConformanceResult& result, const std::string& rule) {
  return std::ranges::count(blaming(result), rule) != 0;
}

inline std::string text_of(const ConformanceResult& result) {
  std::ostringstream out;
  write_conformance_text(result, out, false);
  return out.str();
}

inline bool skips_without(const std::string& program) {
  if (has_program(program)) return false;
  BOOST_TEST_MESSAGE("skipped: " << program << " is not installed");
  return true;
}

}  // namespace kvwitness::reports::testing
