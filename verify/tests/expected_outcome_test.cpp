#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

trace::Expected expect(Operation operation, RefusalCode outcome) {
  trace::Expected expected{};
  expected.operation = operation;
  expected.outcome = outcome;
  return expected;
}

trace::Called window_of(Position from, Position to) {
  trace::Called called{};
  called.operation = Operation::window;
  called.from = from;
  called.to = to;
  return called;
}

struct Scripted : TraceBuilder {
  Scripted() {
    ring({.capacity = 4, .window = 4});
    step_begin(0, 0, Operation::append);
    for (int i = 0; i < 6; ++i) token(0, 0);
    step_end();
    step_begin(0, 0, Operation::window);
  }
  std::string judged() {
    step_end();
    return std::string(to_text(status_of("expected-outcome")));
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(expected_outcome)

BOOST_AUTO_TEST_CASE(a_refusal_that_is_expected_passes) {
  Scripted trace;
  trace.emit({0, 0}, expect(Operation::window, RefusalCode::evicted));
  trace.refuse({0, 0, 0}, window_of(1, 5), RefusalCode::evicted);
  BOOST_CHECK_EQUAL(trace.judged(), "pass");
}

BOOST_AUTO_TEST_CASE(a_refusal_for_another_reason_fails) {
  Scripted trace;
  trace.emit({0, 0}, expect(Operation::window, RefusalCode::evicted));
  trace.refuse({0, 0, 0}, window_of(1, 7), RefusalCode::future);
  BOOST_CHECK_EQUAL(trace.judged(), "fail");
}

// A file that nobody saved is refused `corrupt` or `unsupported` (trace/events.md, restore): a script can name one
// only.
BOOST_AUTO_TEST_CASE(of_reasons_that_the_law_leaves_open_the_expected_one_stands_for_all) {
  const auto judged = [](RefusalCode expected, RefusalCode told) {
    TraceBuilder trace;
    trace.ring({.capacity = 4, .window = 4});
    trace.edit<trace::StoreCreated>(0, [](trace::StoreCreated& created) {
      created.capabilities |= static_cast<std::uint64_t>(trace::Capability::save);
    });
    trace.step_begin(0, 0, Operation::restore);
    trace.emit({0, 0}, expect(Operation::restore, expected));
    trace::Called called{};
    called.operation = Operation::restore;
    called.file = 0xf11e;
    trace.refuse({0, 0, trace::kNoLayer}, called, told);
    trace.step_end();
    return std::string(to_text(trace.status_of("expected-outcome")));
  };
  BOOST_CHECK_EQUAL(judged(RefusalCode::unsupported, RefusalCode::corrupt), "pass");
  BOOST_CHECK_EQUAL(judged(RefusalCode::corrupt, RefusalCode::unsupported), "pass");
  BOOST_CHECK_EQUAL(judged(RefusalCode::unsupported, RefusalCode::full), "fail");
  BOOST_CHECK_EQUAL(judged(RefusalCode::full, RefusalCode::corrupt), "fail");
  BOOST_CHECK_EQUAL(judged(RefusalCode::none, RefusalCode::corrupt), "fail");
}

BOOST_AUTO_TEST_CASE(a_lawful_refusal_that_the_script_does_not_expect_fails) {
  Scripted trace;
  trace.refuse({0, 0, 0}, window_of(1, 5), RefusalCode::evicted);
  BOOST_CHECK_EQUAL(trace.judged(), "fail");
}

BOOST_AUTO_TEST_CASE(an_acceptance_where_a_refusal_is_expected_fails) {
  Scripted trace;
  trace.emit({0, 0}, expect(Operation::window, RefusalCode::evicted));
  trace.close(trace.window(0, 0, 0, {2, 6}));
  BOOST_CHECK_EQUAL(trace.judged(), "fail");
}

BOOST_AUTO_TEST_CASE(a_call_that_is_never_made_fails) {
  Scripted trace;
  trace.emit({0, 0}, expect(Operation::window, RefusalCode::none));
  trace.read(0, 0, 0, {2, 6});
  trace.step_end();
  const RuleVerdict verdict = trace.verdict_of("expected-outcome");
  BOOST_CHECK_EQUAL(to_text(verdict.status), "fail");
  BOOST_REQUIRE_EQUAL(verdict.shown.size(), 1U);
  BOOST_CHECK_EQUAL(verdict.shown.front().observed, "the call was never made");
}

BOOST_AUTO_TEST_CASE(an_attend_is_refused_by_the_gather_that_it_needs) {
  const auto judged = [](RefusalCode expected) {
    Scripted trace;
    const ViewId view = trace.window(0, 0, 0, {2, 6});
    trace.token(0, 0);  // overwrites position 2
    trace.emit({0, 0}, expect(Operation::attend, expected));
    trace::Called called{};
    called.operation = Operation::gather;
    called.view = view;
    trace.refuse({0, 0, 0}, called, RefusalCode::stale);
    trace.close(view);
    return trace.judged();
  };
  BOOST_CHECK_EQUAL(judged(RefusalCode::stale), "pass");
  BOOST_CHECK_EQUAL(judged(RefusalCode::none), "fail");
}

BOOST_AUTO_TEST_CASE(without_a_script_only_expectations_count) {
  Scripted trace;
  trace.claims.steps.clear();
  trace.refuse({0, 0, 0}, window_of(1, 5), RefusalCode::evicted);
  BOOST_CHECK_EQUAL(trace.judged(), "vacuous");
}

BOOST_AUTO_TEST_CASE(a_step_that_asked_nothing_is_vacuous) {
  const auto judged = [](trace::StepOutcome outcome, bool is_scripted) {
    Scripted trace;
    trace.close(trace.window(0, 0, 0, {2, 6}));
    if (!is_scripted) trace.claims.steps.clear();
    trace.step_end();
    const std::size_t last = trace.count(trace::EventType::StepEnd) - 1;
    trace.edit<trace::StepEnd>(last, [&](trace::StepEnd& end) { end.outcome = outcome; });
    return trace.verdict();
  };
  BOOST_CHECK_EQUAL(to_text(judged(trace::StepOutcome::done, true).status), "pass");
  const CaseVerdict verdict = judged(trace::StepOutcome::aborted, true);
  BOOST_CHECK_EQUAL(to_text(verdict.status), "vacuous");
  const auto rule = std::ranges::find(verdict.rules, "expected-outcome", &RuleVerdict::rule);
  BOOST_REQUIRE(rule != verdict.rules.end());
  BOOST_CHECK_EQUAL(rule->note, "1 steps asked nothing of their store, the first one hand-made.jsonc:1:1 decode");
  // What an engine calls its own steps is its own affair.
  BOOST_CHECK_EQUAL(to_text(judged(trace::StepOutcome::aborted, false).status), "pass");
}

BOOST_AUTO_TEST_CASE(a_call_that_fails_counts_more_than_a_step_that_asked_nothing) {
  Scripted trace;
  trace.refuse({0, 0, 0}, window_of(1, 5), RefusalCode::evicted);
  trace.step_end();
  trace.edit<trace::StepEnd>(1, [](trace::StepEnd& end) { end.outcome = trace::StepOutcome::aborted; });
  BOOST_CHECK_EQUAL(to_text(trace.status_of("expected-outcome")), "fail");
}

BOOST_AUTO_TEST_SUITE_END()
