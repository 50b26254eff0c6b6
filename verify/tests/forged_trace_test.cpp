// Whole traces that somebody edited and sealed anew: every digest and count of the file is right, what they tell is
// not. Each case is the smallest edit; the trace without it passes.
#include "kvwitness/trace/names.hpp"
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <array>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

struct Recorded : TraceBuilder {
  Recorded() {
    store = ring({.capacity = 4, .window = 4});
    decode(store, 0, 6);
    step_begin(store, 0, Operation::attend);
    const ViewId view = window(store, 0, 0, {2, 6});
    attend(view, 5);
    record({store, 0, 0}, "sut.out", trace::Plane::out, 5, 5, std::array<float, 8>{1, 2, 3, 4, 5, 6, 7, 8});
    close(view);
    step_end();
  }
  StoreIndex store = 0;
};

std::string status(const TraceBuilder& trace, std::string_view rule) {
  return std::string(to_text(trace.status_of(rule)));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(forged_trace)

BOOST_AUTO_TEST_CASE(an_output_of_other_attention_is_told) {
  Recorded trace;
  BOOST_TEST(trace.failing().empty());
  trace.edit<trace::AttentionStep>(trace.count(trace::EventType::AttentionStep) - 1,
                                   [](trace::AttentionStep& step) { step.out_digest += 1; });
  BOOST_TEST(trace.failing() == std::vector<std::string>{"trace-truth"}, boost::test_tools::per_element());
  // A digest that was not given contradicts nothing.
  trace.edit<trace::AttentionStep>(trace.count(trace::EventType::AttentionStep) - 1,
                                   [](trace::AttentionStep& step) { step.out_digest = 0; });
  BOOST_TEST(trace.failing().empty());
}

BOOST_AUTO_TEST_CASE(a_query_of_another_ordinal_than_was_called_is_told) {
  Recorded trace;
  trace.edit<trace::AttentionStep>(0, [](trace::AttentionStep& step) { step.ordinal += 1; });
  BOOST_TEST(trace.failing() == std::vector<std::string>{"event-grammar"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(rows_that_nobody_read_back_at_the_end_are_no_pass) {
  Recorded trace;
  trace.end();
  BOOST_TEST(status(trace, "resident-set") == "pass");
  trace.erase<trace::StateDigest>(trace.count(trace::EventType::StateDigest) - 1);
  BOOST_TEST(status(trace, "resident-set") == "inconclusive");
}

BOOST_AUTO_TEST_CASE(a_run_of_another_seed_is_inconclusive) {
  Recorded trace;
  trace.edit<trace::RunBegin>(0, [](trace::RunBegin& run) { run.seed += 1; });
  BOOST_TEST(status(trace, "position-order") == "inconclusive");
}

BOOST_AUTO_TEST_CASE(a_wrong_count_of_steps_is_inconclusive) {
  const Recorded trace;
  std::vector<Event> events = trace.sealed();
  auto end = trace::payload_of<trace::RunEnd>(events.back());
  for (const std::uint64_t steps : {end.steps, end.steps + 1}) {
    const bool is_right = steps == end.steps;
    auto told = end;
    told.steps = steps;
    events.back().payload = trace::make_event({}, told).payload;
    Judge judge(trace.claims);
    judge.on_batch(events);
    BOOST_TEST((judge.finish().status == (is_right ? Status::pass : Status::inconclusive)));
  }
}

BOOST_AUTO_TEST_CASE(a_workload_that_served_nobody_is_vacuous) {
  for (const double served : {0.0, 1.0}) {
    Recorded trace;
    trace::Counter counter{};
    counter.name = trace::hash_name("requests-served");
    counter.value_bits = trace::to_bits(served);
    trace.emit({trace.store}, counter);
    BOOST_TEST((trace.verdict().status == (served == 0 ? Status::vacuous : Status::pass)));
  }
}

BOOST_AUTO_TEST_CASE(a_run_that_calls_no_store_is_vacuous) {
  TraceBuilder trace;
  const StoreIndex store = trace.ring({.capacity = 4, .window = 4});
  BOOST_TEST((trace.verdict().status == Status::vacuous));
  trace.decode(store, 0, 1);
  BOOST_TEST((trace.verdict().status == Status::pass));
}

BOOST_AUTO_TEST_SUITE_END()
