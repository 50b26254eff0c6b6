/// A step of decoding in a measured region.
#pragma once

#include "kvwitness/trace/probe.hpp"
#include "stage/stage.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace kvwitness::scenarios {

[[nodiscard]] constexpr trace::StepOutcome outcome_of(trace::RefusalCode code) noexcept {
  return code == trace::RefusalCode::none ? trace::StepOutcome::done : trace::StepOutcome::refused;
}

/// Runs `body()`, which returns a RefusalCode, and ends the step. Where the `events` that it tells at most fit into the
/// bus's buffer, it runs in a measured region, told as RegionMeasured with operation decode. Not so of a store in
/// another process: what this one allocates meanwhile is not the store's.
template <class F>
trace::RefusalCode measured_decode(Stage& stage, const StepSpan& span, std::size_t events, F&& body) {
  trace::Bus& bus = stage.bus();
  if (events > bus.capacity() || stage.is_outside(span.subject.store)) {
    const trace::RefusalCode code = body();
    stage.end_step(span, outcome_of(code));
    return code;
  }
  bus.reserve(events);
  const std::uint64_t faults = bus.active() ? trace::thread_minor_faults() : 0;
  bus.enter_region();
  const trace::ProbeRegion region;
  const trace::RefusalCode code = body();
  const trace::ProbeReading seen = region.seen();
  const bool alone = region.foreign_allocations() == 0;
  trace::RegionMeasured told{};
  told.allocations = seen.allocations;
  told.bytes = seen.bytes;
  told.operation = trace::Operation::decode;
  // What other threads took may have been for this token: then nobody has seen what it took.
  told.evidence = alone ? stage.evidence() : trace::Evidence::unmeasured;
  told.outcome = code;
  const std::uint64_t more = bus.active() ? trace::thread_minor_faults() - faults : 0;
  told.faults = static_cast<std::uint32_t>(std::min<std::uint64_t>(more, std::numeric_limits<std::uint32_t>::max()));
  bus.emit(span.subject, told);
  bus.leave_region();
  stage.end_step(span, outcome_of(code));
  return code;
}

}  // namespace kvwitness::scenarios
