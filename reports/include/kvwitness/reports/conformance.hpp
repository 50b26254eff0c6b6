/// Conformance of a store: every scenario whose requirements it meets, what it can do, what it costs, and the first
/// scenario that it fails, made small. For a store in C++, a plug-in or another process alike: all are kinds of a
/// registry (scenarios/registry.hpp, scenarios/foreign.hpp). Link kvwitness::conformance.
#pragma once

#include "kvwitness/reports/suite.hpp"

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace kvwitness::reports {

struct ConformanceOptions {
  std::string store;   ///< kind to stand for "@sut"
  SuiteOptions suite;  ///< filter, tags, seed, parameters, progress, on_case, trace_dir; `stores` does not apply
  double shrink_seconds = 20;  ///< to make the first failure small
};

/// One rule over all cases.
struct RuleProfile {
  std::string rule;
  verify::Level level = verify::Level::must;
  verify::Status status = verify::Status::pass;  ///< the worst
  std::uint64_t cases = 0;                       ///< in which it judged
  std::uint64_t met = 0;
  std::uint64_t violations = 0;
  std::string first;  ///< first case that has the worst status; empty where that is pass
};

/// What one token of decoding costs once the window is full: sums over `tokens`.
struct TokenCosts {
  std::uint64_t tokens = 0;
  std::uint64_t calls = 0;
  std::optional<std::uint64_t> allocations;  ///< nothing: nobody counted them
  std::uint64_t allocated_bytes = 0;
  std::uint64_t adapters = 0;      ///< copies and conversions between the store and its reader
  std::uint64_t copied_bytes = 0;  ///< by them
  std::string why_not;             ///< the store could not be measured; else empty
};

/// The first case that the store fails.
struct FirstFailure {
  std::string case_name;
  std::string rule;
  std::string script;      ///< text of the case, made small; empty where it is no script of its own
  std::string not_shrunk;  ///< why it is as the library has it; empty: it was made small
  std::uint64_t steps_before = 0;
  std::uint64_t steps_after = 0;
  std::uint64_t candidates = 0;  ///< scripts that were run to make it small
  CaseResult result;             ///< of the script as it is now
  std::string reference;         ///< product's store whose slots are the expected ones; empty: none can run it
  std::string expected_slots;    ///< drawn, as `inspect --slots` does, at the step that failed
  std::string observed_slots;
};

struct ConformanceResult {
  std::string store;
  SuiteResult suite;
  std::vector<CapabilityUse> capabilities;
  bool is_whole = true;            ///< no filter, tag or shard left scenarios out: what passes, conforms
  std::vector<RuleProfile> rules;  ///< in order of id
  bool is_measured = true;         ///< false: what its calls allocate was not asked
  TokenCosts costs;
  std::optional<FirstFailure> failure;
};

/// Runs every selected case of the scripts that `paths` name on the store, as run_suite does, but skips, with its
/// reason, a case whose store the kind refuses to build. Throws as run_suite does.
[[nodiscard]] ConformanceResult run_conformance(const std::vector<std::filesystem::path>& paths,
                                                const scenarios::StoreRegistry& registry,
                                                const ConformanceOptions& options);

/// What a result of run_suite, with these paths and options, says of the store. Runs what the costs and the first
/// failure take.
[[nodiscard]] ConformanceResult conformance_of(const SuiteResult& suite,
                                               const std::vector<std::filesystem::path>& paths,
                                               const scenarios::StoreRegistry& registry,
                                               const ConformanceOptions& options);

/// As the suite's.
[[nodiscard]] int exit_code(const ConformanceResult& result) noexcept;

/// What it can do, rules with levels, costs, the first failure, and a last line with the verdict.
void write_conformance_text(const ConformanceResult& result, std::ostream& out, bool color);
/// The same as one JSON object; schema: reports/schema/conformance-1.json.
void write_conformance_json(const ConformanceResult& result, std::ostream& out);

/// The whole of a program: `main(argc, argv)` of a store of one's own that was added to `registry`. Takes scripts and
/// directories as arguments (none: the library), `--filter GLOB` and `--json`; prints the report to standard output,
/// and returns the exit code.
[[nodiscard]] int conformance_main(int argc, char** argv, const scenarios::StoreRegistry& registry,
                                   const std::string& store);

}  // namespace kvwitness::reports
