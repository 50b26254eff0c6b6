#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

using namespace kvwitness;
using namespace kvwitness::verify;
using verify::testing::TraceBuilder;

namespace {

constexpr const char* kRule = "bounded-memory";

struct Wrapped : TraceBuilder {
  Wrapped() {
    store = ring({.capacity = 4, .window = 4});
    decode(store, 0, 6);
  }
  trace::Allocation storage(std::uint64_t id, std::uint64_t bytes) const {
    trace::Allocation taken{};
    taken.storage = id;
    taken.bytes = bytes;
    taken.count = 1;
    taken.scope = trace::ScopeKind::model;
    taken.origin = trace::Origin::store;
    taken.evidence = trace::Evidence::declared;
    return taken;
  }
  trace::StoreIndex store = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(bounded_memory)

BOOST_AUTO_TEST_CASE(a_wrapped_ring_within_its_capacity_passes) {
  BOOST_CHECK(Wrapped().status_of(kRule) == Status::pass);
}

BOOST_AUTO_TEST_CASE(an_eviction_that_never_runs_fails_at_the_first_position_too_many) {
  Wrapped trace;
  for (std::size_t i = 4; i < 6; ++i) trace.edit<trace::Append>(i, [](trace::Append& append) { append.held_from = 0; });
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_REQUIRE_EQUAL(verdict.violations, 2U);
  BOOST_CHECK_EQUAL(verdict.shown[0].token, 4U);
  BOOST_CHECK_EQUAL(verdict.shown[0].observed, "5: [0, 5)");
}

BOOST_AUTO_TEST_CASE(a_state_wider_than_the_capacity_fails) {
  Wrapped trace;
  trace.end();
  trace.edit<trace::StateDigest>(0, [](trace::StateDigest& state) { state.from = 1; });
  BOOST_CHECK(trace.status_of(kRule) == Status::fail);
}

BOOST_AUTO_TEST_CASE(storage_that_grows_in_use_fails) {
  Wrapped trace;
  trace.insert(trace.index_of(trace::EventType::StepBegin, 3), {trace.store, trace::kNoSequence, 0},
               trace.storage(77, 16));
  BOOST_CHECK(trace.status_of(kRule) == Status::fail);
  Wrapped before_use;
  before_use.insert(before_use.index_of(trace::EventType::StepBegin, 0), {before_use.store, trace::kNoSequence, 0},
                    before_use.storage(77, 16));
  BOOST_CHECK(before_use.status_of(kRule) == Status::pass);
}

BOOST_AUTO_TEST_CASE(budgets_bound_bytes_and_positions) {
  Wrapped trace;
  trace.claims.budgets.live_bytes_max = 2 * 2 * 4 * 16;  // planes, sequences, slots, bytes
  trace.claims.budgets.resident_positions_max = 4;
  BOOST_CHECK(trace.status_of(kRule) == Status::pass);
  trace.claims.budgets.live_bytes_max = 2 * 2 * 4 * 16 - 1;
  BOOST_CHECK_EQUAL(trace.verdict_of(kRule).violations, 1U);
  trace.claims.budgets.live_bytes_max.reset();
  trace.claims.budgets.resident_positions_max = 3;
  BOOST_CHECK(trace.status_of(kRule) == Status::fail);
}

BOOST_AUTO_TEST_CASE(more_used_than_was_declared_fails) {
  Wrapped trace;
  trace.end();
  trace.edit<trace::Reported>(1, [](trace::Reported& used) { used.value = 2 * 2 * 4 * 16 + 1; });
  BOOST_CHECK(trace.status_of(kRule) == Status::fail);
}

namespace {

/// The first region of an operation saw an allocation of 24 bytes.
void see_allocation(TraceBuilder& trace, trace::Operation operation, trace::Evidence evidence) {
  for (std::size_t nth = 0;; ++nth) {
    if (trace.payload<trace::RegionMeasured>(nth).operation != operation) continue;
    return trace.edit<trace::RegionMeasured>(nth, [&](trace::RegionMeasured& region) {
      region.evidence = evidence;
      region.allocations = 1;
      region.bytes = 24;
    });
  }
}

/// The rule's verdict where nobody asked for it, as "status: note".
std::string told_unasked(const TraceBuilder& trace) {
  for (const RuleVerdict& rule : trace.verdict().rules)
    if (rule.rule == kRule) return std::string(to_text(rule.status)) + ": " + rule.note;
  return "none";
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_a_call_allocates_and_declares_nowhere_may_be_kept) {
  const std::string note = "1 calls allocated 24 bytes and declared nothing; whether they keep them nobody saw";
  Wrapped trace;
  BOOST_TEST(told_unasked(trace) == "pass: ");
  see_allocation(trace, trace::Operation::append, trace::Evidence::observed);
  BOOST_TEST(told_unasked(trace) == "pass: " + note);
  const RuleVerdict asked = trace.verdict_of(kRule);
  BOOST_CHECK(asked.status == Status::inconclusive);
  BOOST_TEST(asked.note == note);
  trace.claims.budgets.live_bytes_max = 1U << 20U;
  BOOST_TEST(told_unasked(trace) == "inconclusive: " + note);
}

BOOST_AUTO_TEST_CASE(what_is_declared_or_no_store_s_is_no_undeclared_memory) {
  Wrapped declared;
  see_allocation(declared, trace::Operation::append, trace::Evidence::observed);
  trace::Allocation taken = declared.storage(78, 24);
  taken.origin = trace::Origin::heap;
  taken.scope = trace::ScopeKind::ambient;
  declared.insert(declared.index_of(trace::EventType::Append, 0), {declared.store, 0, 0}, taken);
  BOOST_CHECK(declared.status_of(kRule) == Status::pass);
  Wrapped unmeasured;
  see_allocation(unmeasured, trace::Operation::append, trace::Evidence::unmeasured);
  BOOST_CHECK(unmeasured.status_of(kRule) == Status::pass);
  Wrapped kernel;
  see_allocation(kernel, trace::Operation::attend, trace::Evidence::observed);
  BOOST_CHECK(kernel.status_of(kRule) == Status::pass);
  kernel.edit<trace::StoreCreated>(0, [](trace::StoreCreated& created) {
    created.capabilities |= static_cast<std::uint64_t>(trace::Capability::attend);
  });
  BOOST_CHECK(kernel.status_of(kRule) == Status::inconclusive);
}

BOOST_AUTO_TEST_CASE(without_rows_it_is_vacuous) {
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 4});
  BOOST_CHECK(trace.status_of(kRule) == Status::vacuous);
}

BOOST_AUTO_TEST_SUITE_END()
