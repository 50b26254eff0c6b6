/// Which attention a query belongs to, and which keys it may see.
#pragma once

#include "kvwitness/verify/checker.hpp"
#include "kvwitness/verify/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvwitness::verify {

/// One call of attend.
struct AttendCall {
  SequenceId sequence = trace::kNoSequence;
  LayerIndex layer = trace::kNoLayer;
  trace::NameHash stream = 0;  ///< of the queries
  std::uint32_t ordinal = 0;   ///< of the first query
  Range queries;
  ViewId view = 0;
  Range view_range;
  Range view_sinks;  ///< handed out in front of it
  /// Through a view that the script chose and held. Any other attention has to see its whole window.
  bool is_by_choice = false;
};

/// Remembers the last attend of each store, also while its outputs are told after it.
class AttendCalls {
 public:
  void on(const trace::StepBegin& step, const Event& event) noexcept;
  void on(const trace::Called& called, const Event& event, const Moment& moment);
  /// Null where the store's last call was none.
  [[nodiscard]] const AttendCall* last(StoreIndex store) const noexcept;

 private:
  struct OfStore {
    std::optional<AttendCall> attend;
    bool gathers_held_view = false;  ///< the last call gathered one
  };
  [[nodiscard]] bool is_held(const ViewModel* view) const noexcept;

  trace::Operation step_ = trace::Operation::none;
  std::uint64_t step_number_ = 0;
  std::vector<OfStore> stores_;
};

/// Window that bounds attention in a layer: the declared one; a layer that slides without one sees what it holds.
[[nodiscard]] trace::WindowSize window_of(const trace::LayerDeclared& layer) noexcept;

/// Keys that a query sees: those of a window, and sinks in front of it. There are none where all of them adjoin.
struct VisibleKeys {
  Range sinks;
  Range window;

  [[nodiscard]] std::uint32_t count() const noexcept { return sinks.count() + window.count(); }
  [[nodiscard]] bool empty() const noexcept { return count() == 0; }
  [[nodiscard]] Position first() const noexcept { return sinks.empty() ? window.from : sinks.from; }
  /// "[3, 7)", "[0, 2), [3, 7)"
  [[nodiscard]] std::string text() const;
};

/// Rank of a position among the rows of the view that an attend went over: its sinks, then its range.
[[nodiscard]] Position rank_in_view(const AttendCall& call, Position position) noexcept;

/// Keys that `query` sees: the sinks and [window_low, query], as far as they are held (or lie in the view that the
/// script chose).
[[nodiscard]] VisibleKeys lawful_keys(const trace::LayerDeclared& layer, const LayerModel& rows, const AttendCall& call,
                                      Position query) noexcept;

}  // namespace kvwitness::verify
