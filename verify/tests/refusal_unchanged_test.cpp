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

BOOST_AUTO_TEST_SUITE_END()
