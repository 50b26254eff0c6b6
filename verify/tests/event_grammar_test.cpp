#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>

using namespace kvwitness;
using namespace kvwitness::verify;
using trace::EventType;
using verify::testing::TraceBuilder;

namespace {

constexpr const char* kRule = "event-grammar";

/// One of everything: two layers, two sequences, a wrap, a gather, a held view, a read, a refusal and each edit.
struct Everything : TraceBuilder {
  Everything() {
    store = ring({.capacity = 8, .window = 4}, 2);
    prefill(store, 0, 5);
    decode(store, 0, 5);
    decode(store, 1, 2, {}, true);
    const trace::ViewId held = window(store, 0, 1, {6, 10});
    attend(held, 9);
    token(store, 0);
    attend(held, 9, 1, {}, true);
    close(held);
    read(store, 0, 0, {8, 11});
    trace::Called too_far{};
    too_far.operation = trace::Operation::window;
    too_far.to = 12;
    too_far.from = 11;
    step_begin(store, 0, too_far.operation);
    expect({store, 0, 0}, too_far.operation, trace::RefusalCode::future);
    refuse({store, 0, 0}, too_far, trace::RefusalCode::future);
    step_end();
    truncate(store, 0, 10);
    evict(store, 0, {0, 5});
    clear(store, 1);
    trace::PhaseBegin outer{};
    outer.span = 1;
    emit({}, outer);
    trace::PhaseBegin inner{};
    inner.span = 2;
    inner.parent = 1;
    emit({}, inner);
    trace::PhaseEnd inner_end{};
    inner_end.span = 2;
    emit({}, inner_end);
    trace::PhaseEnd outer_end{};
    outer_end.span = 1;
    emit({}, outer_end);
    const std::vector<float> values(11, 1.0F);
    record({store, 0, 0}, "sut.out", trace::Plane::out, 9, 9, values);
    end();
  }
  trace::StoreIndex store = 0;

  void remove(std::size_t index) { events.erase(events.begin() + static_cast<std::ptrdiff_t>(index)); }
  void copy(std::size_t from, std::size_t to) {
    const trace::Event event = events[from];
    events.insert(events.begin() + static_cast<std::ptrdiff_t>(to), event);
  }
};

Status status_after(const std::function<void(Everything&)>& edit) {
  Everything trace;
  edit(trace);
  return trace.status_of(kRule);
}

#define CHECK_BROKEN_BY(...) BOOST_CHECK(status_after([](Everything& t) { __VA_ARGS__; }) == Status::fail)

}  // namespace

BOOST_AUTO_TEST_SUITE(event_grammar)

BOOST_AUTO_TEST_CASE(one_of_everything_passes_every_rule) {
  const Everything trace;
  BOOST_CHECK(trace.status_of(kRule) == Status::pass);
  for (const RuleVerdict& rule : trace.verdict().rules) {
    for (const Violation& violation : rule.shown)
      BOOST_ERROR(rule.rule << " at " << violation.event << ": " << violation.expected << " / " << violation.observed);
  }
}

BOOST_AUTO_TEST_CASE(calls_are_bracketed) {
  CHECK_BROKEN_BY(t.erase<trace::Called>(3));
  CHECK_BROKEN_BY(t.erase<trace::RegionMeasured>(0));
  CHECK_BROKEN_BY(t.copy(t.index_of(EventType::RegionMeasured, 0), t.index_of(EventType::RegionMeasured, 0)));
  CHECK_BROKEN_BY(std::swap(t.events[t.index_of(EventType::Called, 0)], t.events[t.index_of(EventType::Append, 0)]));
  CHECK_BROKEN_BY(t.events[t.index_of(EventType::RegionMeasured, 0)].layer = 1);
  CHECK_BROKEN_BY(t.edit<trace::RegionMeasured>(0, [](auto& region) { region.operation = trace::Operation::read; }));
}

BOOST_AUTO_TEST_CASE(a_call_holds_what_it_was_made_for) {
  CHECK_BROKEN_BY(t.erase<trace::WindowOpened>(0));
  CHECK_BROKEN_BY(t.erase<trace::WindowRun>(4));
  CHECK_BROKEN_BY(t.erase<trace::AttentionStep>(2));
  CHECK_BROKEN_BY(t.erase<trace::ReadRows>());
  CHECK_BROKEN_BY(t.erase<trace::Truncate>());
  CHECK_BROKEN_BY(t.erase<trace::Evict>());
  CHECK_BROKEN_BY(t.erase<trace::Clear>());
  CHECK_BROKEN_BY(t.copy(t.index_of(EventType::ReadRows), t.index_of(EventType::Truncate)));
  CHECK_BROKEN_BY(t.events[t.index_of(EventType::Append, 1)].sequence = 1);
}

BOOST_AUTO_TEST_CASE(digests_of_rows_are_told_of_all_or_of_none) {
  CHECK_BROKEN_BY(t.erase<trace::RowDigests>(0));
  CHECK_BROKEN_BY(t.erase<trace::RowDigests>(2));  // the last of the first chunk of five
  CHECK_BROKEN_BY(t.edit<trace::RowDigests>(1, [](auto& rows) { rows.first += 1; }));
  CHECK_BROKEN_BY(t.edit<trace::RowDigests>(0, [](auto& rows) { rows.count = 3; }));
  BOOST_CHECK(status_after([](Everything& t) {
                std::erase_if(t.events, [](const trace::Event& event) { return event.type == EventType::RowDigests; });
              }) == Status::pass);
}

BOOST_AUTO_TEST_CASE(a_refusal_excludes_what_was_done_and_is_repeated) {
  CHECK_BROKEN_BY(t.copy(t.index_of(EventType::Refused), t.index_of(EventType::Refused)));
  CHECK_BROKEN_BY(t.erase<trace::Refused>());
  CHECK_BROKEN_BY(t.edit<trace::Refused>(0, [](auto& refused) { refused.reason = trace::RefusalCode::stale; }));
  CHECK_BROKEN_BY(t.copy(t.index_of(EventType::WindowOpened, 0), t.index_of(EventType::Refused)));
}

BOOST_AUTO_TEST_CASE(a_refused_read_hands_out_nothing) {
  TraceBuilder trace;
  const auto store = trace.ring({.capacity = 4, .window = 4});
  trace.prefill(store, 0, 2);
  trace::Called called{};
  called.operation = trace::Operation::read;
  called.to = 3;
  trace.step_begin(store, 0, called.operation);
  trace.expect({store, 0, 0}, called.operation, trace::RefusalCode::future);
  trace.refuse({store, 0, 0}, called, trace::RefusalCode::future);
  trace.step_end();
  BOOST_CHECK(trace.failing().empty());
  trace.insert(trace.index_of(EventType::Refused), {store, 0, 0}, trace::ReadRows{0, 0, 96, 0, 3, 0});
  BOOST_CHECK(trace.status_of(kRule) == Status::fail);
}

BOOST_AUTO_TEST_CASE(edits_and_refusals_are_read_back_layer_by_layer) {
  for (const std::size_t state : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U}) {
    Everything trace;
    trace.erase<trace::StateDigest>(state);
    BOOST_CHECK(trace.status_of(kRule) == Status::fail);
  }
  CHECK_BROKEN_BY(t.copy(t.index_of(EventType::StateDigest, 0), t.index_of(EventType::StateDigest, 2)));
  CHECK_BROKEN_BY(
      t.edit<trace::StateDigest>(2, [](auto& state) { state.reason = trace::DigestReason::after_refusal; }));
}

BOOST_AUTO_TEST_CASE(steps_stand_one_after_another_and_calls_in_them) {
  CHECK_BROKEN_BY(t.erase<trace::StepBegin>(1));
  CHECK_BROKEN_BY(t.erase<trace::StepEnd>(1));
  CHECK_BROKEN_BY(t.edit<trace::StepEnd>(1, [](auto& end) { end.token = 7; }));
  CHECK_BROKEN_BY(t.edit<trace::StepBegin>(1, [](auto& begin) { begin.step = 1; }));  // the claims have one step
  CHECK_BROKEN_BY(t.events[t.index_of(EventType::StepEnd, 1)].sequence = 1);
  CHECK_BROKEN_BY(const std::size_t end = t.index_of(EventType::StepEnd, 1);
                  std::swap(t.events[end], t.events[end - 1]));  // the token's region after its step
}

BOOST_AUTO_TEST_CASE(phases_nest_by_thread) {
  CHECK_BROKEN_BY(
      std::swap(t.events[t.index_of(EventType::PhaseEnd, 0)], t.events[t.index_of(EventType::PhaseEnd, 1)]));
  CHECK_BROKEN_BY(t.erase<trace::PhaseEnd>(1));
  CHECK_BROKEN_BY(t.erase<trace::PhaseBegin>(0));
  CHECK_BROKEN_BY(t.edit<trace::PhaseBegin>(1, [](auto& begin) { begin.parent = 0; }));
  CHECK_BROKEN_BY(t.edit<trace::PhaseBegin>(1, [](auto& begin) { begin.span = 1; }));
  // The same spans, crossed, on threads of their own: no nesting to keep.
  BOOST_CHECK(status_after([](Everything& t) {
                t.edit<trace::PhaseBegin>(1, [](auto& begin) {
                  begin.thread = 1;
                  begin.parent = 0;
                });
                t.edit<trace::PhaseEnd>(0, [](auto& end) { end.thread = 1; });
                std::swap(t.events[t.index_of(EventType::PhaseEnd, 0)], t.events[t.index_of(EventType::PhaseEnd, 1)]);
              }) == Status::pass);
}

BOOST_AUTO_TEST_CASE(views_are_opened_once_used_while_open_and_closed_once) {
  CHECK_BROKEN_BY(t.erase<trace::WindowClosed>(0));
  CHECK_BROKEN_BY(t.copy(t.index_of(EventType::WindowClosed, 0), t.index_of(EventType::WindowClosed, 0)));
  CHECK_BROKEN_BY(const std::size_t closed = t.index_of(EventType::WindowClosed, 0);
                  t.copy(closed, t.index_of(EventType::AttentionStep, 0) - 1); t.remove(closed + 1));
  CHECK_BROKEN_BY(t.edit<trace::WindowOpened>(1, [](auto& opened) { opened.view = 1; }));
  CHECK_BROKEN_BY(t.edit<trace::AttentionStep>(0, [](auto& step) { step.view = 99; }));
  CHECK_BROKEN_BY(t.events[t.index_of(EventType::WindowClosed, 0)].layer = 1);
}

BOOST_AUTO_TEST_CASE(a_view_that_was_closed_does_not_come_back) {
  TraceBuilder trace;
  const auto store = trace.ring({.capacity = 4, .window = 4});
  trace.prefill(store, 0, 2);
  for (int i = 0; i < 2; ++i) trace.close(trace.window(store, 0, 0, {0, 2}));
  BOOST_CHECK(trace.failing().empty());
  trace.edit<trace::WindowOpened>(1, [](auto& opened) { opened.view = 1; });
  trace.edit<trace::WindowRun>(1, [](auto& run) { run.view = 1; });
  trace.edit<trace::WindowClosed>(1, [](auto& closed) { closed.view = 1; });
  BOOST_CHECK(trace.failing() == std::vector<std::string>{kRule});
}

BOOST_AUTO_TEST_CASE(attention_is_told_query_by_query) {
  CHECK_BROKEN_BY(t.edit<trace::AttentionStep>(0, [](auto& step) { step.query += 1; }));
  CHECK_BROKEN_BY(t.copy(t.index_of(EventType::AttentionStep, 0), t.index_of(EventType::AttentionStep, 0)));
}

BOOST_AUTO_TEST_CASE(only_what_was_declared_is_spoken_of) {
  CHECK_BROKEN_BY(t.erase<trace::StoreCreated>());
  CHECK_BROKEN_BY(t.copy(t.index_of(EventType::StoreCreated), t.index_of(EventType::StoreCreated)));
  CHECK_BROKEN_BY(t.erase<trace::LayerDeclared>(1));
  CHECK_BROKEN_BY(t.erase<trace::LayerFormat>(0));
  CHECK_BROKEN_BY(t.copy(t.index_of(EventType::LayerFormat), t.index_of(EventType::LayerFormat)));
  CHECK_BROKEN_BY(t.events[t.index_of(EventType::Allocation, 1)].layer = 2);
  CHECK_BROKEN_BY(t.events[t.index_of(EventType::Reported, 0)].store = 1);
  CHECK_BROKEN_BY(t.events[t.index_of(EventType::TensorRecorded, 0)].sequence = 2);
  CHECK_BROKEN_BY(t.edit<trace::LayerDeclared>(0, [](auto& layer) { layer.capacity = 0; }));
  CHECK_BROKEN_BY(t.edit<trace::LayerDeclared>(0, [](auto& layer) {
    layer.q_heads = 3;
    layer.kv_heads = 2;
  }));
  CHECK_BROKEN_BY(t.edit<trace::StoreCreated>(0, [](auto& created) { created.sequences = 1U << 20; }));
  CHECK_BROKEN_BY(t.copy(0, 5));
  CHECK_BROKEN_BY(t.remove(0));
}

BOOST_AUTO_TEST_CASE(codes_are_declared_once_a_plane) {
  const auto declared = [](trace::Plane first, trace::Plane second) {
    Everything trace;
    const std::size_t at = trace.index_of(EventType::Allocation);
    for (const trace::Plane plane : {first, second}) {
      trace::LayerCode code{};
      code.plane = plane;
      trace.insert(at, {trace.store, trace::kNoSequence, 0}, code);
    }
    return trace.status_of(kRule);
  };
  BOOST_CHECK(declared(trace::Plane::k, trace::Plane::v) == Status::pass);
  BOOST_CHECK(declared(trace::Plane::k, trace::Plane::k) == Status::fail);
  BOOST_CHECK(declared(trace::Plane::v, trace::Plane::v) == Status::fail);
}

BOOST_AUTO_TEST_CASE(a_sequence_that_the_store_does_not_have_may_be_called) {
  TraceBuilder trace;
  const auto store = trace.ring({.capacity = 4, .window = 4});
  trace::Called called{};
  called.operation = trace::Operation::clear;
  trace.step_begin(store, 7, called.operation);
  trace.expect({store, 7}, called.operation, trace::RefusalCode::unknown_sequence);
  trace.refuse({store, 7}, called, trace::RefusalCode::unknown_sequence);
  trace.step_end();
  BOOST_CHECK(trace.failing().empty());
}

BOOST_AUTO_TEST_CASE(values_follow_their_tensor) {
  CHECK_BROKEN_BY(t.erase<trace::TensorValues>(0));
  CHECK_BROKEN_BY(t.erase<trace::TensorValues>(1));
  CHECK_BROKEN_BY(t.edit<trace::TensorValues>(0, [](auto& values) { values.tensor = 9; }));
  BOOST_CHECK(status_after([](Everything& t) {
                t.erase<trace::TensorValues>(0);
                t.erase<trace::TensorValues>(0);
              }) == Status::pass);
}

BOOST_AUTO_TEST_CASE(it_is_judged_only_where_something_happened) {
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 4});
  BOOST_CHECK(trace.status_of(kRule) == Status::vacuous);
}

BOOST_AUTO_TEST_CASE(a_state_names_a_range_and_its_own_step) {
  CHECK_BROKEN_BY(t.edit<trace::StateDigest>(0, [](auto& state) { state.from = 7, state.to = 0; }));
  CHECK_BROKEN_BY(t.edit<trace::StateDigest>(0, [](auto& state) { state.step = 1; }));
  BOOST_CHECK(status_after([](Everything& t) {
                t.edit<trace::StateDigest>(0, [](auto& state) { state.from = state.to = 7; });
              }) == Status::pass);  // resident-set judges what is held
}

BOOST_AUTO_TEST_CASE(a_refusal_repeats_what_was_asked) {
  CHECK_BROKEN_BY(t.edit<trace::Refused>(0, [](auto& refused) { refused.asked_to = 77; }));
  CHECK_BROKEN_BY(t.edit<trace::Refused>(0, [](auto& refused) { refused.asked_from = 0; }));
  CHECK_BROKEN_BY(t.edit<trace::Refused>(0, [](auto& refused) { refused.view = 5; }));
  // What an append asks for is a number of rows: where they would have gone is not its range.
  TraceBuilder full;
  full.flat({.capacity = 4});
  full.prefill(0, 0, 4);
  trace::Called called{};
  called.operation = trace::Operation::append;
  called.count = 1;
  full.refuse({0, 0, 0}, called, trace::RefusalCode::full);
  BOOST_CHECK(full.status_of(kRule) == Status::pass);
}

BOOST_AUTO_TEST_CASE(a_step_and_token_of_a_sequence_are_told_once) {
  const auto begun_again = [](std::uint32_t token, std::uint32_t iteration, trace::SequenceId sequence) {
    TraceBuilder trace;
    trace.ring({.capacity = 4, .window = 4});
    trace.decode(0, 0, 1);
    trace.decode(0, sequence, 1);
    trace.edit<trace::StepBegin>(0, [](auto& step) { step.iteration = 0; });
    trace.edit<trace::StepBegin>(1, [&](auto& step) { step.token = token, step.iteration = iteration; });
    trace.edit<trace::StepEnd>(1, [&](auto& step) { step.token = token; });
    return trace.status_of(kRule);
  };
  BOOST_CHECK(begun_again(0, 0, 0) == Status::fail);
  BOOST_CHECK(begun_again(1, 0, 0) == Status::pass);
  BOOST_CHECK(begun_again(0, 1, 0) == Status::pass);
  BOOST_CHECK(begun_again(0, 0, 1) == Status::pass);
}

BOOST_AUTO_TEST_CASE(claims_of_a_call_come_in_order) {
  const auto swapped = [](EventType one, EventType other) {
    TraceBuilder trace;
    trace.ring({.capacity = 4, .window = 4});
    trace.prefill(0, 0, 4);
    trace.append(0, 0, 0, 1);  // RowDigests Overwrite Append
    std::swap(trace.events[trace.index_of(one, one == EventType::RowDigests ? 2 : 0)],
              trace.events[trace.index_of(other, other == EventType::Append ? 1 : 0)]);
    return trace.status_of(kRule);
  };
  BOOST_CHECK(swapped(EventType::Append, EventType::Append) == Status::pass);
  BOOST_CHECK(swapped(EventType::RowDigests, EventType::Append) == Status::fail);
  BOOST_CHECK(swapped(EventType::Overwrite, EventType::Append) == Status::fail);
  BOOST_CHECK(swapped(EventType::RowDigests, EventType::Overwrite) == Status::fail);
  const auto edited = [](bool moves_behind) {
    TraceBuilder trace;
    trace.compact({.capacity = 8});
    trace.prefill(0, 0, 6);
    trace.evict(0, 0, {1, 3});
    if (moves_behind)
      std::swap(trace.events[trace.index_of(EventType::Move)], trace.events[trace.index_of(EventType::Evict)]);
    return trace.status_of(kRule);
  };
  BOOST_CHECK(edited(false) == Status::pass);
  BOOST_CHECK(edited(true) == Status::fail);
}

BOOST_AUTO_TEST_CASE(what_is_no_part_of_a_call_stands_outside_of_it) {
  const auto with_close_at = [](std::size_t behind_call) {
    TraceBuilder trace;
    trace.ring({.capacity = 4, .window = 4});
    trace.prefill(0, 0, 4);
    trace.step_begin(0, 0, trace::Operation::window);
    const trace::ViewId view = trace.window(0, 0, 0, {0, 4});
    trace.window(0, 0, 0, {0, 4});
    trace.step_end();
    trace::WindowClosed closed{};
    closed.view = view;
    trace.insert(trace.index_of(EventType::Called, 2) + behind_call, {0, 0, 0}, closed);
    trace.close(view + 1);
    return trace.status_of(kRule);
  };
  BOOST_CHECK(with_close_at(0) == Status::pass);
  BOOST_CHECK(with_close_at(1) == Status::fail);
  CHECK_BROKEN_BY(
      std::swap(t.events[t.index_of(EventType::StepEnd, 0)], t.events[t.index_of(EventType::StepEnd, 0) - 1]));
}

BOOST_AUTO_TEST_SUITE_END()
