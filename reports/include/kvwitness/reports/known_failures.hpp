/// Known failures: verdicts that are expected not to pass, each with its reason, so that the others keep their meaning.
///
/// A list is one JSON object. Schema: reports/schema/known-failures-1.json.
///
///     {"kvwitness": "known-failures", "version": 1, "failures": [
///       {"match": "ring/* on mine", "rule": "position-order", "status": "fail", "reason": "rows come in slot order",
///        "issue": "https://…/12", "expires": "2027-01-31"}]}
///
/// `match` is a glob (`*`, `?`) over "id[variant] on store", or over "id[variant]" on every store. `rule` is the id of
/// a rule or the name of a witness, `status` the verdict that is expected of it: "fail", "vacuous" or "inconclusive".
/// Such a verdict does not count; any other does. `issue` and `expires`, the last day (UTC) on which the line counts,
/// may be left out.
#pragma once

#include "kvwitness/verify/verdict.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::reports {

/// One line of a list.
struct KnownFailure {
  std::string match;
  std::string rule;
  verify::Status status = verify::Status::fail;
  std::string reason;
  std::string issue;  ///< empty: none
  std::optional<std::chrono::sys_days> expires;
};

class KnownFailures {
 public:
  KnownFailures() = default;
  /// Throws trace::Error, with the line's index, for anything but such a list. `name`: what errors call it.
  [[nodiscard]] static KnownFailures read(std::istream& in, const std::string& name);
  [[nodiscard]] static KnownFailures load(const std::filesystem::path& file);

  [[nodiscard]] const std::vector<KnownFailure>& lines() const noexcept { return lines_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// "known.json: failures[3]", counted from 0.
  [[nodiscard]] std::string place_of(const KnownFailure& line) const;

  /// Lines about a case ("id[variant]") on a store. Throws trace::Error where two of them are about the same rule.
  [[nodiscard]] std::vector<const KnownFailure*> about(std::string_view case_name, std::string_view store) const;

 private:
  std::string name_;
  std::vector<KnownFailure> lines_;
};

/// The day after which a line no longer counts has come.
[[nodiscard]] bool is_expired(const KnownFailure& line, std::chrono::sys_days today) noexcept;

/// "2027-01-31"; absent for any other form, and for days that there are not.
[[nodiscard]] std::optional<std::chrono::sys_days> parse_day(std::string_view text) noexcept;
[[nodiscard]] std::string to_text(std::chrono::sys_days day);

}  // namespace kvwitness::reports
