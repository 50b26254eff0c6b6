#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

constexpr std::string_view kRule = "resident-set";

trace::Called call(Operation operation, Position from, Position to, std::uint32_t count = 0) {
  trace::Called called{};
  called.operation = operation;
  called.from = from;
  called.to = to;
  called.count = count;
  return called;
}

/// Six rows in a ring of four: [2, 6) is held.
struct Wrapped : TraceBuilder {
  Wrapped() {
    ring({.capacity = 4, .window = 3}, 2);
    step_begin(0, 0, Operation::append);
    for (int i = 0; i < 6; ++i) token(0, 0);
    step_end();
  }
  /// Makes the last refused call one that was done.
  void accept() {
    erase<trace::Refused>();
    edit<trace::RegionMeasured>(count(trace::EventType::RegionMeasured) - 1,
                                [](trace::RegionMeasured& region) { region.outcome = RefusalCode::none; });
  }
};

std::string text_of(const TraceBuilder& trace) {
  return std::string(to_text(trace.status_of(kRule)));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(resident_set)

BOOST_AUTO_TEST_CASE(appends_and_every_edit_of_a_correct_ring_pass) {
  Wrapped trace;
  trace.step_begin(0, 0, Operation::truncate);
  trace.truncate(0, 0, 5);
  trace.evict(0, 0, {2, 3});
  trace.token(0, 0, 2);
  trace.clear(0, 0);
  trace.token(0, 0);
  trace.step_end();
  BOOST_CHECK_EQUAL(text_of(trace), "pass");
  BOOST_CHECK(trace.failing().empty());
}

BOOST_AUTO_TEST_CASE(window_start_that_does_not_move_fails) {
  Wrapped trace;
  trace.edit<trace::Append>(10, [](trace::Append& append) { append.held_from = 0; });
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_CHECK_EQUAL(to_text(verdict.status), "fail");
  BOOST_CHECK_EQUAL(verdict.shown.front().expected, "[2, 6) is held");
  BOOST_CHECK_EQUAL(verdict.shown.front().observed, "the store says that it holds [0, 6)");
}

BOOST_AUTO_TEST_CASE(an_append_that_writes_nothing_fails) {
  Wrapped trace;
  trace.erase<trace::Append>(3);
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_CHECK_EQUAL(to_text(verdict.status), "fail");
  BOOST_CHECK_EQUAL(verdict.shown.front().observed, "an append that was done wrote nothing");
}

BOOST_AUTO_TEST_CASE(an_append_that_stops_short_fails) {
  TraceBuilder trace;
  trace.ring({.capacity = 8, .window = 4});
  trace.prefill(0, 0, 3);
  BOOST_CHECK_EQUAL(text_of(trace), "pass");
  trace.edit<trace::Append>(0, [](trace::Append& append) { append.count = 2; });
  BOOST_CHECK_EQUAL(text_of(trace), "fail");
}

BOOST_AUTO_TEST_CASE(one_layer_left_longer_by_a_truncate_fails) {
  Wrapped trace;
  trace.step_begin(0, 0, Operation::truncate);
  trace.truncate(0, 0, 5);
  trace.step_end();
  BOOST_CHECK_EQUAL(text_of(trace), "pass");
  trace.edit<trace::StateDigest>(1, [](trace::StateDigest& state) { state.to = 6; });
  BOOST_CHECK_EQUAL(text_of(trace), "fail");
}

BOOST_AUTO_TEST_CASE(rows_exchanged_by_an_edit_fail) {
  Wrapped trace;
  trace.step_begin(0, 0, Operation::evict);
  trace.evict(0, 0, {0, 3});
  trace.step_end();
  BOOST_CHECK_EQUAL(text_of(trace), "pass");
  trace.edit<trace::StateDigest>(0, [](trace::StateDigest& state) { state.k_digest += 1; });
  BOOST_CHECK_EQUAL(text_of(trace), "fail");
}

BOOST_AUTO_TEST_CASE(residue_after_a_clear_fails) {
  Wrapped trace;
  trace.step_begin(0, 0, Operation::clear);
  trace.clear(0, 0);
  trace.step_end();
  BOOST_CHECK_EQUAL(text_of(trace), "pass");
  trace.edit<trace::StateDigest>(0, [](trace::StateDigest& state) { state.to = 1; });
  BOOST_CHECK_EQUAL(text_of(trace), "fail");
}

BOOST_AUTO_TEST_CASE(state_at_the_end_is_judged) {
  Wrapped trace;
  trace.end();
  trace.edit<trace::StateDigest>(0, [](trace::StateDigest& state) { state.from = 1; });
  BOOST_CHECK_EQUAL(text_of(trace), "fail");
}

BOOST_AUTO_TEST_CASE(a_rollback_across_the_wrap_that_is_done_fails) {
  // A query at 3 sees [1, 3]; 1 is overwritten.
  Wrapped trace;
  trace.step_begin(0, 0, Operation::truncate);
  trace.refuse({0, 0}, call(Operation::truncate, 0, 3), RefusalCode::evicted);
  trace.step_end();
  BOOST_CHECK_EQUAL(text_of(trace), "pass");
  trace.accept();
  BOOST_CHECK_EQUAL(trace.verdict_of(kRule).shown.front().expected, "truncate refused: evicted");
}

BOOST_AUTO_TEST_CASE(a_chunk_that_overwrites_what_its_first_query_sees_fails_when_done) {
  Wrapped trace;
  trace.step_begin(0, 0, Operation::append);
  trace.refuse({0, 0, 0}, call(Operation::append, 0, 0, 3), RefusalCode::full);
  trace.step_end();
  BOOST_CHECK_EQUAL(text_of(trace), "pass");
  trace.accept();
  BOOST_CHECK_EQUAL(trace.verdict_of(kRule).shown.front().expected, "append refused: full");
}

BOOST_AUTO_TEST_CASE(the_row_just_appended_can_be_read_in_its_step) {
  // The fault of an engine whose earlier layers saw the new row one step late.
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 4}, 2);
  trace.step_begin(0, 0, Operation::decode);
  trace.append(0, 0, 0, 1);
  trace.refuse({0, 0, 0}, call(Operation::window, 0, 1), RefusalCode::future);
  trace.append(0, 0, 1, 1);
  trace.step_end();
  BOOST_CHECK_EQUAL(text_of(trace), "fail");
  trace.edit<trace::Called>(1, [](trace::Called& called) { called.to = 2; });
  trace.edit<trace::Refused>(0, [](trace::Refused& refused) { refused.asked_to = 2; });
  BOOST_CHECK_EQUAL(text_of(trace), "pass");
}

BOOST_AUTO_TEST_CASE(what_a_refusal_says_is_held_is_judged) {
  Wrapped trace;
  trace.step_begin(0, 0, Operation::window);
  trace.refuse({0, 0, 1}, call(Operation::window, 0, 4), RefusalCode::evicted);
  trace.step_end();
  BOOST_CHECK_EQUAL(text_of(trace), "pass");
  trace.edit<trace::Refused>(0, [](trace::Refused& refused) { refused.held_from = 1; });
  BOOST_CHECK_EQUAL(text_of(trace), "fail");
}

BOOST_AUTO_TEST_CASE(an_edit_that_is_not_read_back_is_inconclusive) {
  Wrapped trace;
  trace.step_begin(0, 0, Operation::clear);
  trace.clear(0, 0);
  trace.step_end();
  trace.erase<trace::StateDigest>(1);
  BOOST_CHECK_EQUAL(text_of(trace), "inconclusive");
}

BOOST_AUTO_TEST_CASE(states_without_digests_are_inconclusive) {
  Wrapped trace;
  trace.end();
  trace.edit<trace::StateDigest>(0, [](trace::StateDigest& state) { state.k_digest = 0; });
  BOOST_CHECK_EQUAL(text_of(trace), "inconclusive");
}

BOOST_AUTO_TEST_CASE(a_store_that_is_never_used_is_vacuous) {
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 4});
  BOOST_CHECK_EQUAL(text_of(trace), "vacuous");
}

BOOST_AUTO_TEST_SUITE_END()
