/// All steps of a case, repeated ones included.
#pragma once

#include "kvwitness/scenarios/script.hpp"

#include <cstdint>
#include <span>

namespace kvwitness::scenarios {

/// Calls f(step, times) for each step; `times` is how often it runs.
template <class F>
void for_each_step(std::span<const Step> steps, F&& f, std::uint64_t times = 1) {
  for (const Step& step : steps) {
    f(step, times);
    for_each_step(std::span<const Step>(step.body), f, times * step.count);
  }
}

}  // namespace kvwitness::scenarios
