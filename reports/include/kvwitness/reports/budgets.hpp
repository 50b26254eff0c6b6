/// Budgets: what a decode step may cost, by scenario and store, kept in a file that only ever gets tighter.
///
/// One JSON object; schema: reports/schema/budgets-1.json.
///
///     {"kvwitness": "budgets", "version": 1, "budgets": [
///       {"scenario": "ring/wrap-identity", "store": "ring",
///        "allocations_per_token": 0, "adapters_per_token": 0, "copied_bytes_per_token": 0}]}
///
/// Each holds for every decode step of every case of the scenario, as budgets in a script do (see verify/costs.hpp);
/// what a line leaves out is not judged.
#pragma once

#include "kvwitness/verify/costs.hpp"
#include "kvwitness/verify/verdict.hpp"

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace kvwitness::reports {

/// Of one scenario on one store. Absent: not judged.
struct Budget {
  std::optional<std::uint64_t> allocations_per_token;
  std::optional<std::uint64_t> adapters_per_token;
  std::optional<std::uint64_t> copied_bytes_per_token;

  friend bool operator==(const Budget&, const Budget&) noexcept = default;
};

/// What was measured, as a budget; allocations are absent where some step was not watched.
[[nodiscard]] Budget budget_of(const verify::Costs& costs) noexcept;

/// What lies within both; with `growth` the newer one where it has a value.
[[nodiscard]] Budget tightened(const Budget& old, const Budget& measured, bool growth) noexcept;

/// The rule "budget" for one case: fails where a decode step cost more; inconclusive where allocations have a budget
/// and were not watched. Absent where the case had no decode step, or the budget no value.
[[nodiscard]] std::optional<verify::RuleVerdict> compare_with_budget(const Budget& budget, const verify::Costs& costs);

/// The lines of a file.
class Budgets {
 public:
  using Key = std::pair<std::string, std::string>;  ///< scenario, store

  /// Throws trace::Error, with the line's index, for anything but such a file. `name`: what errors call it.
  [[nodiscard]] static Budgets read(std::istream& in, const std::string& name);
  [[nodiscard]] static Budgets load(const std::filesystem::path& file);
  void write(std::ostream& out) const;
  /// Throws trace::Error where it cannot be written.
  void save(const std::filesystem::path& file) const;

  [[nodiscard]] const Budget* find(const Key& key) const;
  void set(const Key& key, const Budget& budget) { lines_[key] = budget; }
  void erase(const Key& key) { lines_.erase(key); }
  [[nodiscard]] const std::map<Key, Budget>& lines() const noexcept { return lines_; }

 private:
  std::map<Key, Budget> lines_;
};

}  // namespace kvwitness::reports
