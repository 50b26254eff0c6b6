#include "kvwitness/trace/assert.hpp"

#include "run_apart.hpp"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <string>

namespace kvwitness::trace {
namespace {

void say(const char* text, std::size_t bytes) noexcept {
  if (write(STDERR_FILENO, text, bytes) < 0) _exit(99);
}

void tell_hook() noexcept {
  say("[hook]", 6);
}
void failing_hook() noexcept {
  say("[hook]", 6);
  KVW_ASSERT(1 == 2);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(assertion)

BOOST_AUTO_TEST_CASE(one_that_holds_does_nothing) {
  int evaluated = 0;
  KVW_ASSERT(++evaluated == 1);
  BOOST_TEST(evaluated == 1);
}

BOOST_AUTO_TEST_CASE(one_that_fails_names_itself_and_exits_with_3) {
  const Ended ended = run_apart([] { KVW_ASSERT(2 + 2 == 5); });
  BOOST_TEST(ended.status == 3);
  BOOST_TEST(ended.printed.find("assert_test.cpp:") != std::string::npos);
  BOOST_TEST(ended.printed.find("'2 + 2 == 5'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_hook_runs_after_the_message) {
  const Ended ended = run_apart([] {
    set_assert_hook(tell_hook);
    KVW_ASSERT(false);
  });
  BOOST_TEST(ended.status == 3);
  BOOST_TEST(ended.printed.ends_with("[hook]"));
}

BOOST_AUTO_TEST_CASE(a_hook_that_fails_itself_is_not_entered_again) {
  const Ended ended = run_apart([] {
    set_assert_hook(failing_hook);
    KVW_ASSERT(false);
  });
  BOOST_TEST(ended.status == 3);
  BOOST_TEST(ended.printed.find("[hook]") == ended.printed.rfind("[hook]"));
}

BOOST_AUTO_TEST_CASE(setting_a_hook_returns_the_one_before) {
  const AssertHook before = set_assert_hook(tell_hook);
  BOOST_TEST((set_assert_hook(before) == tell_hook));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
