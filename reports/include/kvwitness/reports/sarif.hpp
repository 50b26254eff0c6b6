/// The report for code scanning: SARIF 2.1.0 (OASIS Standard, 27 March 2020), as GitHub and editors read it.
#pragma once

#include "kvwitness/reports/suite.hpp"

#include <iosfwd>

namespace kvwitness::reports {

/// One log with one run: every rule that a result names, with its property as help, and a result for each rule and
/// witness of a case that is not green. A result stands at the step of the script, its other steps are related
/// locations, and its fingerprint depends on rule, case and store only, so that it stays the same when a script's lines
/// move. Levels: MUST is an error, SHOULD a warning, MAY a note. An inconclusive verdict is of the kind "open", a
/// known failure is suppressed with its reason. Paths that are not absolute are told relative to %SRCROOT%.
void write_sarif(const SuiteResult& result, std::ostream& out);

}  // namespace kvwitness::reports
