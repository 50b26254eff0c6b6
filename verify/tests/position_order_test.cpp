#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/rows.hpp"
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <span>
#include <string>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

constexpr std::string_view kRule = "position-order";

/// Six coded rows in a ring of four, and one window over them: [2, 6) in two runs, [2, 4) in slots 2, 3 and [4, 6).
struct Wrapped : TraceBuilder {
  Wrapped() {
    coded = stream("coded", trace::StreamKind::coded);
    ring({.capacity = 4, .window = 4}, 2);
    step_begin(0, 0, Operation::append);
    for (std::uint32_t i = 0; i < 6; ++i) token(0, 0, 1, {coded, i});
    view = window(0, 0, 0, {2, 6});
    close(view);
    step_end();
  }

  /// Digest of the K row of token `ordinal` of a layer, lying at a position.
  [[nodiscard]] std::uint64_t k_row(std::uint32_t ordinal, Position at, LayerIndex of_layer = 0) const {
    std::vector<float> row(4);
    trace::fill_row(claims.streams[0].spec, {trace::Plane::k, of_layer, ordinal}, row);
    return trace::row_digest(std::as_bytes(std::span(row)), at);
  }

  NameHash coded = 0;
  ViewId view = 0;
};

std::string observed(const TraceBuilder& trace) {
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_REQUIRE_EQUAL(to_text(verdict.status), "fail");
  return verdict.shown.front().observed;
}

bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(position_order)

BOOST_AUTO_TEST_CASE(a_window_across_the_wrap_passes) {
  const Wrapped trace;
  BOOST_REQUIRE_EQUAL(trace.count(trace::EventType::WindowRun), 2U);
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_CHECK_EQUAL(to_text(verdict.status), "pass");
  BOOST_CHECK_GE(verdict.met, 2U);
  BOOST_CHECK(trace.failing().empty());
}

BOOST_AUTO_TEST_CASE(runs_in_the_order_of_slots_fail) {
  Wrapped trace;
  std::swap(trace.events[trace.index_of(trace::EventType::WindowRun, 0)],
            trace.events[trace.index_of(trace::EventType::WindowRun, 1)]);
  BOOST_CHECK(says(observed(trace), "run [4, 6) leaves positions out"));
}

BOOST_AUTO_TEST_CASE(a_position_told_twice_fails) {
  Wrapped trace;
  trace.edit<trace::WindowRun>(1, [](trace::WindowRun& run) { run.first = 3; });
  BOOST_CHECK(says(observed(trace), "tells positions again"));
}

BOOST_AUTO_TEST_CASE(a_run_past_the_window_fails) {
  Wrapped trace;
  trace.edit<trace::WindowRun>(1, [](trace::WindowRun& run) { run.count = 3; });
  BOOST_CHECK(says(observed(trace), "goes on past the window"));
}

BOOST_AUTO_TEST_CASE(an_empty_run_fails) {
  Wrapped trace;
  trace::WindowRun run = trace.payload<trace::WindowRun>(1);
  run.first = 6;
  run.count = 0;
  trace.insert(trace.index_of(trace::EventType::WindowRun, 1) + 1, {0, 0, 0}, run);
  BOOST_CHECK(says(observed(trace), "is empty"));
}

BOOST_AUTO_TEST_CASE(a_window_that_stops_short_fails) {
  Wrapped trace;
  trace.erase<trace::WindowRun>(1);
  BOOST_CHECK(says(observed(trace), "they end at 4"));
}

BOOST_AUTO_TEST_CASE(a_window_of_another_range_than_asked_for_fails) {
  Wrapped trace;
  trace.edit<trace::Called>(trace.count(trace::EventType::Called) - 1, [](trace::Called& called) { called.from = 3; });
  BOOST_CHECK_EQUAL(observed(trace), "a window of [2, 6)");
}

BOOST_AUTO_TEST_CASE(rows_of_lost_positions_are_named) {
  // The ring forgot to overwrite: tokens 0 and 1 still lie where 4 and 5 belong.
  Wrapped trace;
  trace.edit<trace::WindowRun>(1, [&](trace::WindowRun& run) { run.k_digest = trace.k_row(0, 4) + trace.k_row(1, 5); });
  BOOST_CHECK(says(observed(trace), "the rows of positions [0, 2)"));
}

BOOST_AUTO_TEST_CASE(rows_in_turned_order_are_named) {
  Wrapped trace;
  trace.edit<trace::WindowRun>(1, [&](trace::WindowRun& run) { run.k_digest = trace.k_row(5, 4) + trace.k_row(4, 5); });
  BOOST_CHECK(says(observed(trace), "its own rows, turned by 1"));
}

BOOST_AUTO_TEST_CASE(rows_of_another_layer_are_named) {
  Wrapped trace;
  trace.edit<trace::WindowRun>(
      1, [&](trace::WindowRun& run) { run.k_digest = trace.k_row(4, 4, 1) + trace.k_row(5, 5, 1); });
  BOOST_CHECK(says(observed(trace), "the rows of layer 1"));
}

BOOST_AUTO_TEST_CASE(slots_never_written_are_named) {
  Wrapped trace;
  const std::vector<float> zeros(4);
  const auto bytes = std::as_bytes(std::span(zeros));
  trace.edit<trace::WindowRun>(
      1, [&](trace::WindowRun& run) { run.k_digest = trace::row_digest(bytes, 4) + trace::row_digest(bytes, 5); });
  BOOST_CHECK(says(observed(trace), "rows of zeros"));
}

BOOST_AUTO_TEST_CASE(values_of_other_rows_fail) {
  Wrapped trace;
  trace.edit<trace::WindowRun>(0, [](trace::WindowRun& run) { run.v_digest += 1; });
  BOOST_CHECK(says(observed(trace), "its K rows with other V rows"));
}

BOOST_AUTO_TEST_CASE(a_read_and_a_state_are_judged_by_content) {
  Wrapped trace;
  trace.step_begin(0, 0, Operation::read);
  trace.read(0, 0, 0, {3, 6});
  trace.step_end();
  trace.end();
  BOOST_CHECK_EQUAL(to_text(trace.status_of(kRule)), "pass");
  TraceBuilder bad_read = trace;
  bad_read.edit<trace::ReadRows>(0, [](trace::ReadRows& read) { read.k_digest += 1; });
  BOOST_CHECK_EQUAL(to_text(bad_read.status_of(kRule)), "fail");
  TraceBuilder other_range = trace;
  other_range.edit<trace::ReadRows>(0, [](trace::ReadRows& read) { read.from = 4; });
  BOOST_CHECK_EQUAL(to_text(other_range.status_of(kRule)), "fail");
  TraceBuilder asked_otherwise = trace;
  asked_otherwise.edit<trace::Called>(trace.count(trace::EventType::Called) - 1,
                                      [](trace::Called& called) { called.from = 2; });
  BOOST_CHECK_EQUAL(to_text(asked_otherwise.status_of(kRule)), "fail");
  TraceBuilder bad_state = trace;
  bad_state.edit<trace::StateDigest>(0, [](trace::StateDigest& state) { state.v_digest += 1; });
  BOOST_CHECK_EQUAL(to_text(bad_state.status_of(kRule)), "fail");
}

BOOST_AUTO_TEST_CASE(handing_out_what_is_not_held_fails) {
  // Position 1 is overwritten; the store hands out a window from there all the same.
  Wrapped trace;
  trace.step_begin(0, 0, Operation::window);
  trace::Called called{};
  called.operation = Operation::window;
  called.from = 1;
  called.to = 5;
  trace.refuse({0, 0, 0}, called, RefusalCode::evicted);
  trace.step_end();
  BOOST_CHECK_EQUAL(to_text(trace.status_of(kRule)), "pass");
  trace.erase<trace::Refused>();
  trace.edit<trace::RegionMeasured>(trace.count(trace::EventType::RegionMeasured) - 1,
                                    [](trace::RegionMeasured& region) { region.outcome = RefusalCode::none; });
  BOOST_CHECK(says(observed(trace), "rows that are not the ones of those positions"));
}

BOOST_AUTO_TEST_CASE(gathered_and_copied_windows_are_judged_too) {
  Wrapped trace;
  trace.step_begin(0, 0, Operation::window);
  const ViewId pair = trace.window(0, 0, 0, {2, 6});
  const ViewId one = trace.gather(pair);
  const ViewId copy = trace.copied_window(0, 0, 1, {2, 6});
  for (const ViewId id : {one, pair, copy}) trace.close(id);
  trace.scope_reset();
  trace.step_end();
  BOOST_CHECK_EQUAL(to_text(trace.status_of(kRule)), "pass");
  for (const std::size_t run : {4U, 5U}) {  // of the gather, of the copy
    TraceBuilder bad = trace;
    bad.edit<trace::WindowRun>(run, [](trace::WindowRun& told) { told.k_digest += 1; });
    BOOST_CHECK_EQUAL(to_text(bad.status_of(kRule)), "fail");
  }
}

BOOST_AUTO_TEST_CASE(without_digests_it_is_inconclusive) {
  Wrapped trace;
  trace.edit<trace::WindowRun>(0, [](trace::WindowRun& run) { run.k_digest = run.v_digest = 0; });
  BOOST_CHECK_EQUAL(to_text(trace.status_of(kRule)), "inconclusive");
}

BOOST_AUTO_TEST_CASE(without_rows_it_is_vacuous) {
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 4});
  BOOST_CHECK_EQUAL(to_text(trace.status_of(kRule)), "vacuous");
}

BOOST_AUTO_TEST_SUITE_END()
