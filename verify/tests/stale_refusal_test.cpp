#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

/// Four rows in a ring of four, a view of [1, 4) that is held, then `more` rows.
struct Held : TraceBuilder {
  explicit Held(std::uint32_t more) {
    ring({.capacity = 4, .window = 4});
    step_begin(0, 0, Operation::append);
    token(0, 0, 4);
    view = window(0, 0, 0, {1, 4});
    for (std::uint32_t i = 0; i < more; ++i) token(0, 0);
    step_end();
    step_begin(0, 0, Operation::attend);
  }
  void refuse_attend(RefusalCode reason) {
    trace::Called called{};
    called.operation = Operation::attend;
    called.view = view;
    called.from = 3;
    called.to = 4;
    called.count = 1;
    refuse({0, 0, 0}, called, reason);
  }
  RuleVerdict judged() {
    close(view);
    step_end();
    return verdict_of("stale-refusal");
  }
  ViewId view = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(stale_refusal)

BOOST_AUTO_TEST_CASE(a_stale_view_that_is_refused_passes) {
  Held trace(2);  // the second row overwrites position 1
  trace.refuse_attend(RefusalCode::stale);
  const RuleVerdict verdict = trace.judged();
  BOOST_CHECK_EQUAL(to_text(verdict.status), "pass");
  BOOST_CHECK_EQUAL(verdict.met, 1U);
}

BOOST_AUTO_TEST_CASE(a_stale_view_that_is_attended_fails) {
  Held trace(2);
  trace.refuse_attend(RefusalCode::stale);
  trace.erase<trace::Refused>();
  trace.edit<trace::RegionMeasured>(trace.count(trace::EventType::RegionMeasured) - 1,
                                    [](trace::RegionMeasured& region) { region.outcome = RefusalCode::none; });
  const RuleVerdict verdict = trace.judged();
  BOOST_CHECK_EQUAL(to_text(verdict.status), "fail");
  BOOST_REQUIRE_EQUAL(verdict.shown.size(), 1U);
  // Held against the append of position 5, which took the slot of position 1.
  BOOST_CHECK_EQUAL(verdict.shown.front().cause, trace.index_of(trace::EventType::Append, 2));
}

BOOST_AUTO_TEST_CASE(a_stale_view_that_is_gathered_fails) {
  Held trace(2);
  trace::Called called{};
  called.operation = Operation::gather;
  called.view = trace.view;
  trace.refuse({0, 0, 0}, called, RefusalCode::stale);
  TraceBuilder lawful = trace;
  trace.erase<trace::Refused>();
  trace.edit<trace::RegionMeasured>(trace.count(trace::EventType::RegionMeasured) - 1,
                                    [](trace::RegionMeasured& region) { region.outcome = RefusalCode::none; });
  BOOST_CHECK_EQUAL(to_text(trace.judged().status), "fail");
  BOOST_CHECK_EQUAL(to_text(lawful.status_of("stale-refusal")), "pass");
}

BOOST_AUTO_TEST_CASE(a_view_is_fresh_until_one_of_its_own_slots_is_rewritten) {
  Held trace(1);  // overwrites position 0, which the view does not have
  trace.attend(trace.view, 3, 1, {}, true);
  const RuleVerdict verdict = trace.judged();
  BOOST_CHECK_EQUAL(to_text(verdict.status), "pass");
  BOOST_CHECK_EQUAL(verdict.met, 1U);
}

BOOST_AUTO_TEST_CASE(rows_that_change_under_a_fresh_view_fail) {
  // The fault of a store whose windows share one scratch buffer.
  Held trace(1);
  trace.attend(trace.view, 3, 1, {}, true);
  trace.edit<trace::WindowRun>(1, [](trace::WindowRun& run) { run.v_digest += 1; });
  BOOST_CHECK_EQUAL(to_text(trace.judged().status), "fail");
}

BOOST_AUTO_TEST_CASE(rows_told_again_without_digests_are_inconclusive) {
  Held trace(1);
  trace.attend(trace.view, 3, 1, {}, true);
  trace.edit<trace::WindowRun>(1, [](trace::WindowRun& run) { run.v_digest = 0; });
  BOOST_CHECK_EQUAL(to_text(trace.judged().status), "inconclusive");
}

BOOST_AUTO_TEST_CASE(without_a_held_view_it_is_vacuous) {
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 4});
  trace.decode(0, 0, 6);
  BOOST_CHECK_EQUAL(to_text(trace.status_of("stale-refusal")), "vacuous");
}

BOOST_AUTO_TEST_SUITE_END()
