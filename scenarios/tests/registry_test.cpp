#include "kvwitness/scenarios/registry.hpp"

#include "kvwitness/trace/error.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace kvwitness;
using namespace kvwitness::scenarios;

BOOST_AUTO_TEST_SUITE(registry)

BOOST_AUTO_TEST_CASE(a_kind_that_no_store_can_be_is_refused_with_a_word) {
  StoreRegistry registry;
  StoreKind kind;
  kind.name = "both";
  kind.capabilities = static_cast<std::uint64_t>(trace::Capability::renumbers);
  BOOST_CHECK_EXCEPTION(registry.add(kind), trace::Error, [](const trace::Error& error) {
    return std::string(error.what()).find("'both': its capabilities contradict each other: renumbers needs") !=
           std::string::npos;
  });
  kind.capabilities |= static_cast<std::uint64_t>(trace::Capability::middle_evict);
  registry.add(kind);
  BOOST_TEST(registry.find("both") != nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
