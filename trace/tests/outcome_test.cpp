#include "kvwitness/trace/outcome.hpp"

#include "run_apart.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <type_traits>

namespace kvwitness::trace {
namespace {

struct Pair {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};

Refused evicted() {
  Refused refused{};
  refused.reason = RefusalCode::evicted;
  refused.asked_from = 3;
  return refused;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(outcome)

BOOST_AUTO_TEST_CASE(a_value_is_had_without_a_refusal) {
  const Outcome<Pair> outcome = Pair{1, 2};
  BOOST_TEST(outcome.ok());
  BOOST_TEST(static_cast<bool>(outcome));
  BOOST_TEST((*outcome).first == 1U);
  BOOST_TEST(outcome->second == 2U);
  BOOST_TEST((outcome.code() == RefusalCode::none));
}

BOOST_AUTO_TEST_CASE(a_refusal_is_had_without_a_value) {
  const Outcome<Pair> outcome = evicted();
  BOOST_TEST(!outcome.ok());
  BOOST_TEST((outcome.code() == RefusalCode::evicted));
  BOOST_TEST(outcome.refusal().asked_from == 3U);
}

BOOST_AUTO_TEST_CASE(taking_what_is_not_there_is_a_fault_of_ours) {
  BOOST_TEST(run_apart([] { static_cast<void>(Outcome<Pair>(evicted()).value()); }).status == 3);
  BOOST_TEST(run_apart([] { static_cast<void>(Outcome<Pair>(Pair{}).refusal()); }).status == 3);
}

BOOST_AUTO_TEST_CASE(it_crosses_a_process_boundary_as_bytes) {
  BOOST_TEST(std::is_trivially_copyable_v<Outcome<Pair>>);
  BOOST_TEST(std::is_trivially_copyable_v<Outcome<Done>>);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
