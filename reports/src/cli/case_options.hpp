/// Options of every command that runs cases of scripts, and what is done with them.
#pragma once

#include "kvwitness/reports/suite.hpp"
#include "kvwitness/scenarios/registry.hpp"

#include "selection_options.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace kvwitness::cli {

struct CaseOptions {
  SelectionOptions selection;
  std::string list;  ///< "text" or "json": the cases are listed and not run; empty: they are run
  std::string shard;
  std::uint32_t jobs = 1;
  std::uint32_t repeat = 1;
  bool check_determinism = false;
  bool fail_fast = false;
  std::string known_failures;
  std::string budgets;
  std::string update;  ///< "all", "goldens" or "budgets"; empty: nothing is written
  bool allow_growth = false;
  std::string replay;
  std::string trace_dir;
  std::string trace_format = "jsonl";
  std::string clock = "none";
  std::vector<std::string> reports;
};

void add_case_options(CLI::App& command, CaseOptions& options);

/// What is run: scripts, and how.
struct CaseRun {
  std::vector<std::filesystem::path> paths;
  reports::SuiteOptions suite;
  std::vector<std::string> outputs{};  ///< files that the command writes besides its reports; "-" is standard output
};

/// The options as the suite takes them, progress included. With --replay, what the report tells where the options do
/// not say something else; its stores are chosen then. Throws trace::Error for what cannot be read.
[[nodiscard]] CaseRun case_run(const CaseOptions& options);

/// What is printed where no report goes to standard output.
using WriteResult = std::function<void(const reports::SuiteResult& result, std::ostream& out, bool color)>;

/// What the exit code is, once the reports are written.
using Conclude = std::function<int(const reports::SuiteResult& result)>;

/// Lists the cases of `run`, or runs them after the canary, and writes the reports. `run` is what `case_run` gave, with
/// the stores chosen. Returns the exit code: the suite's where nothing else concludes.
[[nodiscard]] int run_cases(const CaseOptions& options, const scenarios::StoreRegistry& registry, CaseRun run,
                            const WriteResult& fallback, const Conclude& conclude = {});

/// Says on standard error what no report of a single case shows: processes that died, and stale lines.
void tell_troubles(const reports::SuiteResult& result);

/// `write_text`, which most commands print.
void write_result(const reports::SuiteResult& result, std::ostream& out, bool color);

}  // namespace kvwitness::cli
