#include "id_set.hpp"
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <random>
#include <set>

using namespace kvwitness;
using namespace kvwitness::verify;
using verify::testing::TraceBuilder;

namespace {

constexpr const char* kRule = "ledger-balance";

struct Gathered : TraceBuilder {
  Gathered() {
    store = ring({.capacity = 4, .window = 4});
    decode(store, 0, 3, {}, true);
    end();
  }
  trace::StoreIndex store = 0;
};

const std::vector<std::string> kOnlyThis{kRule};

}  // namespace

BOOST_AUTO_TEST_SUITE(ledger_balance)

BOOST_AUTO_TEST_CASE(storages_and_arenas_that_are_given_back_pass) {
  BOOST_CHECK(Gathered().status_of(kRule) == Status::pass);
}

BOOST_AUTO_TEST_CASE(a_missing_free_is_a_leak_told_of_its_allocation) {
  Gathered trace;
  trace.erase<trace::Free>(1);
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_REQUIRE_EQUAL(verdict.violations, 1U);
  BOOST_CHECK_EQUAL(verdict.shown[0].event, trace.index_of(trace::EventType::Allocation, 1));
  BOOST_CHECK(trace.failing() == kOnlyThis);
}

BOOST_AUTO_TEST_CASE(a_torn_trace_is_not_blamed_for_its_lost_frees) {
  const Gathered trace;
  std::vector<trace::Event> events = trace.sealed();
  events.resize(trace.index_of(trace::EventType::Free, 0));
  Judge judge(trace.claims, {kOnlyThis});
  judge.on_batch(events);
  BOOST_CHECK(judge.finish().rules.at(0).status == Status::inconclusive);
}

BOOST_AUTO_TEST_CASE(double_frees_and_double_allocations_fail) {
  Gathered twice_freed;
  twice_freed.insert(twice_freed.events.size(), {twice_freed.store, trace::kNoSequence, 0},
                     twice_freed.payload<trace::Free>(0));
  BOOST_CHECK(twice_freed.failing() == kOnlyThis);
  BOOST_CHECK_EQUAL(twice_freed.verdict_of(kRule).shown.at(0).observed, "storage 1 freed twice");
  Gathered twice_taken;
  twice_taken.edit<trace::Allocation>(1, [](trace::Allocation& taken) { taken.storage = 1; });
  BOOST_CHECK(twice_taken.status_of(kRule) == Status::fail);
  Gathered never_taken;
  never_taken.edit<trace::Free>(0, [](trace::Free& freed) { freed.storage = 99; });
  BOOST_CHECK(never_taken.status_of(kRule) == Status::fail);
}

BOOST_AUTO_TEST_CASE(an_id_is_used_once_in_a_run) {
  Gathered trace;
  // The second token's first block takes the id of the first token's, which its scope gave back.
  trace.edit<trace::Allocation>(4, [&](trace::Allocation& taken) { taken.storage = 3; });
  BOOST_CHECK(trace.failing() == kOnlyThis);
}

BOOST_AUTO_TEST_CASE(a_free_of_other_bytes_or_scope_fails) {
  Gathered bytes;
  bytes.edit<trace::Free>(0, [](trace::Free& freed) { freed.bytes -= 1; });
  BOOST_CHECK(bytes.failing() == kOnlyThis);
  Gathered scope;
  scope.edit<trace::Free>(0, [](trace::Free& freed) { freed.scope = trace::ScopeKind::forward; });
  BOOST_CHECK(scope.failing() == kOnlyThis);
}

BOOST_AUTO_TEST_CASE(a_free_for_another_layer_store_or_count_fails) {
  Gathered count;
  count.edit<trace::Free>(0, [](trace::Free& freed) { freed.count += 1; });
  BOOST_CHECK(count.failing() == kOnlyThis);
  Gathered origin;
  origin.edit<trace::Free>(0, [](trace::Free& freed) { freed.origin = trace::Origin::mapped; });
  BOOST_CHECK(origin.failing() == kOnlyThis);
  Gathered layer;
  layer.events[layer.index_of(trace::EventType::Free, 0)].layer += 1;
  BOOST_CHECK(layer.status_of(kRule) == Status::fail);
  Gathered store;
  store.events[store.index_of(trace::EventType::Free, 0)].store += 1;
  BOOST_CHECK(store.status_of(kRule) == Status::fail);
}

BOOST_AUTO_TEST_CASE(a_reset_frees_exactly_what_lives_in_its_scope) {
  for (const int field : {0, 1, 2}) {
    Gathered trace;
    trace.edit<trace::ScopeReset>(1, [&](trace::ScopeReset& reset) {
      (field == 0 ? reset.bytes_freed : field == 1 ? reset.count : reset.live_bytes) += 1;
    });
    BOOST_CHECK(trace.failing() == kOnlyThis);
  }
  Gathered missing;
  missing.erase<trace::ScopeReset>(2);
  BOOST_CHECK(missing.status_of(kRule) == Status::fail);
  Gathered of_another_scope;
  of_another_scope.edit<trace::ScopeReset>(2, [](trace::ScopeReset& reset) { reset.scope = trace::ScopeKind::model; });
  BOOST_CHECK(of_another_scope.status_of(kRule) == Status::fail);
}

BOOST_AUTO_TEST_CASE(heap_in_a_call_need_not_be_freed_but_may_be_once) {
  Gathered trace;
  trace::Allocation taken{};
  taken.storage = 500;
  taken.bytes = 10;
  taken.count = 1;
  taken.evidence = trace::Evidence::declared;
  trace.insert(trace.index_of(trace::EventType::Append), {trace.store, 0, 0}, taken);
  BOOST_CHECK(trace.status_of(kRule) == Status::pass);
  trace::Free freed{};
  freed.storage = 500;
  freed.bytes = 10;
  freed.count = 1;
  const std::size_t later = trace.index_of(trace::EventType::StepBegin, 1) + 1;
  trace.insert(later, {trace.store, 0, 0}, freed);
  BOOST_CHECK(trace.status_of(kRule) == Status::pass);
  trace.insert(later, {trace.store, 0, 0}, freed);
  BOOST_CHECK(trace.status_of(kRule) == Status::fail);
}

BOOST_AUTO_TEST_CASE(without_allocations_it_is_vacuous) {
  TraceBuilder trace;
  BOOST_CHECK(trace.status_of(kRule) == Status::vacuous);
}

BOOST_AUTO_TEST_CASE(seen_ids_are_exact_in_any_order) {
  std::mt19937_64 random(7);
  IdSet ids;
  std::set<std::uint64_t> list;
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t id = random() % 1500;
    ids.insert(id);
    list.insert(id);
    const std::uint64_t asked = random() % 1502;
    BOOST_REQUIRE_EQUAL(ids.contains(asked), list.count(asked) == 1);
  }
  ids.insert(~std::uint64_t{0});
  BOOST_CHECK(ids.contains(~std::uint64_t{0}));
  BOOST_CHECK(!ids.contains(~std::uint64_t{0} - 1));
}

BOOST_AUTO_TEST_SUITE_END()
