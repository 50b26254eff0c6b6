/// Numbers that a store reports of itself, and what they are to be.
#pragma once

#include "kvwitness/verify/model.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace kvwitness::verify {

/// The unit of a number that events.md names; empty of any other.
[[nodiscard]] std::optional<trace::Unit> unit_of_reported(trace::NameHash what) noexcept;

[[nodiscard]] std::string_view unit_text(trace::Unit unit) noexcept;

/// What follows from the events so far. Pools are left to the rule accounting.
class ReportedNumbers {
 public:
  struct Number {
    std::string_view what;
    std::uint64_t value = 0;
    bool is_least = false;  ///< more may be reported
  };

  ReportedNumbers() : reserved_(std::size_t{trace::kNoStore} + 1) {}

  void add(const trace::Allocation& taken, StoreIndex store);
  void remove(const trace::Free& freed, StoreIndex store);
  /// What the number is to be; empty where nobody knows. The longest sequence that the store says it is for is kept,
  /// for what it reports of a uniform cache later.
  [[nodiscard]] std::optional<Number> take(const trace::Reported& reported, StoreIndex store, const Model& model);

 private:
  [[nodiscard]] std::optional<Number> uniform(const trace::Reported& reported, const StoreModel& store,
                                              StoreIndex index);

  std::vector<std::uint64_t> reserved_;               ///< by store: bytes of declared storages
  std::map<StoreIndex, std::uint64_t> uniform_rows_;  ///< by store, as reported
};

}  // namespace kvwitness::verify
