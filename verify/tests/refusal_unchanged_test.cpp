#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

/// Six rows in a ring of four, then a chunk that is too long: refused, two layers read back.
struct Refusal : TraceBuilder {
  Refusal() {
    ring({.capacity = 4, .window = 3}, 2);
    step_begin(0, 0, Operation::append);
    for (int i = 0; i < 6; ++i) token(0, 0);
    trace::Called called{};
    called.operation = Operation::append;
    called.count = 3;
    refuse({0, 0, 0}, called, RefusalCode::full);
    step_end();
  }
};

std::string judged(const TraceBuilder& trace) {
  return std::string(to_text(trace.status_of("refusal-unchanged")));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(refusal_unchanged)

BOOST_AUTO_TEST_CASE(a_refusal_that_changes_nothing_passes) {
  const Refusal trace;
  BOOST_CHECK_EQUAL(judged(trace), "pass");
  BOOST_CHECK_EQUAL(trace.verdict_of("refusal-unchanged").met, 2U);
}

BOOST_AUTO_TEST_CASE(a_row_written_before_the_refusal_fails) {
  Refusal trace;
  trace.edit<trace::StateDigest>(0, [](trace::StateDigest& state) { state.v_digest += 1; });
  BOOST_CHECK_EQUAL(judged(trace), "fail");
}

BOOST_AUTO_TEST_CASE(a_layer_that_grew_all_the_same_fails) {
  Refusal trace;
  trace.edit<trace::StateDigest>(1, [](trace::StateDigest& state) { state.to = 7; });
  const RuleVerdict verdict = trace.verdict_of("refusal-unchanged");
  BOOST_CHECK_EQUAL(to_text(verdict.status), "fail");
  BOOST_REQUIRE_EQUAL(verdict.shown.size(), 1U);
  BOOST_CHECK_EQUAL(verdict.shown.front().observed, "positions [2, 7)");
  BOOST_CHECK_EQUAL(verdict.shown.front().cause, trace.index_of(trace::EventType::Refused));
}

BOOST_AUTO_TEST_CASE(a_layer_that_is_not_read_back_is_inconclusive) {
  Refusal trace;
  trace.erase<trace::StateDigest>(1);
  BOOST_CHECK_EQUAL(judged(trace), "inconclusive");
}

BOOST_AUTO_TEST_CASE(a_state_without_digests_is_inconclusive) {
  Refusal trace;
  trace.edit<trace::StateDigest>(1, [](trace::StateDigest& state) { state.k_digest = 0; });
  BOOST_CHECK_EQUAL(judged(trace), "inconclusive");
}

BOOST_AUTO_TEST_CASE(an_unknown_sequence_has_nothing_to_read_back) {
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 3});
  trace::Called called{};
  called.operation = Operation::clear;
  trace.step_begin(0, 9, Operation::clear);
  trace.refuse({0, 9}, called, RefusalCode::unknown_sequence);
  trace.step_end();
  BOOST_CHECK_EQUAL(judged(trace), "vacuous");
}

BOOST_AUTO_TEST_CASE(without_a_refusal_it_is_vacuous) {
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 3});
  trace.decode(0, 0, 6);
  BOOST_CHECK_EQUAL(judged(trace), "vacuous");
}

/// A truncate that took nothing back, and said that it did; then a refusal that changes nothing.
struct Ignored : TraceBuilder {
  explicit Ignored(bool appends = false) {
    flat({.capacity = 8});
    step_begin(0, 0, Operation::append);
    for (int i = 0; i < 4; ++i) token(0, 0);
    truncate(0, 0, 2);
    if (appends) token(0, 0);
    trace::Called called{};
    called.operation = Operation::truncate;
    called.to = 9;
    refuse({0, 0}, called, RefusalCode::future);
    step_end();
    show(0, {0, 4});
    show(1, appends ? Range{0, 5} : Range{0, 4});
  }
  /// The nth state that is read back: the positions that it shows, with other rows than the law has.
  void show(std::size_t nth, Range held) {
    edit<trace::StateDigest>(nth, [&](trace::StateDigest& state) {
      state.from = held.from;
      state.to = held.to;
      state.k_digest = state.v_digest = 77;
    });
  }
};

BOOST_AUTO_TEST_CASE(a_refusal_is_held_to_what_was_seen_in_front_of_it_and_the_edit_is_blamed) {
  const Ignored trace;
  BOOST_CHECK_EQUAL(judged(trace), "pass");
  BOOST_CHECK_EQUAL(to_text(trace.status_of("resident-set")), "fail");
}

BOOST_AUTO_TEST_CASE(a_layer_that_had_gone_astray_may_not_change_either) {
  Ignored positions;
  positions.show(1, {0, 3});
  BOOST_CHECK(positions.expects("refusal-unchanged", "positions [0, 4), as before the refusal"));
  Ignored rows;
  rows.edit<trace::StateDigest>(1, [](trace::StateDigest& state) { state.v_digest = 78; });
  BOOST_CHECK(rows.expects("refusal-unchanged", "rows of [0, 4) as before the refusal"));
}

BOOST_AUTO_TEST_CASE(what_was_appended_since_is_held_besides) {
  Ignored trace(true);
  trace.edit<trace::Append>(4, [](trace::Append& append) { append.first = 4; });
  BOOST_CHECK_EQUAL(judged(trace), "pass");
  trace.show(1, {0, 4});
  BOOST_CHECK_EQUAL(judged(trace), "fail");
}

BOOST_AUTO_TEST_SUITE_END()
