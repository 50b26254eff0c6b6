/// The report for programs. Schema: reports/schema/report-1.json (JSON Schema draft 7).
#pragma once

#include "kvwitness/reports/suite.hpp"

#include <filesystem>
#include <iosfwd>
#include <string>

namespace kvwitness::reports {

/// One JSON object: summary and every case with its rules, violations and witnesses. Digests and seeds are strings of
/// "0x" and 16 hex digits, since many readers round integers above 2^53. Bytes that are not UTF-8 are replaced.
void write_json(const SuiteResult& result, std::ostream& out);

/// Reads such a report back, as far as every other report needs it; written again it has the same bytes. `name` is
/// what errors call it. Throws trace::Error for anything else, and for a report of another version of kvwitness.
[[nodiscard]] SuiteResult read_json(std::istream& in, const std::string& name);
[[nodiscard]] SuiteResult load_json(const std::filesystem::path& file);

}  // namespace kvwitness::reports
