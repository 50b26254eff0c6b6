/// A file of budgets while the cases of a run end.
#pragma once

#include "kvwitness/reports/budgets.hpp"
#include "kvwitness/reports/selection.hpp"
#include "kvwitness/reports/suite.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kvwitness::reports {

class BudgetCheck {
 public:
  /// Throws trace::Error where the file cannot be read; one that is to be updated need not exist.
  explicit BudgetCheck(const SuiteOptions& options);

  /// Holds a case that ran to the budget of its scenario.
  void judge(CaseResult& result) const;
  /// Takes a case as it counts, after all else was judged.
  void add(const CaseResult& result);
  /// Tells lines that nothing can ever be held to: no such scenario or store, or one that does not run on the other, or
  /// no decode step in a scenario that ran whole. Where the file is updated, drops those and brings the file up to
  /// date.
  void finish(const std::vector<SelectedScript>& scripts, const scenarios::StoreRegistry& registry,
              std::vector<std::string>& stale);

 private:
  struct Measured {
    verify::Costs costs;
    std::uint64_t cases = 0;  ///< green
  };

  /// Empty where the line is not stale.
  [[nodiscard]] std::string why_stale(const Budgets::Key& key, const std::vector<SelectedScript>& scripts,
                                      const scenarios::StoreRegistry& registry) const;
  void update(const std::vector<SelectedScript>& scripts);

  std::filesystem::path file_;
  Budgets budgets_;
  bool update_;
  bool growth_;
  bool scripts_are_as_written_;  ///< no seed and no parameter changes what they cost
  std::map<Budgets::Key, Measured> measured_;
};

}  // namespace kvwitness::reports
