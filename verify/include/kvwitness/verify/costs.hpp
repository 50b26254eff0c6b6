/// What decode steps cost, as the events tell it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kvwitness::verify {

/// Of the decode steps of one store from budgets.after_token on, the costliest: each step counts by itself, so that an
/// allocation in one of a hundred steps does not vanish in an average.
struct Costs {
  std::uint64_t decode_steps = 0;
  std::uint64_t unmeasured_steps = 0;  ///< of those, steps whose heap no probe watched; allocations are then unknown
  std::uint64_t allocations_per_token = 0;  ///< on the heap, observed or declared, whichever is more
  std::uint64_t adapters_per_token = 0;
  std::uint64_t copied_bytes_per_token = 0;

  /// Of both together.
  void add(const Costs& other) noexcept {
    decode_steps += other.decode_steps;
    unmeasured_steps += other.unmeasured_steps;
    allocations_per_token = std::max(allocations_per_token, other.allocations_per_token);
    adapters_per_token = std::max(adapters_per_token, other.adapters_per_token);
    copied_bytes_per_token = std::max(copied_bytes_per_token, other.copied_bytes_per_token);
  }

  friend bool operator==(const Costs&, const Costs&) noexcept = default;
};

}  // namespace kvwitness::verify
