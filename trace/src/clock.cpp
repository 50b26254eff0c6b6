#include "kvwitness/trace/clock.hpp"

#include <chrono>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace kvwitness::trace {
namespace {

#if defined(__x86_64__)
constexpr bool kHasTicks = true;
std::uint64_t read_ticks() noexcept {
  return __rdtsc();
}
#else
constexpr bool kHasTicks = false;
std::uint64_t read_ticks() noexcept {
  return 0;
}
#endif

constexpr std::uint64_t kCalibrationNs = 4'000'000;
constexpr unsigned kFraction = 32;

__extension__ using Wide = unsigned __int128;

std::uint64_t read_mono() noexcept {
  const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since_start).count());
}

}  // namespace

Clock::Clock(ClockKind kind) : kind_(kind == ClockKind::tsc && !kHasTicks ? ClockKind::mono : kind) {
  if (kind_ == ClockKind::tsc) calibrate();
}

void Clock::calibrate() noexcept {
  ns_start_ = read_mono();
  ticks_start_ = read_ticks();
  std::uint64_t ns = ns_start_;
  while (ns - ns_start_ < kCalibrationNs) ns = read_mono();
  const std::uint64_t ticks = read_ticks() - ticks_start_;
  // A counter that stands still (some emulators) would divide by zero.
  if (ticks == 0) {
    kind_ = ClockKind::mono;
    return;
  }
  ns_per_tick_ = static_cast<std::uint64_t>((Wide{ns - ns_start_} << kFraction) / ticks);
}

std::uint64_t Clock::now_ns() const noexcept {
  switch (kind_) {
    case ClockKind::none: return 0;
    case ClockKind::mono: return read_mono();
    case ClockKind::tsc:
      return ns_start_ + static_cast<std::uint64_t>((Wide{read_ticks() - ticks_start_} * ns_per_tick_) >> kFraction);
  }
  return 0;
}

}  // namespace kvwitness::trace
