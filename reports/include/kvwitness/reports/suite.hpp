/// The suite: run cases of scenarios against stores and judge them. What the program, the conformance of a user's own
/// store, and the tests all go through.
#pragma once

#include "kvwitness/reports/golden.hpp"
#include "kvwitness/scenarios/driver.hpp"
#include "kvwitness/trace/bus.hpp"
#include "kvwitness/verify/judge.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kvwitness::reports {

/// One case on one store.
struct CaseResult {
  std::string scenario;
  std::string variant;   ///< "tokens=17 window=4"; empty without a matrix
  std::string store;     ///< kind that stood for "@sut"
  trace::Claims claims;  ///< as judged: step table with file and line, replay command
  verify::CaseVerdict verdict;
  std::string skipped_because;  ///< non-empty: not run
  bool nondeterministic = false;
  double seconds = 0;
  std::filesystem::path trace;          ///< saved here; empty: not saved
  GoldenValue golden;                   ///< what a golden keeps of the run
  std::vector<std::string> only_rules;  ///< rules that it was judged by; empty: all
  std::string incomplete;               ///< why the trace that was checked does not tell the whole run; empty: it does
};

struct SuiteResult {
  std::vector<CaseResult> cases;
  std::vector<std::string> stale_goldens;  ///< lines of golden files that no case stands behind
  double seconds = 0;
};

struct SuiteOptions {
  std::vector<std::string> stores{};  ///< kinds to stand for "@sut"; empty: every kind of the registry
  std::string filter{};               ///< glob (`*`, `?`) over "id[variant]", the id or a tag; empty: everything
  std::vector<std::string> tags{};    ///< only scripts with one of these tags; empty: all
  bool with_slow = false;             ///< also scripts tagged `slow`; naming the tag or a file selects them as well
  std::optional<std::uint64_t> seed{};
  std::map<std::string, std::string> params{};  ///< values instead of the scripts' own, where one declares the name
  std::filesystem::path root{};                 ///< scenario root; empty: the directory given, or the file's own
  std::filesystem::path trace_dir{};            ///< where every case's trace is saved; empty: nowhere
  std::string trace_format = "jsonl";           ///< or "blocks"
  trace::ClockKind clock = trace::ClockKind::none;
  bool check_determinism = false;  ///< run twice, compare digests
  bool update_goldens = false;     ///< write goldens for scripts that have some or were named, instead of comparing
  std::function<void(const std::string& what)> progress{};  ///< may be empty
  std::function<void(const CaseResult& done)> on_case{};    ///< called as each case ends; may be empty
};

/// Runs one case of a script on one store kind. Throws trace::Error where a file it names cannot be read or written.
[[nodiscard]] CaseResult run_case(const scenarios::Case& which, const std::string& store,
                                  const scenarios::StoreRegistry& registry, const SuiteOptions& options);

/// Loads scripts (files, or directories searched for *.jsonc in order of path), checks that every rule they ask for
/// exists, and runs every selected case on every store. Where a golden lies beside a script (see golden.hpp), its
/// cases are held to it, unless a seed or a parameter was given. All scripts are loaded before the first case runs.
/// Throws trace::Error where a script cannot be loaded.
[[nodiscard]] SuiteResult run_suite(const std::vector<std::filesystem::path>& paths,
                                    const scenarios::StoreRegistry& registry, const SuiteOptions& options);

/// Judges a saved trace by the claims in its header, with the verdict of the run that saved it. Throws trace::Error
/// with a byte offset where it is malformed; a trace that was cut off is no error but inconclusive.
[[nodiscard]] CaseResult check_trace(const std::filesystem::path& file, const verify::JudgeOptions& options = {});

/// Exit codes of the program. Where several apply, `exit_code` gives the first in the order 3, 2, 6, 1, 7, 8, 9, 4, 0.
enum class ExitCode : int {
  pass = 0,
  violation = 1,
  invalid_input = 2,   ///< usage, or an input that cannot be read
  internal_error = 3,  ///< also: the canary, a store known to be wrong, passed
  nothing_selected = 4,
  nondeterministic = 6,
  vacuous = 7,  ///< a check that never met what it is about, or a seeded fault that survived
  stale_baseline = 8,
  inconclusive = 9,
};

[[nodiscard]] int exit_code(const SuiteResult& result) noexcept;

}  // namespace kvwitness::reports
