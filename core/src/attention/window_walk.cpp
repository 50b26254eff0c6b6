#include "attention/window_walk.hpp"

#include <algorithm>

namespace kvwitness::core {
namespace {

/// Rows of `run` that lie in [low, high].
Overlap overlap(const Run& run, Position low, Position high) noexcept {
  const std::uint64_t end = std::min(std::uint64_t{run.first} + run.count, std::uint64_t{high} + 1);
  const std::uint64_t from = std::max<std::uint64_t>(run.first, low);
  if (from >= end) return {};
  return {static_cast<std::uint32_t>(from - run.first), static_cast<std::uint32_t>(end - run.first)};
}

}  // namespace

Sight sight_of(const AttentionInput& input, Position query) noexcept {
  return {trace::window_low(input.window, query), query, input.sinks};
}

std::array<Overlap, 2> seen_rows(const Run& run, const Sight& sight) noexcept {
  if (sight.sinks == 0) return {Overlap{}, overlap(run, sight.low, sight.query)};
  return {overlap(run, 0, std::min(sight.query, sight.sinks - 1)),
          overlap(run, std::max(sight.low, sight.sinks), sight.query)};
}

Visited seen_keys(std::span<const Run> runs, const Sight& sight) noexcept {
  Visited visited;
  for (const Run& run : runs)
    for (const Overlap rows : seen_rows(run, sight)) visited.add(run.first + rows.from, run.first + rows.to);
  return visited;
}

void Visited::add(Position first, Position end) noexcept {
  if (first >= end) return;
  if (visited == 0)
    first_key = first;
  else if (first > last_key + 1 && gap.empty())
    gap = {last_key + 1, first};
  last_key = end - 1;
  visited += end - first;
  rows_read = visited;
}

}  // namespace kvwitness::core
