/// The clock of a run.
#pragma once

#include "kvwitness/trace/event.hpp"

#include <cstdint>

namespace kvwitness::trace {

/// Reads time in nanoseconds, from an arbitrary start. `tsc` is the processor's time-stamp counter, scaled by a
/// measurement of some milliseconds at construction: less than half the price of `mono`, and off by up to some 0.01% of
/// the time since then. Where the processor has none it becomes `mono`. `none` always reads 0.
class Clock {
 public:
  explicit Clock(ClockKind kind);

  [[nodiscard]] ClockKind kind() const noexcept { return kind_; }
  [[nodiscard]] std::uint64_t now_ns() const noexcept;

 private:
  void calibrate() noexcept;

  ClockKind kind_;
  std::uint64_t ticks_start_ = 0;
  std::uint64_t ns_start_ = 0;
  std::uint64_t ns_per_tick_ = 0;  ///< times 2^32
};

}  // namespace kvwitness::trace
