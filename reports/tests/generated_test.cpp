/// Seeded random scripts: no correct store may be blamed. A failing seed is printed; it makes the same script again.

#include "kvwitness/reports/suite.hpp"
#include "kvwitness/scenarios/generator.hpp"

#include <boost/test/unit_test.hpp>

using namespace kvwitness;

namespace {

constexpr std::uint64_t kSeeds = 1000;

/// Whatever a random script may fail to meet, no rule may blame the store for it.
bool blamed(const reports::CaseResult& result) {
  return std::ranges::any_of(result.verdict.rules,
                             [](const verify::RuleVerdict& rule) { return rule.status == verify::Status::fail; });
}

void run_seeds(const std::string& store, bool with_refusals) {
  const scenarios::StoreRegistry registry = scenarios::product_stores();
  scenarios::GeneratorOptions options;
  options.capabilities = registry.find(store)->capabilities;
  options.with_refusals = with_refusals;
  std::uint64_t met = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const reports::CaseResult result = reports::run_case(scenarios::random_case(seed, options), store, registry, {});
    BOOST_TEST(!blamed(result), store << " is blamed with seed " << seed << (with_refusals ? " and refusals" : "")
                                      << ":\n"
                                      << scenarios::random_script(seed, options));
    for (const verify::RuleVerdict& rule : result.verdict.rules) met += rule.met;
  }
  BOOST_TEST(met > 100 * kSeeds);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(generated)

BOOST_AUTO_TEST_CASE(ring_legal) {
  run_seeds("ring", false);
}
BOOST_AUTO_TEST_CASE(ring_with_refusals) {
  run_seeds("ring", true);
}
BOOST_AUTO_TEST_CASE(flat_legal) {
  run_seeds("flat", false);
}
BOOST_AUTO_TEST_CASE(flat_with_refusals) {
  run_seeds("flat", true);
}
BOOST_AUTO_TEST_CASE(compact_legal) {
  run_seeds("compact", false);
}
BOOST_AUTO_TEST_CASE(compact_with_refusals) {
  run_seeds("compact", true);
}

BOOST_AUTO_TEST_CASE(layered_legal) {
  run_seeds("layered", false);
}
BOOST_AUTO_TEST_CASE(layered_with_refusals) {
  run_seeds("layered", true);
}

BOOST_AUTO_TEST_CASE(sink_ring_legal) {
  run_seeds("sink-ring", false);
}
BOOST_AUTO_TEST_CASE(sink_ring_with_refusals) {
  run_seeds("sink-ring", true);
}

BOOST_AUTO_TEST_CASE(quantised_legal) {
  run_seeds("quantised", false);
}
BOOST_AUTO_TEST_CASE(quantised_with_refusals) {
  run_seeds("quantised", true);
}

BOOST_AUTO_TEST_CASE(paged_legal) {
  run_seeds("paged", false);
}
BOOST_AUTO_TEST_CASE(paged_with_refusals) {
  run_seeds("paged", true);
}

BOOST_AUTO_TEST_SUITE_END()
