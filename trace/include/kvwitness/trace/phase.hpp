/// Phases of a run as spans: load, prefill, decode, sample, module.
#pragma once

#include "kvwitness/trace/bus.hpp"

#include <cstdint>

namespace kvwitness::trace {

/// Tells PhaseBegin when it is made and PhaseEnd when it goes, both stamped; by exception where one is on its way
/// through it. Spans are numbered from 1 in each run. `thread` is the track that the span is told on: its parent is the
/// innermost open span of the same thread, 0 where there is none. All spans are made and unmade on the emitting thread,
/// the innermost first (asserted), and within one run. Neither end allocates, throws or drains inside a region.
class PhaseSpan {
 public:
  explicit PhaseSpan(Bus& bus, PhaseKind kind, NameHash name = 0, std::uint32_t thread = 0) noexcept;
  ~PhaseSpan();
  PhaseSpan(const PhaseSpan&) = delete;
  PhaseSpan& operator=(const PhaseSpan&) = delete;

  /// 0 where nobody listened when it was made; its end is not told then.
  [[nodiscard]] std::uint32_t span() const noexcept { return span_; }

 private:
  [[nodiscard]] std::uint32_t parent() const noexcept;

  Bus* bus_;
  PhaseSpan* outer_;  ///< of any thread
  std::uint64_t start_ns_;
  PhaseKind kind_;
  std::uint32_t thread_;
  std::uint32_t span_ = 0;
  int exceptions_;  ///< on their way when it was made
};

}  // namespace kvwitness::trace
