/// The report for CI servers: JUnit XML as Jenkins and GitLab read it. Structure: reports/schema/junit.xsd.
#pragma once

#include "kvwitness/reports/suite.hpp"

#include <iosfwd>
#include <string>
#include <string_view>

namespace kvwitness::reports {

/// A testsuite per scenario, a testcase per case and store, its parameters in the name. A violation and a vacuous check
/// are failures, an inconclusive verdict and two runs that differ are errors (the run could not be judged); what was
/// not run, and a case whose failures are all known, is skipped with its reason; a known failure that passed is a
/// failure. The command that replays a case stands in its system-out.
void write_junit(const SuiteResult& result, std::ostream& out);

/// Text as XML 1.0 character data or attribute value: markup escaped, line breaks kept as character references, and
/// what XML cannot say at all (control characters, bytes that are not UTF-8) written as \xNN.
[[nodiscard]] std::string xml_escaped(std::string_view text);

}  // namespace kvwitness::reports
