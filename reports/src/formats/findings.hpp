/// What a report that points into files must point at, whatever its format.
#pragma once

#include "kvwitness/reports/suite.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::reports {

/// Where a step stands. Without a line it is the file as a whole, without a file nowhere.
struct FilePlace {
  std::string file;  ///< as the script's path was given
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

/// Something that is not green, one for each rule and witness of a case.
struct ReportedFinding {
  std::string rule;  ///< id of a rule; of what the judge has no rule for, one of `report_rules`
  verify::Level level = verify::Level::must;
  verify::Status status = verify::Status::fail;
  std::string says;                     ///< expected and observed, in one paragraph
  FilePlace place;                      ///< of the first violation
  std::vector<FilePlace> others{};      ///< other steps at which it was violated, each once
  const CaseResult* of = nullptr;       ///< null: it is about no case
  const KnownFailure* known = nullptr;  ///< it does not count
  std::uint64_t violations = 0;
};

/// In the order of the report. Points into `result`.
[[nodiscard]] std::vector<ReportedFinding> findings_of(const SuiteResult& result);

/// Number of the event at which a rule was violated first; beyond all events where it was not. A lost store comes
/// first.
[[nodiscard]] std::uint64_t first_violation(const verify::RuleVerdict& rule) noexcept;

/// A rule as reports name it.
struct ReportRule {
  std::string_view id;
  std::string_view says;
  std::string_view help;
};

/// What a run finds that no rule of the judge is about: witnesses, goldens, repetitions, and so on.
[[nodiscard]] std::span<const ReportRule> report_rules() noexcept;

}  // namespace kvwitness::reports
