/// Rows of the published table: a benchmark that is one sets `ratio`, and `goal` where there is one.
///
/// Both sides of a ratio are measured here, turn by turn in one run, so that a machine whose speed changes from one
/// second to the next changes both alike.
#pragma once

#include "cpu_time.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <vector>

namespace kvwitness::trace::bench {

/// CPU seconds that each of two pieces of work takes.
struct Pair {
  double ours = 0;
  double theirs = 0;
};

/// The least of each over `turns` turns: what disturbs a measurement only ever adds to it.
template <class Ours, class Theirs>
[[nodiscard]] Pair measure_pair(int turns, Ours&& ours, Theirs&& theirs) {
  Pair least{1e30, 1e30};
  const auto timed = [](auto&& work) {
    const double start = cpu_s();
    work();
    return cpu_s() - start;
  };
  for (int turn = 0; turn < turns; ++turn) {
    least.theirs = std::min(least.theirs, timed(theirs));
    least.ours = std::min(least.ours, timed(ours));
  }
  return least;
}

/// Sets the row: `ratio` = ours / theirs, and nanoseconds of each per item. `goal` <= 0: there is none.
inline void tell_row(benchmark::State& state, const Pair& pair, double items, double goal) {
  state.counters["ratio"] = pair.ours / pair.theirs;
  if (goal > 0) state.counters["goal"] = goal;
  state.counters["ns"] = pair.ours / items * 1e9;
  state.counters["ns_against"] = pair.theirs / items * 1e9;
}

/// Runs the pair until the benchmark has enough, and sets the row.
template <class Ours, class Theirs>
void tell_pair(benchmark::State& state, double items, double goal, Ours&& ours, Theirs&& theirs) {
  constexpr int kTurns = 5;
  Pair least{1e30, 1e30};
  for (auto _ : state) {
    const Pair pair = measure_pair(kTurns, ours, theirs);
    least = {std::min(least.ours, pair.ours), std::min(least.theirs, pair.theirs)};
  }
  tell_row(state, least, items, goal);
}

}  // namespace kvwitness::trace::bench
