#include "kvwitness/reports/suite.hpp"

#include "kvwitness/core/ring_store.hpp"
#include "kvwitness/reports/matrix.hpp"
#include "kvwitness/trace/error.hpp"

#include "saved_trace.hpp"

#include <boost/test/unit_test.hpp>

using namespace kvwitness;
using reports::testing::kRingScript;
using reports::testing::Scratch;

namespace {

/// Rings whose answers depend on how often a store was built: every second one holds a slot more, or tells as many
/// events of another content.
scenarios::StoreRegistry moody_stores() {
  scenarios::StoreRegistry registry;
  registry.add(
      {"moody", "every second one is larger", core::ring_capabilities(), [built = 0](core::StoreConfig config) mutable {
         if (built++ % 2 == 1) config.layers[0].capacity += 1;
         return scenarios::Subject{core::make_ring_store(config), std::make_unique<core::AttentionPath>()};
       }});
  registry.add({"wavering", "every second one caps scores", core::ring_capabilities(),
                [built = 0](core::StoreConfig config) mutable {
                  if (built++ % 2 == 1) config.softcap = 1;
                  return scenarios::Subject{core::make_ring_store(config), std::make_unique<core::AttentionPath>()};
                }});
  return registry;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(suite)

BOOST_AUTO_TEST_CASE(a_store_that_is_wrong_fails_with_a_replay) {
  const Scratch scratch;
  const auto file = scratch.write("ring.jsonc", std::string(kRingScript));
  reports::SuiteOptions options;
  options.stores = {"ring", "mutant:ring-physical-order"};
  const reports::SuiteResult result =
      reports::run_suite({file}, scenarios::with_mutants(scenarios::product_stores()), options);
  BOOST_REQUIRE(result.cases.size() == 2);
  BOOST_TEST(to_text(result.cases[0].verdict.status) == "pass");
  BOOST_TEST(to_text(result.cases[1].verdict.status) == "fail");
  BOOST_TEST(reports::exit_code(result) == 1);
  BOOST_TEST(result.cases[1].claims.replay.find("--store mutant:ring-physical-order") != std::string::npos);
  BOOST_TEST(result.cases[1].claims.replay.find(file.string()) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(two_runs_that_differ_are_told) {
  const scenarios::Script script = scenarios::parse_script(kRingScript, "test.jsonc", {});
  reports::SuiteOptions options;
  options.repeat = 2;
  BOOST_TEST(reports::run_case(script.cases[0], "moody", moody_stores(), options).nondeterministic);
  BOOST_TEST(reports::run_case(script.cases[0], "wavering", moody_stores(), options).nondeterministic);
  BOOST_TEST(!reports::run_case(script.cases[0], "ring", scenarios::product_stores(), options).nondeterministic);
}

/// The clock changes neither digest nor verdict.
BOOST_AUTO_TEST_CASE(time_enters_no_digest) {
  const scenarios::Script script = scenarios::parse_script(kRingScript, "test.jsonc", {});
  reports::SuiteOptions clocked;
  clocked.clock = trace::ClockKind::mono;
  const auto with = reports::run_case(script.cases[0], "ring", scenarios::product_stores(), clocked);
  const auto without = reports::run_case(script.cases[0], "ring", scenarios::product_stores(), {});
  BOOST_TEST(with.verdict.events == without.verdict.events);
  BOOST_TEST(to_text(with.verdict.status) == to_text(without.verdict.status));
}

BOOST_AUTO_TEST_CASE(an_unknown_store_is_an_error_with_the_nearest) {
  const Scratch scratch;
  const auto file = scratch.write("ring.jsonc", std::string(kRingScript));
  reports::SuiteOptions options;
  options.stores = {"rimg"};
  try {
    static_cast<void>(reports::run_suite({file}, scenarios::product_stores(), options));
    BOOST_TEST(false);
  } catch (const trace::Error& error) {
    BOOST_TEST(std::string(error.what()).find("'ring'") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(the_canary_is_blamed) {
  BOOST_TEST(reports::canary_is_blamed());
}

BOOST_AUTO_TEST_SUITE_END()
