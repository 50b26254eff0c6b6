/// The first failure of a conformance run, made small and drawn.
#pragma once

#include "kvwitness/reports/conformance.hpp"

namespace kvwitness::reports {

/// The rule that a failing case is told by: that the store was lost comes before what follows from it, then the first
/// of the highest level.
[[nodiscard]] std::string blaming_rule(const CaseResult& result);

/// `result` is of `which`, a case of the script file that it names, and failed.
[[nodiscard]] FirstFailure first_failure(const scenarios::Case& which, const CaseResult& result,
                                         const scenarios::StoreRegistry& registry, const ConformanceOptions& options);

}  // namespace kvwitness::reports
