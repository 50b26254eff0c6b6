/// Which events of a trace are looked at.
#pragma once

#include "kvwitness/reports/inspect.hpp"
#include "kvwitness/trace/claims.hpp"

namespace kvwitness::reports {

/// Follows the steps of a run and tells of each event, in order, whether it was asked for.
class FilterState {
 public:
  FilterState(const EventFilter& filter, const trace::Claims& claims);

  /// Call once for each event.
  [[nodiscard]] bool wants(const trace::Event& event);
  /// Step of the script that the last event stood in; verify::kNoStep outside of one.
  [[nodiscard]] std::uint32_t step() const noexcept { return step_; }

 private:
  [[nodiscard]] bool subject_wanted(const trace::Event& event) const noexcept;

  EventFilter filter_;
  std::optional<trace::StoreIndex> store_;
  std::uint32_t step_;
};

/// True where the event names the position, or a range that holds it.
[[nodiscard]] bool names_position(const trace::Event& event, trace::Position position) noexcept;

}  // namespace kvwitness::reports
