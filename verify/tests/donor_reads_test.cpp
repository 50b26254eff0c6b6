#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

constexpr std::string_view kRule = "donor-reads";

/// Layer 1 reads the rows of layer 0: what is told of it is what is told of layer 0 once more.
struct Shared : TraceBuilder {
  Shared() {
    ring({.capacity = 4, .window = 4}, 2);
    edit<trace::LayerFormat>(1, [](trace::LayerFormat& format) { format.donor = 0; });
    donors[1] = 0;
    own_storages = count(trace::EventType::Allocation) / 2;
    for (std::size_t i = 0; i < own_storages; ++i) erase<trace::Allocation>(own_storages);
    step_begin(0, 0, Operation::decode);
    for (int i = 0; i < 6; ++i) append(0, 0, 0, 1);
    see();
    const std::size_t mark = events.size();
    see();
    for (std::size_t i = mark; i < events.size(); ++i) events[i].layer = 1;
    step_end();
  }

  void see() {
    const ViewId view = window(0, 0, 0, {2, 6});
    attend(view, 5);
    close(view);
  }

  [[nodiscard]] std::string text() const { return std::string(to_text(status_of(kRule))); }

  std::size_t own_storages = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(donor_reads)

BOOST_AUTO_TEST_CASE(a_reader_that_shows_its_donor_passes) {
  const Shared trace;
  BOOST_TEST(trace.text() == "pass");
  BOOST_TEST(trace.verdict_of(kRule).met == 3U, "a window, an attention, the state at the end");
}

BOOST_AUTO_TEST_CASE(layers_with_rows_of_their_own_meet_nothing) {
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 4}, 2);
  trace.decode(0, 0, 6);
  BOOST_TEST(std::string(to_text(trace.status_of(kRule))) == "vacuous");
}

BOOST_AUTO_TEST_CASE(other_slots_offsets_rows_or_pieces_fail) {
  const auto fails = [](auto change) {
    Shared trace;
    // Two runs of the donor's window, then two of the reader's.
    BOOST_REQUIRE_EQUAL(trace.count(trace::EventType::WindowRun), 4U);
    trace.edit<trace::WindowRun>(2, change);
    BOOST_TEST(trace.text() == "fail");
  };
  fails([](trace::WindowRun& run) { run.slot += 1; });
  fails([](trace::WindowRun& run) { run.offset += 16; });
  fails([](trace::WindowRun& run) { run.k_digest ^= 1; });
  fails([](trace::WindowRun& run) { run.v_digest ^= 1; });
  fails([](trace::WindowRun& run) { run.count -= 1; });
  Shared shorter;
  shorter.erase<trace::WindowRun>(3);
  BOOST_TEST(shorter.text() == "fail");
}

BOOST_AUTO_TEST_CASE(queries_of_the_advanced_offset_fail) {
  Shared trace;
  std::size_t nth = 0;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.type != trace::EventType::Called) continue;
    const bool is_readers = event.layer == 1 && trace::payload_of<trace::Called>(event).operation == Operation::attend;
    if (is_readers) trace.edit<trace::Called>(nth, [](trace::Called& called) { ++called.from, ++called.to; });
    ++nth;
  }
  BOOST_TEST(trace.text() == "fail");
}

BOOST_AUTO_TEST_CASE(rows_and_memory_of_a_reader_fail) {
  Shared appended;
  appended.step_begin(0, 0, Operation::append);
  const std::size_t mark = appended.events.size();
  appended.append(0, 0, 0, 1);
  for (std::size_t i = mark; i < appended.events.size(); ++i) appended.events[i].layer = 1;
  appended.step_end();
  BOOST_TEST(appended.text() == "fail");

  Shared owner;
  trace::Allocation storage = owner.payload<trace::Allocation>();
  storage.storage = 99;
  owner.insert(owner.index_of(trace::EventType::StepBegin), {0, trace::kNoSequence, 1}, storage);
  BOOST_TEST(owner.text() == "fail");

  for (const LayerIndex layer : {LayerIndex{0}, LayerIndex{1}}) {
    Shared moved;
    moved.emit({0, 0, layer}, trace::Move{});
    BOOST_TEST(moved.text() == (layer == 0 ? "pass" : "fail"));
  }
}

BOOST_AUTO_TEST_CASE(digests_that_are_left_out_of_one_side_blame_nobody) {
  for (const std::size_t nth : {0U, 2U}) {  // the donor's, the reader's
    Shared window;
    window.edit<trace::WindowRun>(nth, [](trace::WindowRun& run) { run.v_digest = 0; });
    BOOST_TEST(window.text() == "inconclusive");
  }
  Shared state;
  state.end();
  state.edit<trace::StateDigest>(1, [](trace::StateDigest& told) { told.k_digest = 0; });
  BOOST_TEST(state.text() == "inconclusive");
  state.edit<trace::StateDigest>(1, [](trace::StateDigest& told) { ++told.v_digest; });
  BOOST_TEST(state.text() == "fail");
}

BOOST_AUTO_TEST_SUITE_END()
