/// The suite: run cases of scenarios against stores and judge them. What the program, the conformance of a user's own
/// store, and the tests all go through.
#pragma once

#include "kvwitness/scenarios/driver.hpp"
#include "kvwitness/verify/judge.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kvwitness::reports {

struct SuiteOptions {
  std::vector<std::string> stores;            ///< kinds to stand for "@sut"; empty: every kind of the registry
  std::string filter;                         ///< glob over "id[variant]" and tags; empty: all without the tag slow
  bool with_slow = false;
  std::optional<std::uint64_t> seed;
  std::filesystem::path root;                 ///< scenario root
  std::filesystem::path trace_dir;            ///< where every case's trace is saved; empty: nowhere
  std::string trace_format = "jsonl";         ///< or "blocks"
  bool check_determinism = false;             ///< run twice, compare digests
  std::function<void(const std::string& what)> progress;  ///< may be empty
};

/// One case on one store.
struct CaseResult {
  std::string scenario;
  std::string variant;
  std::string store;
  verify::CaseVerdict verdict;
  std::string skipped_because;                ///< non-empty: not run
  bool nondeterministic = false;
  double seconds = 0;
  std::filesystem::path trace;                ///< saved here; empty: not saved
};

struct SuiteResult {
  std::vector<CaseResult> cases;
  double seconds = 0;
};

/// Runs one case of a script on one store kind.
[[nodiscard]] CaseResult run_case(const scenarios::Case& which, const std::string& store,
                                  const scenarios::StoreRegistry& registry, const SuiteOptions& options);

/// Loads scripts (files, or directories searched for *.jsonc in order of path) and runs every case on every store.
/// Throws trace::Error where a script cannot be loaded.
[[nodiscard]] SuiteResult run_suite(const std::vector<std::filesystem::path>& paths,
                                    const scenarios::StoreRegistry& registry, const SuiteOptions& options);

/// Judges a saved trace by the claims in its header. Throws trace::Error with a byte offset where it is malformed.
[[nodiscard]] verify::CaseVerdict check_trace(const std::filesystem::path& file, const verify::JudgeOptions& options = {});

/// Exit code of the program for a result: the first that applies of 3, 2, 6, 1, 7, 8, 9, 4, 0 (see README).
[[nodiscard]] int exit_code(const SuiteResult& result) noexcept;

}  // namespace kvwitness::reports
