/// CPU time, which other work on the machine does not stretch.
#pragma once

#include <ctime>

namespace kvwitness::trace::bench {

/// Seconds of CPU that this process has used.
[[nodiscard]] inline double cpu_s() noexcept {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace kvwitness::trace::bench
