#include "kvwitness/trace/capabilities.hpp"

#include "kvwitness/trace/event.hpp"

#include <boost/test/unit_test.hpp>

#include <initializer_list>
#include <string>

using namespace kvwitness::trace;

namespace {

std::uint64_t bits(std::initializer_list<Capability> capabilities) {
  std::uint64_t result = 0;
  for (const Capability one : capabilities) result |= static_cast<std::uint64_t>(one);
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(capabilities)

BOOST_AUTO_TEST_CASE(what_contradicts_itself_is_told) {
  using enum Capability;
  BOOST_TEST(contradiction_of(0) == "");
  BOOST_TEST(contradiction_of(bits({ring, sliding, front_evict, sinks, fork, sequences, donors})) == "");
  BOOST_TEST(contradiction_of(bits({middle_evict, renumbers, truncate, donors, attend})) == "");
  BOOST_TEST(contradiction_of(bits({middle_evict, front_evict})) == "", "a gap stays");
  for (const Capability other : {front_evict, sliding, sinks})
    BOOST_TEST(exclusion_among(bits({renumbers, other})).starts_with("renumbers excludes "));
}

// A script may name one of two that belong together; a store has both.
BOOST_AUTO_TEST_CASE(what_needs_another_one_is_told_of_a_whole_store_alone) {
  using enum Capability;
  for (const Capability alone : {renumbers, fork}) {
    BOOST_TEST(exclusion_among(bits({alone})) == "");
    BOOST_TEST(contradiction_of(bits({alone})).find(" needs ") != std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()
