/// Which rows of a run list queries see.
#pragma once

#include "kvwitness/core/attention.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace kvwitness::core {

/// Rows of a run as indices [from, to).
struct Overlap {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

/// What a query sees: positions [low, query], and the sinks that come before.
struct Sight {
  Position low = 0;
  Position query = 0;
  std::uint32_t sinks = 0;
};

[[nodiscard]] Sight sight_of(const AttentionInput& input, Position query) noexcept;
/// Rows of a run that are seen: as sinks, then in the window.
[[nodiscard]] std::array<Overlap, 2> seen_rows(const Run& run, const Sight& sight) noexcept;
/// The keys that a kernel visits which walks the runs in their order.
[[nodiscard]] Visited seen_keys(std::span<const Run> runs, const Sight& sight) noexcept;

}  // namespace kvwitness::core
