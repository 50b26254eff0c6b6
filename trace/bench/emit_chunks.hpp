/// Timing of emitters in chunks: what they hand out between two of them is somebody else's cost.
#pragma once

#include "cpu_time.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>

namespace kvwitness::trace::bench {

inline constexpr std::uint32_t kChunk = 4096;  ///< events between two hand-outs, which are not timed

/// CPU seconds of the fastest of `chunks`, each of which calls work(i) for i below kChunk; `between` runs after each
/// and is not timed.
template <class Work, class Between>
double fastest_chunk_s(int chunks, Work&& work, Between&& between) {
  double least = 1e30;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const double start = cpu_s();
    for (std::uint32_t i = 0; i < kChunk; ++i) work(i);
    benchmark::ClobberMemory();
    least = std::min(least, cpu_s() - start);
    between();
  }
  return least;
}

}  // namespace kvwitness::trace::bench
