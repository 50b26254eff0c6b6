#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

using namespace kvwitness;
using namespace kvwitness::verify;
using verify::testing::TraceBuilder;

namespace {

constexpr const char* kRule = "zero-alloc-per-token";

/// Three tokens of prefill, then decode; a decode step has 3 calls and the token's own region.
struct Decoded : TraceBuilder {
  explicit Decoded(std::uint32_t after_token = 0) {
    claims.budgets.allocations_per_token = 0;
    claims.budgets.after_token = after_token;
    store = ring({.capacity = 8, .window = 4});
    prefill(store, 0, 3);
    decode(store, 0, 4);
  }
  void decode_region(std::size_t nth, std::uint64_t allocations) {
    // One region of the prefill's append, then append, window, attend, decode of each token.
    edit<trace::RegionMeasured>(1 + nth * 4 + 3,
                                [&](trace::RegionMeasured& region) { region.allocations = allocations; });
  }
  trace::StoreIndex store = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(zero_alloc_per_token)

BOOST_AUTO_TEST_CASE(steps_without_allocations_pass) {
  const RuleVerdict verdict = Decoded().verdict_of(kRule);
  BOOST_CHECK(verdict.status == Status::pass);
  BOOST_CHECK_EQUAL(verdict.met, 4U);
}

BOOST_AUTO_TEST_CASE(one_observed_allocation_in_one_step_fails_that_step) {
  Decoded trace;
  trace.decode_region(2, 1);
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_CHECK(verdict.status == Status::fail);
  BOOST_REQUIRE_EQUAL(verdict.violations, 1U);
  BOOST_CHECK_EQUAL(verdict.shown[0].token, 2U);
  BOOST_CHECK(trace.failing() == std::vector<std::string>{kRule});
}

BOOST_AUTO_TEST_CASE(an_allocation_of_a_call_cannot_be_hidden_in_its_token) {
  Decoded trace;
  trace.edit<trace::RegionMeasured>(1 + 2 * 4, [](trace::RegionMeasured& region) { region.allocations = 1; });
  BOOST_CHECK((trace.failing() == std::vector<std::string>{"trace-truth", kRule}));
  Decoded unmeasured = trace;
  unmeasured.edit<trace::RegionMeasured>(
      1 + 2 * 4 + 3, [](trace::RegionMeasured& region) { region.evidence = trace::Evidence::unmeasured; });
  BOOST_CHECK(unmeasured.failing() == std::vector<std::string>{kRule});
  trace.decode_region(2, 1);
  BOOST_CHECK(trace.failing() == std::vector<std::string>{kRule});
}

BOOST_AUTO_TEST_CASE(a_declared_allocation_fails_though_the_probe_saw_none) {
  Decoded trace;
  trace::Allocation taken{};
  taken.storage = 1000;
  taken.bytes = 64;
  taken.count = 1;
  taken.evidence = trace::Evidence::declared;
  const std::size_t at = trace.index_of(trace::EventType::Append, 3);
  trace.insert(at, {trace.store, 0, 0}, taken);
  BOOST_CHECK(trace.status_of(kRule) == Status::fail);
}

BOOST_AUTO_TEST_CASE(an_arena_is_no_heap) {
  TraceBuilder trace;
  trace.claims.budgets.allocations_per_token = 0;
  const auto store = trace.ring({.capacity = 4, .window = 4});
  trace.decode(store, 0, 6, {}, true);
  BOOST_CHECK(trace.status_of(kRule) == Status::pass);
}

BOOST_AUTO_TEST_CASE(tokens_before_after_token_do_not_count) {
  // Position 4 is the second decoded token.
  Decoded before(5);
  before.decode_region(1, 3);
  BOOST_CHECK(before.status_of(kRule) == Status::pass);
  BOOST_CHECK_EQUAL(before.verdict_of(kRule).met, 2U);
  Decoded after(4);
  after.decode_region(1, 3);
  BOOST_CHECK(after.status_of(kRule) == Status::fail);
}

BOOST_AUTO_TEST_CASE(without_a_region_of_the_token_its_calls_are_summed) {
  Decoded trace;
  trace.claims.budgets.allocations_per_token = 1;
  const auto remove_region = [&](std::size_t nth) {
    trace.events.erase(trace.events.begin() +
                       static_cast<std::ptrdiff_t>(trace.index_of(trace::EventType::RegionMeasured, 1 + nth * 4 + 3)));
  };
  for (const std::size_t call : {0U, 1U})
    trace.edit<trace::RegionMeasured>(1 + call, [](trace::RegionMeasured& region) { region.allocations = 1; });
  remove_region(0);
  BOOST_CHECK(trace.status_of(kRule) == Status::fail);
}

BOOST_AUTO_TEST_CASE(a_budget_of_one_admits_one_a_step_and_no_average) {
  Decoded trace;
  trace.claims.budgets.allocations_per_token = 1;
  trace.decode_region(0, 1);
  trace.decode_region(3, 1);
  BOOST_CHECK(trace.status_of(kRule) == Status::pass);
  trace.decode_region(3, 2);
  BOOST_CHECK(trace.status_of(kRule) == Status::fail);
}

BOOST_AUTO_TEST_CASE(an_unmeasured_step_is_inconclusive_with_a_note) {
  Decoded trace;
  trace.edit<trace::RegionMeasured>(
      4, [](trace::RegionMeasured& region) { region.evidence = trace::Evidence::unmeasured; });
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_CHECK(verdict.status == Status::inconclusive);
  BOOST_CHECK_EQUAL(verdict.note, "1 of 4 decode steps were not measured by a probe");
}

BOOST_AUTO_TEST_CASE(no_decode_step_is_vacuous) {
  BOOST_CHECK(Decoded(100).status_of(kRule) == Status::vacuous);
}

BOOST_AUTO_TEST_CASE(it_is_judged_only_where_it_is_asked_for) {
  Decoded trace;
  trace.claims.budgets = {};
  trace.decode_region(0, 1);
  BOOST_CHECK(trace.failing().empty());
  trace.claims.rules.emplace_back().rule = kRule;
  BOOST_CHECK(trace.failing() == std::vector<std::string>{kRule});
}

BOOST_AUTO_TEST_SUITE_END()
