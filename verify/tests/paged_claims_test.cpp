// What paged stores and the seam claim against what is known of the call: the smallest bad trace of each.
#include "paged_cases.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

BOOST_AUTO_TEST_SUITE(paged_claims)

BOOST_AUTO_TEST_CASE(a_fork_that_is_told_otherwise_than_it_was_called_fails) {
  const auto told = [](auto&& change) {
    Forked trace;
    trace.edit<trace::Fork>(0, change);
    return only(trace);
  };
  BOOST_TEST(told([](trace::Fork&) {}) == "");
  BOOST_TEST(told([](trace::Fork& fork) { fork.parent = 2; }) == "event-grammar");
  BOOST_TEST(told([](trace::Fork& fork) { fork.child = 2; }) == "event-grammar");
  BOOST_TEST(told([](trace::Fork& fork) { --fork.upto; }) == "event-grammar");
  BOOST_TEST(told([](trace::Fork& fork) { --fork.shared; }) == "block-reference");
}

BOOST_AUTO_TEST_CASE(beams_out_of_order_or_of_a_parent_that_is_none_fail) {
  PagedTrace trace;
  trace.append(0, 2);
  trace.append(1, 2);
  trace.reorder({0, 0});
  BOOST_TEST(only(trace) == "");
  PagedTrace again = trace;
  again.edit<trace::Reorder>(1, [](trace::Reorder& one) { one.beam = 0; });
  BOOST_TEST(only(again) == "event-grammar");
  PagedTrace parent = trace;
  parent.edit<trace::Reorder>(1, [](trace::Reorder& one) { one.parent = 2; });
  BOOST_TEST(fails(parent, "event-grammar"));
}

BOOST_AUTO_TEST_CASE(a_copy_on_write_to_another_row_or_block_than_the_entry_that_follows_fails) {
  Forked trace({.layers = 2});
  trace.edit<trace::Move>(0, [](trace::Move& move) { ++move.to_slot; });
  BOOST_TEST(only(trace) == "block-reference");
  for (const std::size_t layer : {std::size_t{0}, std::size_t{1}}) {
    Forked elsewhere({.layers = 2});
    // Held by the child too: block 0, with the rows in front of those copied.
    elsewhere.edit<trace::Move>(layer, [](trace::Move& move) { move.to_slot %= 4; });
    BOOST_TEST_CONTEXT("layer " << layer) BOOST_TEST(only(elsewhere) == "block-reference");
  }
}

BOOST_AUTO_TEST_CASE(a_hit_of_other_positions_than_those_of_one_block_fails) {
  Shared from;
  from.edit<trace::PrefixHit>(1, [](trace::PrefixHit& one) { one.from = 5; });
  BOOST_TEST(only(from) == "prefix-sound");
  Shared to;
  to.edit<trace::PrefixHit>(1, [](trace::PrefixHit& one) { ++one.to; });
  BOOST_TEST(only(to) == "prefix-sound");
}

BOOST_AUTO_TEST_CASE(digests_of_rows_where_there_are_none_fail) {
  PagedTrace edited;
  edited.append(0, 2);
  edited.clear(0);
  BOOST_TEST(only(edited) == "");
  edited.edit<trace::StateDigest>(0, [](trace::StateDigest& state) { state.v_digest = 7; });
  BOOST_TEST(only(edited) == "resident-set");
  PagedTrace refused;
  trace::Called truncate{};
  truncate.operation = trace::Operation::truncate;
  truncate.to = 1;
  refused.refuse(0, truncate, RefusalCode::future);
  BOOST_TEST(only(refused) == "");
  refused.edit<trace::StateDigest>(0, [](trace::StateDigest& state) { state.k_digest = 7; });
  BOOST_TEST(only(refused) == "refusal-unchanged");
}

BOOST_AUTO_TEST_CASE(a_swap_of_fewer_bytes_than_a_block_has_fails) {
  PagedTrace trace({.layers = 2});
  trace.append(0, 5);
  trace.swap_out(0);
  trace.swap_in(0);
  BOOST_TEST(only(trace) == "");
  PagedTrace out = trace;
  out.edit<trace::SwapOut>(1, [](trace::SwapOut& swap) { --swap.bytes; });
  BOOST_TEST(only(out) == "block-reference");
  PagedTrace in = trace;
  in.edit<trace::SwapIn>(0, [](trace::SwapIn& swap) { swap.bytes /= 2; });
  BOOST_TEST(only(in) == "block-reference");
}

BOOST_AUTO_TEST_CASE(a_swap_without_its_signals_or_on_the_stream_that_computes_fails) {
  PagedTrace trace;
  trace.append(0, 5);
  trace.swap_out(0);
  trace.swap_in(0);
  PagedTrace computes = trace;
  computes.edit<trace::SwapIn>(0, [](trace::SwapIn& swap) { swap.stream = 0; });
  computes.edit<trace::SwapIn>(1, [](trace::SwapIn& swap) { swap.stream = 0; });
  BOOST_TEST(only(computes) == "stream-order");
  PagedTrace silent = computes;
  for (std::size_t i = 0; i < 2; ++i) {
    silent.erase<trace::Signal>(2);
    silent.erase<trace::Wait>(2);
  }
  BOOST_TEST(only(silent) == "stream-order");
}

BOOST_AUTO_TEST_CASE(a_pool_that_is_declared_again_fails) {
  PagedTrace trace;
  trace.append(0, 1);
  trace.insert(trace.index_of(trace::EventType::PoolDeclared), {0}, trace.payload<trace::PoolDeclared>());
  BOOST_TEST(only(trace) == "event-grammar");
}

BOOST_AUTO_TEST_SUITE_END()
