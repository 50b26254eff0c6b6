#pragma once
#include "kvwitness/reports/suite.hpp"

#include <algorithm>
#include <string_view>

namespace kvwitness::reports {

/// Why a case was skipped that comes after one that is not green.
inline constexpr std::string_view kNotRun = "not run: a case before it failed (--fail-fast)";

/// `SuiteOptions::fail_fast` left cases out.
[[nodiscard]] inline bool was_cut_short(const SuiteResult& result) {
  return std::ranges::any_of(result.cases, [](const CaseResult& one) { return one.skipped_because == kNotRun; });
}

}  // namespace kvwitness::reports
