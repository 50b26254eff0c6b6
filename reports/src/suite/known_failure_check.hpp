/// A list of known failures while the cases of a run end.
#pragma once

#include "kvwitness/reports/known_failures.hpp"
#include "kvwitness/reports/selection.hpp"
#include "kvwitness/reports/suite.hpp"

#include <string>
#include <vector>

namespace kvwitness::reports {

class KnownFailureCheck {
 public:
  /// Throws trace::Error where the list cannot be read.
  explicit KnownFailureCheck(const SuiteOptions& options);

  /// Throws trace::Error where two lines are about the same rule of the case.
  void require_no_overlap(const std::string& case_name, const std::string& store) const;
  /// Tells which lines a case that ran shows, and which it does not show.
  void judge(CaseResult& result) const;
  /// Tells lines that have expired, and those that none of the scripts' cases stands behind on any store.
  void finish(const std::vector<SelectedScript>& scripts, const scenarios::StoreRegistry& registry,
              std::vector<std::string>& stale) const;

 private:
  KnownFailures known_;
  std::chrono::sys_days today_;
  bool names_are_the_scripts_;  ///< no parameter gives the cases other names
};

}  // namespace kvwitness::reports
