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

/// A plug-in compiled of C.
inline std::string library_of(const Scratch& scratch, const std::string& name, const std::string& source) {
  std::string library = (scratch.path() / (name + ".so")).string();
  const auto built = run_shell("cc -shared -fPIC -I" KVWITNESS_SOURCE_DIR "/core/include " +
                               scratch.write(name + ".c", source).string() + " -o " + library);
  BOOST_TEST_REQUIRE(built.code == 0, built.output);
  return library;
}

/// What a plug-in begins with that is the right ring, `ring_v1`, but for something.
inline const std::string kOtherRing = "#define kvw_plugin_v1 ring_v1\n#include \"" KVWITNESS_SOURCE_DIR
                                      "/reports/examples/foreign/ring.c\"\n"
                                      "#undef kvw_plugin_v1\n";

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
