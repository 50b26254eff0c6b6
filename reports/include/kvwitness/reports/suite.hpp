/// The suite: run cases of scenarios against stores and judge them. What the program, the conformance of a user's own
/// store, and the tests all go through.
#pragma once

#include "kvwitness/reports/golden.hpp"
#include "kvwitness/reports/known_failures.hpp"
#include "kvwitness/reports/shard.hpp"
#include "kvwitness/scenarios/driver.hpp"
#include "kvwitness/trace/bus.hpp"
#include "kvwitness/verify/judge.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvwitness::reports {

/// One case on one store.
struct CaseResult {
  std::uint64_t number = 0;    ///< place in the whole selection, from 1; 0: not of one
  std::filesystem::path file;  ///< the script, as its path was given; empty: not known
  std::string scenario;
  std::string variant;   ///< "tokens=17 window=4"; empty without a matrix
  std::string store;     ///< kind that stood for "@sut"
  trace::Claims claims;  ///< as judged: step table with file and line, replay command
  verify::CaseVerdict verdict;
  std::string skipped_because;  ///< non-empty: not run
  std::string died_because;     ///< why its process ended before it had a verdict; empty: it has one
  bool nondeterministic = false;
  double seconds = 0;
  std::filesystem::path trace;          ///< saved here; empty: not saved
  GoldenValue golden;                   ///< what a golden keeps of the run
  std::vector<std::string> only_rules;  ///< rules that it was judged by; empty: all
  verify::Costs costs;                  ///< of decode steps of the store under test
  std::vector<KnownFailure> known;      ///< known failures that it shows: verdicts as expected, which do not count
  std::vector<std::string> unexpected;  ///< known failures that it does not show, though it was run: one sentence each
  std::string incomplete;               ///< why the trace that was checked does not tell the whole run; empty: it does
};

/// Whether a verdict of a rule or witness is a known failure of the case.
[[nodiscard]] const KnownFailure* known_failure(const CaseResult& one, std::string_view rule,
                                                verify::Status status) noexcept;

/// The case's status without the verdicts that are known failures; skipped where it was not run, inconclusive where it
/// has no verdict.
[[nodiscard]] verify::Status counted_status(const CaseResult& one) noexcept;

/// Whether a case that was run stands in the way of green: it has no verdict, told other events the second time, its
/// counted status is no pass, or a known failure passed. A skipped case does not.
[[nodiscard]] bool is_bad(const CaseResult& one) noexcept;

/// What was asked for, so that a result can be run again.
struct Request {
  std::vector<std::filesystem::path> paths;  ///< empty: the library that ships with the program
  std::optional<std::uint64_t> seed;
  std::map<std::string, std::string> params;
  std::uint32_t repeat = 1;

  friend bool operator==(const Request&, const Request&) noexcept = default;
};

/// The whole of which a run is a part.
struct Selection {
  std::uint64_t digest =
      0;  ///< of version, scripts, goldens, budgets, known failures, names of cases, seed, parameters, repetitions
  std::uint64_t cases = 0;     ///< in all shards together
  std::uint64_t runnable = 0;  ///< of those, cases whose store has what they require
  Request request;

  friend bool operator==(const Selection&, const Selection&) noexcept = default;
};

/// A capability that a store declares.
struct CapabilityUse {
  std::string store;
  std::string name;
  std::uint64_t cases = 0;  ///< that require it and were judged

  friend bool operator==(const CapabilityUse&, const CapabilityUse&) noexcept = default;
};

struct SuiteResult {
  std::optional<Selection> selection;  ///< absent: traces were checked, nothing was selected
  Shard shard;
  std::vector<CaseResult> cases;
  /// Lines of goldens, budgets and known failures that no case stands behind, and expired ones, with their file.
  std::vector<std::string> stale_baselines;
  /// What the stores declare, where `SuiteOptions::require_exercised` asked for it and nothing of the library was left
  /// out, nor not run because of a failure; of a shard, its own cases. One that no case of all shards exercised fails.
  std::optional<std::vector<CapabilityUse>> capabilities{};
  /// Cases that would have been selected but for the tag `slow` of their scripts, each counted once for all stores.
  std::uint64_t slow_left_out = 0;
  double seconds = 0;
};

/// Capabilities that are declared and that no case exercised; empty for a shard, which cannot tell.
[[nodiscard]] std::vector<CapabilityUse> unexercised(const SuiteResult& result);

struct SuiteOptions {
  std::vector<std::string> stores{};  ///< kinds to stand for "@sut"; empty: every kind of the registry
  std::string filter{};               ///< glob (`*`, `?`) over "id[variant]", the id or a tag; empty: everything
  std::vector<std::string> tags{};    ///< only scripts with one of these tags; empty: all
  bool with_slow = false;             ///< also scripts tagged `slow`, as where that tag or their file is named
  std::optional<std::uint64_t> seed{};
  std::map<std::string, std::string> params{};  ///< values instead of the scripts' own, where one declares the name
  std::filesystem::path root{};                 ///< scenario root; empty: the directory given, or the file's own
  std::filesystem::path trace_dir{};            ///< where every case's trace is saved; empty: nowhere
  std::string trace_format = "jsonl";           ///< or "blocks"
  trace::ClockKind clock = trace::ClockKind::none;
  std::uint32_t repeat = 1;        ///< times that each case is run; their digests are compared
  Shard shard{};                   ///< the part of the selection that is run
  std::uint32_t jobs = 1;          ///< processes that run cases; more than 1: they are forked, see `run_suite`
  bool fail_fast = false;          ///< nothing is run after the first case that `is_bad`
  bool require_exercised = false;  ///< what a store declares has to be exercised, if the whole library is run
  bool skip_unbuildable = false;   ///< a store that its kind refuses to build skips the case; else it ends the run
  /// Cases ("id[variant]", store) that are run, all others are left out; absent: all that are selected.
  std::optional<std::set<std::pair<std::string, std::string>>> only{};
  bool update_goldens = false;       ///< write goldens for scripts that have some or were named, instead of comparing
  std::filesystem::path budgets{};   ///< what decode steps may cost, see budgets.hpp; empty: not judged
  bool update_budgets = false;       ///< lower budgets to what was measured, add missing ones, drop stale ones
  bool allow_budget_growth = false;  ///< with update_budgets: raise them too
  std::filesystem::path known_failures{};  ///< list of them, see known_failures.hpp; empty: none
  /// The day by which known failures expire.
  std::chrono::sys_days today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  std::function<void(const std::string& what)> progress{};  ///< may be empty
  std::function<void(const CaseResult& done)> on_case{};    ///< called as each case ends; may be empty
};

/// Runs one case of a script on one store kind. Throws trace::Error where a file it names cannot be read or written.
[[nodiscard]] CaseResult run_case(const scenarios::Case& which, const std::string& store,
                                  const scenarios::StoreRegistry& registry, const SuiteOptions& options);

/// Loads scripts (files, or directories searched for *.jsonc in order of path), checks that every rule they ask for
/// exists, and runs every selected case on every store. Where a golden lies beside a script (see golden.hpp), its
/// cases are held to it, unless a seed or a parameter was given. All scripts are loaded before the first case runs.
///
/// Budgets add the rule "budget" to cases of their scenarios. Where they are updated, a scenario counts that ran whole
/// on a store, every case of it green.
///
/// Known failures do not count as long as they are as their line says. A line that no loaded case stands behind is
/// stale, unless a parameter was given, which changes the names of cases.
///
/// With more than one job cases run in forked processes, so call it while the process has one thread. Verdicts, their
/// order and the order of `on_case` do not depend on jobs. A case whose process dies has `died_because` and no verdict,
/// and the others go on. Throws trace::Error where a script cannot be loaded, and for goldens or budgets that are to be
/// written while only a shard is run, and where two known failures are about the same rule of a selected case, and
/// where a case of `only` is not selected.
[[nodiscard]] SuiteResult run_suite(const std::vector<std::filesystem::path>& paths,
                                    const scenarios::StoreRegistry& registry, const SuiteOptions& options);

/// Judges a saved trace by the claims in its header, with the verdict of the run that saved it. Throws trace::Error
/// with a byte offset where it is malformed; a trace that was cut off is no error but inconclusive.
[[nodiscard]] CaseResult check_trace(const std::filesystem::path& file, const verify::JudgeOptions& options = {});

/// The cases that `run_suite` would run with these options, without verdicts; skipped ones have their reason.
[[nodiscard]] SuiteResult list_suite(const std::vector<std::filesystem::path>& paths,
                                     const scenarios::StoreRegistry& registry, const SuiteOptions& options);

/// Exit codes of the program. Where several apply, `exit_code` gives the first in the order 3, 2, 6, 1, 7, 8, 9, 4, 0.
enum class ExitCode : int {
  pass = 0,
  violation = 1,
  invalid_input = 2,   ///< usage, or an input that cannot be read
  internal_error = 3,  ///< also: the canary, a store known to be wrong, passed; the process of a case died
  nothing_selected = 4,
  nondeterministic = 6,
  vacuous = 7,  ///< a check that never met what it is about, or a seeded fault that survived
  stale_baseline = 8,
  inconclusive = 9,
};

/// A shard in which nothing could run passes where another shard of the selection has something to run.
[[nodiscard]] int exit_code(const SuiteResult& result) noexcept;

}  // namespace kvwitness::reports
