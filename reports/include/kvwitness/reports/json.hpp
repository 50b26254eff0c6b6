/// The report for programs. Schema: reports/schema/report-1.json (JSON Schema draft 7).
#pragma once

#include "kvwitness/reports/suite.hpp"

#include <iosfwd>
#include <string>

namespace kvwitness::reports {

/// One JSON object: summary and every case with its rules, violations and witnesses. Digests and seeds are strings of
/// "0x" and 16 hex digits, since many readers round integers above 2^53. Bytes that are not UTF-8 are replaced.
void write_json(const SuiteResult& result, std::ostream& out);

}  // namespace kvwitness::reports
