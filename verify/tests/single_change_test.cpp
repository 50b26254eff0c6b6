// One event changed, told twice or put elsewhere, where no other rule would see it: the rule that does, and the
// nearest trace that is right.
#include "kvwitness/verify/model.hpp"
#include "naive_attention.hpp"
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;
using trace::EventType;

namespace {

using Change = std::function<void(TraceBuilder&)>;

std::string failing(const TraceBuilder& trace) {
  std::string all;
  for (const std::string& rule : trace.failing()) all += (all.empty() ? "" : " ") + rule;
  return all;
}

/// Three tokens of a ring, then a read, a clear and the end.
TraceBuilder small() {
  TraceBuilder trace;
  const StoreIndex store = trace.ring({.capacity = 4, .window = 4});
  trace.decode(store, 0, 3);
  trace.read(store, 0, 0, {0, 2});
  trace.decode(store, 1, 1);
  trace.clear(store, 1);
  trace.end();
  return trace;
}

std::string after(TraceBuilder trace, const Change& change) {
  change(trace);
  return failing(trace);
}

/// Of the first event of the type whose payload is of the operation.
template <class P>
void edit_call(TraceBuilder& trace, Operation operation, const std::function<void(P&)>& change) {
  for (std::size_t nth = 0; nth < trace.count(trace::kTypeOf<P>); ++nth)
    if (trace.payload<P>(nth).operation == operation) return trace.edit<P>(nth, change);
  BOOST_FAIL("no such call");
}

void move_event(TraceBuilder& trace, std::size_t from, std::size_t to) {
  const Event event = trace.events[from];
  trace.events.erase(trace.events.begin() + static_cast<std::ptrdiff_t>(from));
  trace.events.insert(trace.events.begin() + static_cast<std::ptrdiff_t>(to), event);
}

/// A refused window of sequence 0, expected by `expected` events in front of it.
TraceBuilder refused_window(const std::vector<trace::Event>& expected) {
  TraceBuilder trace;
  const StoreIndex store = trace.ring({.capacity = 4, .window = 4}, 2);
  trace.prefill(store, 0, 2);
  trace::Called called{};
  called.operation = Operation::window;
  called.to = 3;
  trace.step_begin(store, 0, Operation::window);
  trace.events.insert(trace.events.end(), expected.begin(), expected.end());
  trace.refuse({store, 0, 1}, called, RefusalCode::future);
  trace.step_end();
  return trace;
}

Event expectation(LayerIndex layer, std::uint32_t step = 0) {
  trace::Expected expected{};
  expected.operation = Operation::window;
  expected.outcome = RefusalCode::future;
  expected.step = step;
  return trace::make_event({0, 0, layer}, expected);
}

/// An output of a query that comes from the stream `tokens`, or from none.
TraceBuilder recorded(bool is_of_stream = true) {
  TraceBuilder trace;
  const NameHash stream = trace.stream("tokens", trace::StreamKind::coded);
  const StoreIndex store = trace.ring({.capacity = 4, .window = 4});
  trace.decode(store, 0, 2, {stream, 5});
  trace.step_begin(store, 0, Operation::attend);
  const ViewId view = trace.window(store, 0, 0, {0, 2});
  trace.attend(view, 1, 1, {is_of_stream ? stream : 0, 6});
  constexpr std::array<float, 8> kRow{1, 2, 3, 4, 5, 6, 7, 8};
  trace.record({store, 0, 0}, "sut.out", trace::Plane::out, 1, 6, kRow);
  trace.close(view);
  trace.step_end();
  trace.edit<trace::TensorRecorded>(0, [](auto& tensor) { tensor.digest = 0; });
  return trace;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(single_change)

// ---- calls ----------------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(members_that_a_call_does_not_use_are_0) {
  BOOST_TEST(failing(small()) == "");
  const auto with = [](Operation operation, const std::function<void(trace::Called&)>& change) {
    return after(small(), [&](TraceBuilder& trace) { edit_call<trace::Called>(trace, operation, change); });
  };
  BOOST_TEST(with(Operation::append, [](auto& called) { called.view = 1; }) == "event-grammar");
  BOOST_TEST(with(Operation::append, [](auto& called) { called.to = 1; }) == "event-grammar");
  BOOST_TEST(with(Operation::append, [](auto& called) { called.from = called.to = 1; }) == "event-grammar");
  BOOST_TEST(with(Operation::append, [](auto& called) { called.file = 1; }) == "event-grammar");
  BOOST_TEST(with(Operation::window, [](auto& called) { called.stream = 1; }) == "event-grammar");
  BOOST_TEST(with(Operation::window, [](auto& called) { called.count = 1; }) == "event-grammar");
  BOOST_TEST(with(Operation::attend, [](auto& called) { called.file = 1; }) == "event-grammar");
  BOOST_TEST(with(Operation::read, [](auto& called) { called.ordinal = 1; }) == "event-grammar");
  BOOST_TEST(with(Operation::clear, [](auto& called) { called.from = 1; }) == "event-grammar");
  // Where rows and queries come from may be told of each.
  BOOST_TEST(with(Operation::append, [](auto& called) { called.stream = 1, called.ordinal = 7; }) == "");
}

BOOST_AUTO_TEST_CASE(only_appends_of_rotated_keys_say_to_which_positions) {
  TraceBuilder trace;
  const StoreIndex store = trace.compact({.capacity = 4, .rope = true});
  trace.prefill(store, 0, 2);
  BOOST_TEST((trace.payload<trace::Called>().from < trace.payload<trace::Called>().to));
  BOOST_TEST(failing(trace) == "");
  trace.edit<trace::Called>(0, [](auto& called) { called.from = called.to = 0; });
  BOOST_TEST(trace.expects("event-grammar", "uses") == false);
  trace.edit<trace::Called>(0, [](auto& called) { called.from = called.to = 2; });
  BOOST_TEST(trace.expects("event-grammar", "only what the append uses"));
}

BOOST_AUTO_TEST_CASE(a_store_is_asked_what_stores_can_do) {
  for (const Operation operation : {Operation::mark, Operation::drop}) {
    TraceBuilder trace;
    const StoreIndex store = trace.ring({.capacity = 4, .window = 4});
    trace.prefill(store, 0, 2);
    trace::Called called{};
    called.operation = operation;
    trace.refuse({store, 0}, called, RefusalCode::unsupported);
    BOOST_TEST(trace.expects("event-grammar", "what a store can be asked") == (operation == Operation::mark));
  }
}

BOOST_AUTO_TEST_CASE(an_attend_is_called_for_as_many_queries_as_its_range_has) {
  TraceBuilder trace = small();
  edit_call<trace::Called>(trace, Operation::attend, [](auto& called) { ++called.to; });
  BOOST_TEST(trace.expects("event-grammar", "1 queries from position 0 on"));
}

BOOST_AUTO_TEST_CASE(one_row_has_the_digests_of_one) {
  const auto with = [](const std::function<void(trace::RowDigests&)>& change) {
    return after(small(), [&](TraceBuilder& trace) { trace.edit<trace::RowDigests>(0, change); });
  };
  BOOST_TEST(with([](auto& rows) { rows.k1 = 1; }) == "event-grammar");
  BOOST_TEST(with([](auto& rows) { rows.v1 = 1; }) == "event-grammar");
}

BOOST_AUTO_TEST_CASE(adapters_name_what_their_call_hands_out) {
  const auto copied = [] {
    TraceBuilder trace;
    const StoreIndex store = trace.ring({.capacity = 4, .window = 4}, 2);
    trace.prefill(store, 0, 2);
    trace.close(trace.copied_window(store, 0, 0, {0, 2}));
    trace.read(store, 0, 0, {0, 2});
    return trace;
  };
  BOOST_TEST(failing(copied()) == "");
  const auto with = [&](std::size_t nth, const std::function<void(trace::AdapterInserted&)>& change) {
    return after(copied(), [&](TraceBuilder& trace) { trace.edit<trace::AdapterInserted>(nth, change); });
  };
  BOOST_TEST(with(0, [](auto& adapter) { adapter.view = 0; }) == "event-grammar");
  BOOST_TEST(with(true, [](auto& adapter) { ++adapter.view; }) == "event-grammar");
  BOOST_TEST(with(2, [](auto& adapter) { adapter.view = 1; }) == "event-grammar");
  for (const std::size_t nth : {0U, 3U}) {
    BOOST_TEST(after(copied(), [&](TraceBuilder& trace) {
                 trace.events[trace.index_of(EventType::AdapterInserted, nth)].sequence = 1;
               }) == "event-grammar");
    BOOST_TEST(after(copied(), [&](TraceBuilder& trace) {
                 trace.events[trace.index_of(EventType::AdapterInserted, nth)].layer = 1;
               }) == "event-grammar");
  }
  BOOST_TEST(after(copied(), [](TraceBuilder& trace) {
               move_event(trace, trace.index_of(EventType::AdapterInserted, 3), trace.index_of(EventType::ReadRows));
             }) == "event-grammar");
}

BOOST_AUTO_TEST_CASE(nothing_that_was_allocated_has_no_bytes) {
  TraceBuilder trace = small();
  edit_call<trace::RegionMeasured>(trace, Operation::read, [](auto& region) { region.bytes = 16; });
  BOOST_TEST(failing(trace) == "event-grammar");
  edit_call<trace::RegionMeasured>(trace, Operation::read, [](auto& region) { region.allocations = 1; });
  BOOST_TEST(failing(trace) == "");
  edit_call<trace::RegionMeasured>(trace, Operation::read, [](auto& region) { region.bytes = 0; });  // malloc(0)
  BOOST_TEST(failing(trace) == "");
}

BOOST_AUTO_TEST_CASE(a_token_took_what_its_calls_took) {
  const auto with = [](const std::function<void(trace::RegionMeasured&)>& of_call,
                       const std::function<void(trace::RegionMeasured&)>& of_token) {
    TraceBuilder trace;
    trace.decode(trace.ring({.capacity = 4, .window = 4}), 0, 1);
    trace.edit<trace::RegionMeasured>(0, of_call);
    trace.edit<trace::RegionMeasured>(3, of_token);
    return failing(trace);
  };
  const auto took = [](std::uint64_t allocations, std::uint64_t bytes, std::uint32_t faults = 0) {
    return [=](trace::RegionMeasured& region) {
      region.allocations = allocations;
      region.bytes = bytes;
      region.faults = faults;
    };
  };
  BOOST_TEST(with(took(1, 16), took(1, 16)) == "");
  BOOST_TEST(with(took(1, 16), took(2, 40, 3)) == "");
  BOOST_TEST(with(took(1, 16), took(0, 0)) == "trace-truth");
  BOOST_TEST(with(took(1, 16), took(1, 15)) == "trace-truth");
  BOOST_TEST(with(took(0, 0, 1), took(0, 0, 1)) == "trace-truth");
}

BOOST_AUTO_TEST_CASE(a_tensor_is_recorded_between_calls) {
  TraceBuilder trace = recorded(false);
  BOOST_TEST(failing(trace) == "");
  const std::size_t at = trace.index_of(EventType::TensorRecorded);
  std::swap(trace.events[at], trace.events[at - 1]);  // inside of the attend
  BOOST_TEST(trace.expects("event-grammar", "TensorRecorded outside of calls"));
}

BOOST_AUTO_TEST_CASE(a_row_is_lost_from_the_slot_that_it_was_written_to) {
  const auto with = [](bool is_ring, std::optional<Slot> slot) {
    TraceBuilder trace;
    trace.decode(trace.ring({.capacity = 4, .window = 4}), 0, 6);
    if (!is_ring)
      trace.edit<trace::StoreCreated>(0, [](trace::StoreCreated& store) {
        store.capabilities &= ~static_cast<std::uint64_t>(trace::Capability::ring);
      });
    if (slot) trace.edit<trace::Overwrite>(0, [&](auto& overwrite) { overwrite.slot = *slot; });
    return failing(trace);
  };
  for (const bool is_ring : {true, false}) {
    BOOST_TEST(with(is_ring, {}) == "");
    BOOST_TEST(with(is_ring, 1) == "trace-truth");
  }
  BOOST_TEST(with(true, trace::kNoSlot) == "trace-truth");
  BOOST_TEST(with(false, trace::kNoSlot) == "");  // a store may keep its slots to itself
}

BOOST_AUTO_TEST_CASE(the_pieces_of_a_mask_are_the_keys_that_were_seen) {
  const auto with = [](const std::vector<Range>& pieces) {
    TraceBuilder trace;
    const StoreIndex store = trace.flat({.capacity = 8});
    trace.prefill(store, 0, 5);
    const ViewId view = trace.window(store, 0, 0, {0, 5});
    trace.attend(view, 3);
    trace.close(view);
    std::size_t at = trace.index_of(EventType::AttentionStep);
    for (const Range& piece : pieces)
      trace.insert(++at, {store, 0, 0}, trace::AttentionRun{view, 3, piece.from, piece.count(), {}});
    return failing(trace);
  };
  BOOST_TEST(with({{0, 4}}) == "");
  BOOST_TEST(with({{0, 1}, {1, 4}}) == "");
  BOOST_TEST(with({{1, 5}}) == "window-exact");
  BOOST_TEST(with({{0, 2}, {3, 5}}) == "window-exact");
  BOOST_TEST(with({{0, 1}, {2, 3}, {4, 6}}) == "window-exact");
}

// ---- what surrounds them --------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(the_end_is_told_once_and_last) {
  const auto last_state = [](TraceBuilder& trace) {
    return trace.index_of(EventType::StateDigest, trace.count(EventType::StateDigest) - 1);
  };
  BOOST_TEST(after(small(), [&](TraceBuilder& trace) {
               const std::size_t at = last_state(trace);
               const Event again = trace.events[at];
               trace.insert(at, {}, trace::payload_of<trace::StateDigest>(again));
               trace.events[at] = again;
             }) == "event-grammar");
  BOOST_TEST(after(small(), [&](TraceBuilder& trace) {
               const std::size_t at = last_state(trace);
               move_event(trace, at, trace.index_of(EventType::StepEnd, trace.count(EventType::StepEnd) - 1));
             }) == "event-grammar");
  TraceBuilder called = small();
  move_event(called, last_state(called), called.index_of(EventType::StepBegin, 3));
  BOOST_TEST(called.expects("event-grammar", "the store's states at the end behind its last call"));
}

BOOST_AUTO_TEST_CASE(states_at_the_end_come_in_any_order) {
  TraceBuilder trace;
  const StoreIndex store = trace.ring({.capacity = 4, .window = 4}, 2);
  trace.prefill(store, 0, 2);
  trace.prefill(store, 1, 1);
  trace.end();
  BOOST_REQUIRE_EQUAL(trace.count(EventType::StateDigest), 4U);
  std::swap(trace.events[trace.index_of(EventType::StateDigest, 0)],
            trace.events[trace.index_of(EventType::StateDigest, 3)]);
  BOOST_TEST(failing(trace) == "");
}

BOOST_AUTO_TEST_CASE(an_outcome_is_expected_once_of_its_own_call) {
  BOOST_TEST(failing(refused_window({expectation(1)})) == "");
  BOOST_TEST(failing(refused_window({expectation(trace::kNoLayer)})) == "");
  BOOST_TEST(failing(refused_window({expectation(1), expectation(1)})) == "expected-outcome");
  BOOST_TEST(failing(refused_window({expectation(0)})) == "expected-outcome");
  BOOST_TEST(failing(refused_window({expectation(1, 1)})) == "event-grammar");
  TraceBuilder early = refused_window({expectation(1)});
  const std::size_t at = early.index_of(EventType::Expected);
  std::swap(early.events[at], early.events[at - 1]);
  BOOST_TEST(failing(early) == "event-grammar");
}

BOOST_AUTO_TEST_CASE(a_held_view_is_told_again_where_its_store_was_written) {
  for (const bool is_told : {true, false}) {
    for (const bool is_written : {true, false}) {
      TraceBuilder trace;
      const StoreIndex store = trace.ring({.capacity = 4, .window = 4});
      trace.prefill(store, 0, 2);
      const ViewId view = trace.window(store, 0, 0, {0, 2});
      if (is_written) trace.prefill(store, 1, 1);
      trace.attend(view, 1, 1, {}, is_told);
      trace.attend(view, 1);
      trace.close(view);
      BOOST_TEST(failing(trace) == (is_written && !is_told ? "event-grammar" : ""));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_view_has_a_number) {
  TraceBuilder trace;
  const StoreIndex store = trace.ring({.capacity = 4, .window = 4});
  trace.prefill(store, 0, 2);
  trace.close(trace.window(store, 0, 0, {0, 2}));
  BOOST_TEST(failing(trace) == "");
  trace.edit<trace::WindowOpened>(0, [](auto& opened) { opened.view = 0; });
  trace.edit<trace::WindowRun>(0, [](auto& run) { run.view = 0; });
  trace.edit<trace::WindowClosed>(0, [](auto& closed) { closed.view = 0; });
  BOOST_TEST(trace.expects("event-grammar", "a view of its own number"));
}

BOOST_AUTO_TEST_CASE(attention_over_one_view_too_many_is_survived) {
  TraceBuilder trace;
  const StoreIndex store = trace.ring({.capacity = 4, .window = 4});
  trace.prefill(store, 0, 2);
  ViewId last = 0;
  for (std::size_t i = 0; i <= kModelViewsMax; ++i) last = trace.window(store, 0, 0, {0, 2});
  trace.attend(last, 1);
  BOOST_TEST(trace.expects("event-grammar", "open views"));
}

// ---- outputs --------------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_tensor_has_a_number_of_its_own_and_its_values_its_subject) {
  const auto told_twice = [](bool has_values, std::uint32_t tensor, NameHash label) {
    TraceBuilder trace = recorded(false);
    const std::size_t at = trace.index_of(EventType::TensorRecorded);
    const std::vector<Event> again(trace.events.begin() + static_cast<std::ptrdiff_t>(at),
                                   trace.events.begin() + static_cast<std::ptrdiff_t>(at + (has_values ? 2 : 1)));
    trace.events.insert(trace.events.begin() + static_cast<std::ptrdiff_t>(at), again.begin(), again.end());
    trace.edit<trace::TensorRecorded>(0, [&](auto& first) { first.tensor = tensor, first.label = label; });
    if (has_values) trace.edit<trace::TensorValues>(0, [&](auto& values) { values.tensor = tensor; });
    return failing(trace);
  };
  const std::uint32_t number = recorded(false).payload<trace::TensorRecorded>().tensor;
  const NameHash label = recorded(false).payload<trace::TensorRecorded>().label;
  BOOST_TEST(told_twice(true, number, label) == "event-grammar trace-truth");
  BOOST_TEST(told_twice(true, number, label + 1) == "event-grammar");
  BOOST_TEST(told_twice(true, number + 1, label + 1) == "");
  BOOST_TEST(told_twice(true, number + 1, label) == "trace-truth");
  BOOST_TEST(told_twice(false, number, label) == "trace-truth");
  BOOST_TEST(told_twice(false, number, label + 1) == "");  // a number without values is none
  BOOST_TEST(after(recorded(false), [](TraceBuilder& trace) {
               trace.events[trace.index_of(EventType::TensorValues)].sequence = 1;
             }) == "event-grammar");
  BOOST_TEST(after(recorded(false), [](TraceBuilder& trace) {
               trace.events[trace.index_of(EventType::TensorValues)].layer = trace::kNoLayer;
             }) == "event-grammar");
}

BOOST_AUTO_TEST_CASE(an_output_has_the_ordinal_of_its_query) {
  const auto with = [](bool is_of_stream, std::uint32_t ordinal) {
    TraceBuilder trace = recorded(is_of_stream);
    trace.edit<trace::TensorRecorded>(0, [&](auto& tensor) { tensor.ordinal = ordinal; });
    return trace.expects("trace-truth", "the output of ordinal 6");
  };
  BOOST_TEST(!with(true, 6));
  BOOST_TEST(!with(true, 0));  // paired by order
  BOOST_TEST(with(true, 7));
  BOOST_TEST(!with(false, 7));  // queries of no stream are counted as their producer likes
}

BOOST_AUTO_TEST_CASE(an_output_without_values_among_others_with_them_is_no_pass) {
  TraceBuilder trace;
  const NameHash stream = trace.stream("tokens", trace::StreamKind::coded);
  trace.ring({.capacity = 8, .window = 4, .head_dim = 4});
  for (std::uint32_t i = 0; i < 3; ++i) decode_recorded(trace, 0, 0, {stream, i}, "sut.out");
  BOOST_TEST((trace.status_of("numeric-oracle") == Status::pass));
  for (const std::size_t nth : {0U, 1U, 2U}) {
    TraceBuilder lost = trace;
    lost.erase<trace::TensorValues>(nth);
    BOOST_TEST((lost.status_of("numeric-oracle") == Status::inconclusive));
    BOOST_TEST(failing(lost) == "");
  }
  std::erase_if(trace.events, [](const Event& event) { return event.type == EventType::TensorValues; });
  BOOST_TEST((trace.status_of("numeric-oracle") == Status::vacuous));
}

BOOST_AUTO_TEST_CASE(a_kernel_over_a_copy_says_so) {
  const auto with = [](bool gathers, trace::KernelKind kernel) {
    TraceBuilder trace;
    const StoreIndex store = trace.ring({.capacity = 4, .window = 4});
    trace.decode(store, 0, 1, {}, gathers);
    trace.edit<trace::AttentionStep>(0, [&](auto& step) { step.kernel = kernel; });
    return failing(trace);
  };
  using trace::KernelKind;
  BOOST_TEST(with(false, KernelKind::online) == "");
  BOOST_TEST(with(false, KernelKind::other) == "");
  BOOST_TEST(with(false, KernelKind::gathered) == "adapter-priced");
  BOOST_TEST(with(true, KernelKind::gathered) == "");
  BOOST_TEST(with(true, KernelKind::golden) == "");
  BOOST_TEST(with(true, KernelKind::online) == "adapter-priced");
  BOOST_TEST(with(true, KernelKind::blocked) == "adapter-priced");
}

BOOST_AUTO_TEST_CASE(a_tensor_is_an_output_or_a_key) {
  const auto with = [](const Change& change) { return after(recorded(false), change); };
  const auto role = [](trace::Plane plane, std::uint32_t ordinal) {
    return [=](TraceBuilder& trace) {
      trace.edit<trace::TensorRecorded>(0, [&](auto& tensor) { tensor.role = plane, tensor.ordinal = ordinal; });
    };
  };
  BOOST_TEST(with(role(trace::Plane::k, 1)) == "");
  BOOST_TEST(with(role(trace::Plane::k, 2)) == "event-grammar");
  BOOST_TEST(with(role(trace::Plane::v, 1)) == "event-grammar");
  BOOST_TEST(with(role(trace::Plane::out, 2)) == "");
  BOOST_TEST(with([&](TraceBuilder& trace) {
               role(trace::Plane::k, 1)(trace);
               for (Event& event : trace.events)
                 if (event.type == EventType::TensorRecorded || event.type == EventType::TensorValues)
                   event.layer = trace::kNoLayer;
             }) == "event-grammar");
}

BOOST_AUTO_TEST_SUITE_END()
