#include "suite/workers.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

using kvwitness::reports::Answer;
using kvwitness::reports::spread;

namespace {

/// What every task told, in the order in which it was handed on.
std::vector<std::string> spread_all(std::size_t count, std::size_t jobs,
                                    const std::function<std::string(std::size_t)>& work,
                                    std::size_t stop_at = SIZE_MAX) {
  std::vector<std::string> told;
  spread(count, jobs, work, [&](std::size_t index, const Answer& answer) {
    told.push_back(std::to_string(index) + ":" + (answer.died.empty() ? answer.bytes : "died of " + answer.died));
    return index != stop_at;
  });
  return told;
}

void sleep_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(workers)

/// Early tasks take longest, so that answers come in another order than they are handed on.
BOOST_AUTO_TEST_CASE(answers_are_handed_on_in_order) {
  for (const std::size_t jobs : {1U, 2U, 5U, 40U}) {
    const auto told = spread_all(12, jobs, [](std::size_t i) {
      sleep_ms(static_cast<int>(12 - i));
      return std::to_string(i * i);
    });
    BOOST_REQUIRE(told.size() == 12U);
    for (std::size_t i = 0; i < told.size(); ++i)
      BOOST_TEST(told[i] == std::to_string(i) + ":" + std::to_string(i * i));
  }
  BOOST_TEST(spread_all(0, 3, [](std::size_t) { return std::string(); }).empty());
}

BOOST_AUTO_TEST_CASE(an_answer_may_be_empty_or_large) {
  const auto told =
      spread_all(2, 2, [](std::size_t i) { return i == 0 ? std::string() : std::string(5'000'000, 'x'); });
  BOOST_TEST(told[0] == "0:");
  BOOST_TEST((told[1] == "1:" + std::string(5'000'000, 'x')));
}

BOOST_AUTO_TEST_CASE(work_is_done_in_processes_of_its_own) {
  const pid_t here = getpid();
  for (const std::string& one : spread_all(4, 2, [&](std::size_t) { return getpid() == here ? "here" : "elsewhere"; }))
    BOOST_TEST(one.ends_with("elsewhere"), one);
}

/// The first, one in the middle, and the last; each alone and all at once.
BOOST_AUTO_TEST_CASE(a_process_that_dies_takes_only_its_task) {
  for (const std::size_t jobs : {1U, 3U}) {
    const auto told = spread_all(6, jobs, [](std::size_t i) -> std::string {
      if (i == 0) std::raise(SIGKILL);
      if (i == 2) _exit(5);
      if (i == 5) {
        std::signal(SIGSEGV, SIG_DFL);  // Boost.Test and sanitizers have handlers of their own
        std::raise(SIGSEGV);
      }
      return "done";
    });
    const std::vector<std::string> expected = {"0:died of signal 9 (Killed)",
                                               "1:done",
                                               "2:died of exit code 5",
                                               "3:done",
                                               "4:done",
                                               "5:died of signal 11 (Segmentation fault)"};
    BOOST_TEST(told == expected, boost::test_tools::per_element());
  }
}

/// What is under way is cut off: it would take a minute.
BOOST_AUTO_TEST_CASE(nothing_is_handed_on_after_a_stop) {
  const auto start = std::chrono::steady_clock::now();
  const auto told = spread_all(
      100, 4,
      [](std::size_t i) {
        if (i > 3) sleep_ms(60'000);
        return std::string("done");
      },
      2);
  BOOST_TEST(told.size() == 3U);
  BOOST_TEST((std::chrono::steady_clock::now() - start < std::chrono::seconds(30)));
}

BOOST_AUTO_TEST_CASE(an_exception_of_the_taker_ends_all) {
  BOOST_CHECK_THROW(spread(
                        9, 3, [](std::size_t) { return std::string("done"); },
                        [](std::size_t index, const Answer&) -> bool {
                          if (index == 4) throw std::runtime_error("enough");
                          return true;
                        }),
                    std::runtime_error);
}

BOOST_AUTO_TEST_SUITE_END()
