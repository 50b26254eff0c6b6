#include "kvwitness/reports/suite.hpp"

#include <algorithm>

namespace kvwitness::reports {
namespace {

bool any_status(const SuiteResult& result, verify::Status status) noexcept {
  return std::ranges::any_of(result.cases, [status](const CaseResult& one) {
    return one.skipped_because.empty() && one.verdict.status == status;
  });
}

}  // namespace

int exit_code(const SuiteResult& result) noexcept {
  if (std::ranges::any_of(result.cases, &CaseResult::nondeterministic)) return 6;
  if (any_status(result, verify::Status::fail)) return 1;
  if (any_status(result, verify::Status::vacuous)) return 7;
  if (any_status(result, verify::Status::inconclusive)) return 9;
  const bool nothing_ran = std::ranges::all_of(result.cases, [](const CaseResult& one) { return !one.skipped_because.empty(); });
  return nothing_ran ? 4 : 0;
}

}  // namespace kvwitness::reports
