#include "kvwitness/trace/clock.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>

namespace kvwitness::trace {
namespace {

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(clock)

BOOST_AUTO_TEST_CASE(no_clock_reads_nothing) {
  BOOST_TEST(Clock(ClockKind::none).now_ns() == 0U);
}

BOOST_AUTO_TEST_CASE(both_clocks_count_nanoseconds_and_never_run_back) {
  for (const ClockKind kind : {ClockKind::mono, ClockKind::tsc}) {
    const Clock clock(kind);
    // Bracketed by the steady clock on both sides: what `clock` saw pass lies between the two.
    const std::int64_t outside_start = steady_ns();
    const std::uint64_t start = clock.now_ns();
    const std::int64_t inside_start = steady_ns();
    std::uint64_t last = start;
    bool runs_forward = true;
    while (steady_ns() - inside_start < 20'000'000) {
      const std::uint64_t now = clock.now_ns();
      runs_forward = runs_forward && now >= last;
      last = now;
    }
    const std::int64_t inside_end = steady_ns();
    const auto passed = static_cast<double>(clock.now_ns() - start);
    const std::int64_t outside_end = steady_ns();
    BOOST_TEST(runs_forward);
    BOOST_TEST(passed >= 0.999 * static_cast<double>(inside_end - inside_start));
    BOOST_TEST(passed <= 1.001 * static_cast<double>(outside_end - outside_start));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
