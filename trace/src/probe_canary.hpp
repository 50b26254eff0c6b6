/// The canary: known calls of every kind, to see whether the probe sees them all.
#pragma once

#include "kvwitness/trace/probe.hpp"

#include <array>
#include <span>
#include <string_view>

namespace kvwitness::trace {

/// One call of a known kind: what it did, and what the probe counted meanwhile.
struct CanaryCall {
  std::string_view name;
  ProbeReading expected;
  ProbeReading seen;
};

inline constexpr std::size_t kCanaryCalls = 9;

/// Makes one call of every kind on this thread, and of `malloc` on a thread of its own.
[[nodiscard]] std::array<CanaryCall, kCanaryCalls> release_canary();

/// Name of the first call that was not counted exactly; empty where all were.
[[nodiscard]] std::string_view first_miscounted(std::span<const CanaryCall> calls) noexcept;

}  // namespace kvwitness::trace
