#include "kvwitness/trace/loss.hpp"
#include "kvwitness/trace/names.hpp"
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

trace::Mark loss(trace::LossKind kind, std::uint32_t detail) {
  trace::Mark mark{};
  mark.value = trace::loss_value({kind, detail});
  return mark;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(store_answers)

BOOST_AUTO_TEST_CASE(a_store_that_answers_passes_and_marks_of_a_script_blame_nobody) {
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 4});
  trace.emit({}, loss(trace::LossKind::killed, 11));
  trace.decode(0, 0, 3);
  const RuleVerdict verdict = trace.verdict_of("store-answers");
  BOOST_CHECK_EQUAL(to_text(verdict.status), "pass");
  BOOST_CHECK_EQUAL(verdict.met, 1U);
}

BOOST_AUTO_TEST_CASE(a_loss_is_told_with_its_step_and_breaks_no_grammar) {
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 4});
  trace.step_begin(0, 0, Operation::append, 2);
  trace.token(0, 0);
  trace.emit({0, 0, 0}, loss(trace::LossKind::killed, 11));
  trace.step_end();
  const RuleVerdict verdict = trace.verdict_of("store-answers");
  BOOST_CHECK_EQUAL(to_text(verdict.status), "fail");
  BOOST_REQUIRE_EQUAL(verdict.shown.size(), 1U);
  BOOST_CHECK_EQUAL(verdict.shown[0].observed, "its process was killed by signal 11 (SIGSEGV)");
  BOOST_CHECK_EQUAL(verdict.shown[0].token, 2U);
  BOOST_CHECK_EQUAL(to_text(trace.status_of("event-grammar")), "pass");
}

BOOST_AUTO_TEST_CASE(a_loss_behind_the_last_step_is_told_with_that_step) {
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 4});
  trace.step_begin(0, 0, Operation::append);
  trace.token(0, 0);
  trace.step_end();
  trace.emit({0}, loss(trace::LossKind::silent, 250));
  const RuleVerdict verdict = trace.verdict_of("store-answers");
  BOOST_REQUIRE_EQUAL(verdict.shown.size(), 1U);
  BOOST_CHECK_EQUAL(verdict.shown[0].observed, "no answer within 250 ms");
  BOOST_CHECK(verdict.shown[0].step != kNoStep);
}

BOOST_AUTO_TEST_CASE(losses_come_back_from_their_values) {
  for (std::uint32_t kind = 0; kind <= 8; ++kind) {
    const trace::Loss lost{static_cast<trace::LossKind>(kind), 0xffffffffU};
    BOOST_CHECK(trace::loss_of(trace::loss_value(lost)) == lost);
    BOOST_CHECK(!to_text(lost).empty());
  }
  BOOST_CHECK_EQUAL(to_text(trace::Loss{trace::LossKind::ended, 127}), "its process ended with status 127");
}

BOOST_AUTO_TEST_CASE(a_loss_is_told_in_the_words_of_the_seam_and_before_what_follows_from_it) {
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 4});
  trace.step_begin(0, 0, Operation::append);
  trace.token(0, 0);
  trace::NameTable names;
  trace::Mark mark = loss(trace::LossKind::garbled, 0);
  mark.label = names.intern("append: a line without the request's \"id\" 5:\n'x'");
  trace.emit({0, 0, 0}, mark);
  trace.step_end();
  trace.edit<trace::Append>(0, [](trace::Append& append) { append.slot = 2; });  // trace-truth, too
  Judge judge(trace.claims, {.only = {}, .names = &names});
  judge.on_batch(trace.sealed());
  const CaseVerdict verdict = judge.finish();
  BOOST_REQUIRE(!verdict.rules.empty());
  BOOST_CHECK_EQUAL(verdict.rules[0].rule, "store-answers");
  BOOST_REQUIRE_EQUAL(verdict.rules[0].shown.size(), 1U);
  BOOST_CHECK_EQUAL(verdict.rules[0].shown[0].observed, "append: a line without the request's \"id\" 5:?'x'");
  // Without the words, what the event itself says.
  BOOST_CHECK_EQUAL(trace.verdict_of("store-answers").shown.at(0).observed,
                    "what came was no answer to what was asked");
}

BOOST_AUTO_TEST_SUITE_END()
