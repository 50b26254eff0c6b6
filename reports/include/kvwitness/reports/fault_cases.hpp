/// Public reports of faults, one by one, and the case of the library that shows each of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::reports {

/// How a report stands to the library.
enum class Coverage : std::uint8_t {
  shown,        ///< a seeded fault fails the case by the rule, the correct store passes it
  false_alarm,  ///< nothing was wrong: the correct store passes the case
  missing,      ///< no event or store expresses it
};

/// One public report. What does not apply is empty.
struct FaultCase {
  std::string id;           ///< "KV009"
  std::string fault_class;  ///< slug, see fault_classes.hpp
  std::string source;       ///< "project#number"
  std::string fault;        ///< what was wrong, one line
  Coverage coverage = Coverage::shown;
  std::string scenario;  ///< id of a script; with its variant a case of the library: see `case_name`
  std::string variant;
  std::string store;    ///< kind that is correct
  std::string mutant;   ///< name of the seeded fault, without "mutant:"; of `shown`
  std::string rule;     ///< that blames it; of `shown`
  std::string missing;  ///< the event or store that would be needed; of `missing`
};

/// Where a library keeps its reports: `library`/data/fault-cases.json.
[[nodiscard]] std::filesystem::path fault_cases_file(const std::filesystem::path& library);

/// Reads such a file, in its order. Throws trace::Error, with file and report, where it cannot be read, is not of this
/// form (unknown or missing members, text that is empty) or has a report twice.
[[nodiscard]] std::vector<FaultCase> load_fault_cases(const std::filesystem::path& file);

/// Those of which id, class, source, case or mutant matches the glob; all where it is empty.
[[nodiscard]] std::vector<FaultCase> matching(std::vector<FaultCase> cases, std::string_view glob);

/// A line a report, what is not expressed below, and how many there are of each kind.
void write_fault_cases(const std::vector<FaultCase>& cases, std::ostream& out, bool color);
/// The same as a JSON array, in the form of the file, with `coverage`.
void write_fault_cases_json(const std::vector<FaultCase>& cases, std::ostream& out);

[[nodiscard]] std::string_view to_text(Coverage coverage) noexcept;

}  // namespace kvwitness::reports
