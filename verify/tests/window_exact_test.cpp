#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

constexpr std::string_view kRule = "window-exact";

RuleVerdict judged(const TraceBuilder& trace) {
  return trace.verdict_of(kRule);
}
std::string status(const TraceBuilder& trace) {
  return std::string(to_text(trace.status_of(kRule)));
}

/// Decode of nine tokens in a ring of eight; the last query, 8, sees [5, 8].
struct Decode : TraceBuilder {
  Decode() {
    ring({.capacity = 8, .window = 4});
    decode(0, 0, 9);
  }
  template <class F>
  TraceBuilder with_step(std::size_t nth, F&& change) const {
    TraceBuilder edited = *this;
    edited.edit<trace::AttentionStep>(nth, change);
    return edited;
  }
};

/// A chunk of three rows behind five, attended at once: queries 5, 6, 7.
struct Chunk : TraceBuilder {
  Chunk() {
    ring({.capacity = 8, .window = 4});
    step_begin(0, 0, Operation::prefill);
    append(0, 0, 0, 5);
    append(0, 0, 0, 3);
    const ViewId view = window(0, 0, 0, {2, 8});
    attend(view, 5, 3);
    close(view);
    step_end();
  }
};

trace::AttentionStep seen(trace::AttentionStep step, Position first, Position last) {
  step.first_key = first;
  step.last_key = last;
  step.visited = step.rows_read = last - first + 1;
  return step;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(window_exact)

BOOST_AUTO_TEST_CASE(decode_and_chunk_of_a_correct_path_pass) {
  BOOST_CHECK_EQUAL(status(Decode()), "pass");
  BOOST_CHECK_EQUAL(judged(Decode()).met, 9U);
  BOOST_CHECK_EQUAL(status(Chunk()), "pass");
  BOOST_CHECK(Chunk().failing().empty());
}

BOOST_AUTO_TEST_CASE(one_key_more_or_less_fails) {
  const Decode trace;
  const auto more = trace.with_step(8, [](trace::AttentionStep& step) { step = seen(step, 4, 8); });
  BOOST_CHECK_EQUAL(status(more), "fail");
  BOOST_CHECK_EQUAL(judged(more).shown.back().expected, "query 8 sees keys [5, 9)");
  BOOST_CHECK_EQUAL(status(trace.with_step(8, [](auto& step) { step = seen(step, 6, 8); })), "fail");
}

BOOST_AUTO_TEST_CASE(the_right_number_of_the_wrong_keys_fails) {
  const Decode trace;
  BOOST_CHECK_EQUAL(status(trace.with_step(8, [](trace::AttentionStep& step) { step.first_key = 4; })), "fail");
  BOOST_CHECK_EQUAL(status(trace.with_step(8, [](trace::AttentionStep& step) { step.last_key = 9; })), "fail");
}

BOOST_AUTO_TEST_CASE(a_query_that_does_not_see_itself_fails) {
  const auto trace = Decode().with_step(8, [](trace::AttentionStep& step) { step = seen(step, 5, 7); });
  BOOST_CHECK_EQUAL(status(trace), "fail");
}

BOOST_AUTO_TEST_CASE(no_key_at_all_fails) {
  const auto trace = Decode().with_step(8, [](trace::AttentionStep& step) {
    step.first_key = step.last_key = trace::kNoPosition;
    step.visited = 0;
  });
  BOOST_CHECK_EQUAL(status(trace), "fail");
  BOOST_CHECK_EQUAL(judged(trace).shown.front().observed, "no key");
}

BOOST_AUTO_TEST_CASE(a_window_that_the_path_opened_too_short_fails) {
  // The view itself is short: decode does not get away with a window that holds less than the layer's.
  TraceBuilder trace;
  trace.ring({.capacity = 8, .window = 4});
  trace.decode(0, 0, 5);
  trace.step_begin(0, 0, Operation::decode);
  trace.append(0, 0, 0, 1);
  const ViewId view = trace.window(0, 0, 0, {4, 6});
  trace.attend(view, 5);
  trace.close(view);
  trace.step_end();
  BOOST_CHECK_EQUAL(status(trace), "fail");
}

BOOST_AUTO_TEST_CASE(a_view_that_the_script_chose_bounds_what_is_seen) {
  TraceBuilder trace;
  trace.ring({.capacity = 8, .window = 4});
  trace.step_begin(0, 0, Operation::window);
  trace.append(0, 0, 0, 6);
  const ViewId view = trace.window(0, 0, 0, {4, 6});
  trace.step_end();
  trace.step_begin(0, 0, Operation::attend);
  trace.attend(view, 5);
  const ViewId gathered = trace.gather(view);
  trace.attend(gathered, 5);
  trace.close(gathered);
  trace.scope_reset();
  trace.close(view);
  trace.step_end();
  BOOST_CHECK_EQUAL(status(trace), "pass");
  for (const std::size_t step : {0U, 1U}) {
    TraceBuilder bad = trace;
    bad.edit<trace::AttentionStep>(step, [](trace::AttentionStep& told) { told = seen(told, 5, 5); });
    BOOST_CHECK_EQUAL(status(bad), "fail");
  }
}

BOOST_AUTO_TEST_CASE(an_attend_over_a_view_of_its_own_sees_its_whole_window) {
  TraceBuilder trace;
  trace.ring({.capacity = 8, .window = 4});
  trace.prefill(0, 0, 6);
  trace.step_begin(0, 0, Operation::attend);
  const ViewId view = trace.window(0, 0, 0, {4, 6});
  trace.attend(view, 5);
  trace.close(view);
  trace.step_end();
  BOOST_CHECK_EQUAL(status(trace), "fail");
}

BOOST_AUTO_TEST_CASE(the_first_rows_bound_for_the_whole_chunk_fails) {
  Chunk trace;
  trace.edit<trace::AttentionStep>(1, [](trace::AttentionStep& step) { step = seen(step, 2, 6); });
  BOOST_CHECK_EQUAL(status(trace), "fail");
}

BOOST_AUTO_TEST_CASE(a_key_of_the_future_fails) {
  Chunk trace;
  trace.edit<trace::AttentionStep>(0, [](trace::AttentionStep& step) { step = seen(step, 2, 6); });
  BOOST_CHECK_EQUAL(status(trace), "fail");
}

BOOST_AUTO_TEST_CASE(each_layer_has_its_own_window) {
  TraceBuilder trace;
  trace.ring(std::vector<LayerSpec>{{.capacity = 8, .window = 4}, {.capacity = 16, .sliding = false}});
  trace.decode(0, 0, 6);
  BOOST_CHECK_EQUAL(status(trace), "pass");
  // The full layer looks through the other one's window.
  trace.edit<trace::AttentionStep>(11, [](trace::AttentionStep& step) { step = seen(step, 2, 5); });
  BOOST_CHECK_EQUAL(status(trace), "fail");
}

BOOST_AUTO_TEST_CASE(a_layer_that_slides_without_a_window_sees_what_it_holds) {
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 0});
  trace.decode(0, 0, 7);
  BOOST_CHECK_EQUAL(status(trace), "pass");
  BOOST_CHECK_EQUAL(trace.payload<trace::AttentionStep>(6).first_key, 3U);
}

BOOST_AUTO_TEST_CASE(rows_copied_out_of_a_layer_that_slides_leave_its_window_as_well) {
  // Positions 0 to 3 were copied out before 4 and 5 took the slots of 0 and 1: query 5 sees [2, 6).
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 0});
  trace.step_begin(0, 0, Operation::window);
  trace.append(0, 0, 0, 4);
  const ViewId view = trace.copied_window(0, 0, 0, {0, 4});
  for (int i = 0; i < 2; ++i) trace.append(0, 0, 0, 1);
  trace.step_end();
  trace.step_begin(0, 0, Operation::attend);
  trace.attend(view, 5);
  trace.close(view);
  trace.step_end();
  BOOST_CHECK_EQUAL(status(trace), "fail");
  trace.edit<trace::AttentionStep>(0, [](trace::AttentionStep& step) { step = seen(step, 2, 3); });
  BOOST_CHECK_EQUAL(status(trace), "pass");
}

BOOST_AUTO_TEST_CASE(a_view_of_another_layer_fails) {
  TraceBuilder trace;
  trace.ring({.capacity = 8, .window = 4}, 2);
  trace.step_begin(0, 0, Operation::decode);
  trace.append(0, 0, 0, 1);
  const ViewId first = trace.window(0, 0, 0, {0, 1});
  trace.attend(first, 0);
  trace.append(0, 0, 1, 1);
  const ViewId second = trace.window(0, 0, 1, {0, 1});
  trace.attend(second, 0);
  trace.close(first);
  trace.close(second);
  trace.step_end();
  BOOST_CHECK_EQUAL(status(trace), "pass");
  trace.edit<trace::AttentionStep>(1, [&](trace::AttentionStep& step) { step.view = first; });
  BOOST_CHECK_EQUAL(status(trace), "fail");
}

BOOST_AUTO_TEST_CASE(more_rows_read_than_the_view_has_fail) {
  const Decode trace;
  BOOST_CHECK_EQUAL(status(trace.with_step(8, [](trace::AttentionStep& step) { step.rows_read = 5; })), "fail");
  BOOST_CHECK_EQUAL(status(trace.with_step(8, [](trace::AttentionStep& step) { step.rows_read = 3; })), "fail");
}

BOOST_AUTO_TEST_CASE(a_query_left_out_of_a_chunk_fails) {
  Chunk trace;
  trace.erase<trace::AttentionStep>(2);
  BOOST_CHECK_EQUAL(status(trace), "fail");
}

BOOST_AUTO_TEST_CASE(queries_out_of_order_fail) {
  Chunk trace;
  std::swap(trace.events[trace.index_of(trace::EventType::AttentionStep, 0)],
            trace.events[trace.index_of(trace::EventType::AttentionStep, 1)]);
  BOOST_CHECK_EQUAL(status(trace), "fail");
}

BOOST_AUTO_TEST_CASE(a_query_numbered_within_its_chunk_fails) {
  Chunk trace;
  trace.edit<trace::AttentionStep>(0, [](trace::AttentionStep& step) { step.query = 0; });
  BOOST_CHECK_EQUAL(status(trace), "fail");
}

BOOST_AUTO_TEST_CASE(pieces_of_a_mask_have_to_be_the_keys_of_the_step) {
  const Decode whole;
  const std::size_t at = whole.index_of(trace::EventType::AttentionStep, 8) + 1;
  const ViewId view = whole.payload<trace::AttentionStep>(8).view;
  const auto with_pieces = [&](std::vector<Range> pieces, std::uint32_t visited) {
    TraceBuilder trace = whole;
    trace.edit<trace::AttentionStep>(8, [&](trace::AttentionStep& step) { step.visited = visited; });
    for (std::size_t i = pieces.size(); i-- > 0;) {
      trace.insert(at, {0, 0, 0}, trace::AttentionRun{view, 8, pieces[i].from, pieces[i].count(), {}});
    }
    return trace;
  };
  BOOST_CHECK_EQUAL(status(with_pieces({{5, 7}, {7, 9}}, 4)), "pass");
  BOOST_CHECK_EQUAL(status(with_pieces({{5, 6}, {7, 9}}, 4)), "fail");
  const TraceBuilder hole = with_pieces({{5, 6}, {7, 9}}, 3);
  BOOST_CHECK_EQUAL(status(hole), "fail");
  BOOST_CHECK_EQUAL(judged(hole).shown.front().observed, "3 keys from 5 to 8: [5, 6) [7, 9)");
}

BOOST_AUTO_TEST_CASE(without_attention_it_is_vacuous) {
  TraceBuilder trace;
  trace.ring({.capacity = 8, .window = 4});
  trace.prefill(0, 0, 3);
  BOOST_CHECK_EQUAL(status(trace), "vacuous");
}

BOOST_AUTO_TEST_CASE(what_a_black_box_visited_is_left_to_its_outputs) {
  Decode trace;
  for (std::size_t nth = 0; nth < 9; ++nth) {
    trace.edit<trace::AttentionStep>(nth, [](trace::AttentionStep& step) {
      step.kernel = trace::KernelKind::black_box;
      step.first_key = step.last_key = trace::kNoPosition;
      step.visited = step.rows_read = 0;
    });
  }
  BOOST_CHECK_EQUAL(status(trace), "vacuous");
  BOOST_CHECK(trace.failing().empty());
  Decode tells;
  tells.edit<trace::AttentionStep>(8, [](trace::AttentionStep& step) {
    step.kernel = trace::KernelKind::black_box;
    ++step.first_key;
  });
  BOOST_CHECK_EQUAL(status(tells), "fail");
}

/// An engine that frees a key too early tells an eviction, as one does that was asked for it: the verdict says so.
BOOST_AUTO_TEST_CASE(queries_whose_window_was_evicted_are_noted) {
  TraceBuilder late;
  late.ring({.capacity = 8, .window = 4});
  late.decode(0, 0, 6);
  TraceBuilder early = late;
  late.evict(0, 0, {0, 3});  // the next query, 6, sees [3, 6]
  late.decode(0, 0, 1);
  BOOST_TEST(judged(late).note == "");
  early.evict(0, 0, {0, 4});
  early.decode(0, 0, 2);
  BOOST_TEST(status(early) == "pass");
  BOOST_TEST(judged(early).note == "1 queries saw less than their window, since rows in it were evicted on request");
}

BOOST_AUTO_TEST_SUITE_END()
