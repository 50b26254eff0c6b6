#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

trace::Called call(Operation operation, Position from, Position to) {
  trace::Called called{};
  called.operation = operation;
  called.from = from;
  called.to = to;
  return called;
}

/// Ten rows in a ring of eight with a window of four ([2, 10) is held), then one refused call.
std::string judged(const trace::Subject& subject, const trace::Called& called, RefusalCode reason) {
  TraceBuilder trace;
  trace.ring({.capacity = 8, .window = 4});
  trace.step_begin(0, 0, Operation::append);
  for (int i = 0; i < 10; ++i) trace.token(0, 0);
  trace.refuse(subject, called, reason);
  trace.step_end();
  return std::string(to_text(trace.status_of("legal-refused")));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(legal_refused)

// What the store cannot do at all comes first (trace/events.md): a reader has no turn that it could be out of.
BOOST_AUTO_TEST_CASE(rows_for_a_reader_are_refused_as_unsupported_only) {
  const auto of_reader = [](RefusalCode reason) {
    TraceBuilder trace;
    trace.ring({.capacity = 8, .window = 4}, 2);
    trace.edit<trace::LayerFormat>(1, [](trace::LayerFormat& format) { format.donor = 0; });
    trace.step_begin(0, 0, Operation::append);
    trace::Called rows{};
    rows.operation = Operation::append;
    rows.count = 1;
    trace.refuse({0, 0, 1}, rows, reason);
    trace.step_end();
    return std::string(to_text(trace.status_of("legal-refused")));
  };
  BOOST_CHECK_EQUAL(of_reader(RefusalCode::unsupported), "pass");
  BOOST_CHECK_EQUAL(of_reader(RefusalCode::out_of_order), "fail");
}

BOOST_AUTO_TEST_CASE(a_rollback_within_every_window_that_is_refused_fails) {
  // A query at 5 sees [2, 5], all of it held: the deepest legal rollback, and one further.
  BOOST_CHECK_EQUAL(judged({0, 0}, call(Operation::truncate, 0, 5), RefusalCode::evicted), "fail");
  BOOST_CHECK_EQUAL(judged({0, 0}, call(Operation::truncate, 0, 4), RefusalCode::evicted), "pass");
}

BOOST_AUTO_TEST_CASE(a_held_window_that_is_refused_fails) {
  BOOST_CHECK_EQUAL(judged({0, 0, 0}, call(Operation::window, 2, 10), RefusalCode::evicted), "fail");
  BOOST_CHECK_EQUAL(judged({0, 0, 0}, call(Operation::window, 1, 10), RefusalCode::evicted), "pass");
}

BOOST_AUTO_TEST_CASE(the_wrong_reason_fails) {
  BOOST_CHECK_EQUAL(judged({0, 0, 0}, call(Operation::read, 4, 11), RefusalCode::evicted), "fail");
  BOOST_CHECK_EQUAL(judged({0, 0, 0}, call(Operation::read, 4, 11), RefusalCode::future), "pass");
  BOOST_CHECK_EQUAL(judged({0, 7, 0}, call(Operation::read, 4, 5), RefusalCode::evicted), "fail");
  BOOST_CHECK_EQUAL(judged({0, 7, 0}, call(Operation::read, 4, 5), RefusalCode::unknown_sequence), "pass");
}

BOOST_AUTO_TEST_CASE(of_two_reasons_the_first_is_the_answer) {
  BOOST_CHECK_EQUAL(judged({0, 0, 0}, call(Operation::read, 0, 11), RefusalCode::evicted), "pass");
  BOOST_CHECK_EQUAL(judged({0, 0, 0}, call(Operation::read, 0, 11), RefusalCode::future), "fail");
  BOOST_CHECK_EQUAL(judged({0, 0, 0}, call(Operation::read, 0, 11), RefusalCode::full), "fail");
  BOOST_CHECK_EQUAL(judged({0, 0}, call(Operation::evict, 6, 11), RefusalCode::future), "pass");
  BOOST_CHECK_EQUAL(judged({0, 0}, call(Operation::evict, 6, 11), RefusalCode::unsupported), "fail");
}

BOOST_AUTO_TEST_CASE(says_what_was_right_and_what_was_answered) {
  TraceBuilder trace;
  trace.ring({.capacity = 8, .window = 4});
  trace.step_begin(0, 0, Operation::append);
  trace.token(0, 0);
  trace.refuse({0, 0}, call(Operation::truncate, 0, 1), RefusalCode::unsupported);
  trace.step_end();
  const RuleVerdict verdict = trace.verdict_of("legal-refused");
  BOOST_REQUIRE_EQUAL(verdict.shown.size(), 1U);
  BOOST_CHECK_EQUAL(verdict.shown.front().expected, "truncate done");
  BOOST_CHECK_EQUAL(verdict.shown.front().observed, "refused: unsupported");
}

BOOST_AUTO_TEST_CASE(without_a_call_it_is_vacuous) {
  TraceBuilder trace;
  trace.ring({.capacity = 8, .window = 4});
  BOOST_CHECK_EQUAL(to_text(trace.status_of("legal-refused")), "vacuous");
}

BOOST_AUTO_TEST_SUITE_END()
