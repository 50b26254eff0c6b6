#include "kvwitness/reports/suite.hpp"

#include <algorithm>

namespace kvwitness::reports {
namespace {

bool any_status(const SuiteResult& result, verify::Status status) noexcept {
  return std::ranges::any_of(result.cases, [status](const CaseResult& one) {
    return one.skipped_because.empty() && one.verdict.status == status;
  });
}

ExitCode code_of(const SuiteResult& result) noexcept {
  if (std::ranges::any_of(result.cases, &CaseResult::nondeterministic)) return ExitCode::nondeterministic;
  if (any_status(result, verify::Status::fail)) return ExitCode::violation;
  if (any_status(result, verify::Status::vacuous)) return ExitCode::vacuous;
  if (!result.stale_goldens.empty()) return ExitCode::stale_baseline;
  if (any_status(result, verify::Status::inconclusive)) return ExitCode::inconclusive;
  const bool none_ran = !any_status(result, verify::Status::pass);
  return none_ran ? ExitCode::nothing_selected : ExitCode::pass;
}

}  // namespace

int exit_code(const SuiteResult& result) noexcept {
  return static_cast<int>(code_of(result));
}

}  // namespace kvwitness::reports
