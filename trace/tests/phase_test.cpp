#include "kvwitness/trace/phase.hpp"

#include "kvwitness/trace/probe.hpp"

#include "run_apart.hpp"

#include <boost/test/unit_test.hpp>
#include <optional>
#include <stdexcept>
#include <vector>

namespace kvwitness::trace {
namespace {

struct Setup {
  explicit Setup(ClockKind clock = ClockKind::none) : bus(names, {.clock = clock}) { bus.subscribe(recorder); }

  std::span<const Event> events() {
    bus.flush();
    return recorder.events();
  }
  PhaseBegin begin(std::size_t i) {
    BOOST_REQUIRE((events()[i].type == EventType::PhaseBegin));
    return payload_of<PhaseBegin>(events()[i]);
  }
  PhaseEnd end(std::size_t i) {
    BOOST_REQUIRE((events()[i].type == EventType::PhaseEnd));
    return payload_of<PhaseEnd>(events()[i]);
  }

  NameTable names;
  Bus bus;
  Recorder recorder;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(phase)

BOOST_AUTO_TEST_CASE(a_span_tells_its_begin_and_its_end) {
  Setup setup;
  { const PhaseSpan span(setup.bus, PhaseKind::prefill, 77, 4); }
  BOOST_REQUIRE(setup.events().size() == 2U);
  BOOST_TEST(setup.begin(0).name == 77U);
  BOOST_TEST((setup.begin(0).kind == PhaseKind::prefill));
  BOOST_TEST(setup.begin(0).span == 1U);
  BOOST_TEST(setup.begin(0).parent == 0U);
  BOOST_TEST(setup.begin(0).thread == 4U);
  BOOST_TEST((setup.end(1).kind == PhaseKind::prefill));
  BOOST_TEST(setup.end(1).span == 1U);
  BOOST_TEST(setup.end(1).thread == 4U);
  BOOST_TEST(setup.end(1).by_exception == 0U);
  BOOST_TEST(setup.end(1).duration_ns == 0U);
}

BOOST_AUTO_TEST_CASE(spans_nest_and_name_their_parent) {
  Setup setup;
  {
    const PhaseSpan decode(setup.bus, PhaseKind::decode);
    { const PhaseSpan first(setup.bus, PhaseKind::module); }
    const PhaseSpan second(setup.bus, PhaseKind::module);
    const PhaseSpan inside(setup.bus, PhaseKind::sample);
  }
  // B1 B2 E2 B3 B4 E4 E3 E1
  BOOST_REQUIRE(setup.events().size() == 8U);
  BOOST_TEST(setup.begin(1).parent == 1U);
  BOOST_TEST(setup.end(2).span == 2U);
  BOOST_TEST(setup.begin(3).span == 3U);
  BOOST_TEST(setup.begin(3).parent == 1U);
  BOOST_TEST(setup.begin(4).parent == 3U);
  BOOST_TEST(setup.end(5).span == 4U);
  BOOST_TEST(setup.end(6).span == 3U);
  BOOST_TEST(setup.end(7).span == 1U);
}

BOOST_AUTO_TEST_CASE(a_parent_is_of_the_same_thread) {
  Setup setup;
  {
    const PhaseSpan a(setup.bus, PhaseKind::decode, 0, 0);
    const PhaseSpan b(setup.bus, PhaseKind::decode, 0, 1);
    const PhaseSpan a_inside(setup.bus, PhaseKind::module, 0, 0);
    const PhaseSpan b_inside(setup.bus, PhaseKind::module, 0, 1);
  }
  BOOST_TEST(setup.begin(0).parent == 0U);
  BOOST_TEST(setup.begin(1).parent == 0U);
  BOOST_TEST(setup.begin(2).parent == 1U);
  BOOST_TEST(setup.begin(3).parent == 2U);
}

BOOST_AUTO_TEST_CASE(an_exception_closes_all_spans_on_its_way_and_no_other) {
  Setup setup;
  {
    const PhaseSpan outside(setup.bus, PhaseKind::load);
    try {
      const PhaseSpan outer(setup.bus, PhaseKind::prefill);
      const PhaseSpan inner(setup.bus, PhaseKind::module);
      throw std::runtime_error("no such tensor");
    } catch (const std::runtime_error&) {
    }
  }
  BOOST_REQUIRE(setup.events().size() == 6U);
  BOOST_TEST(setup.end(3).span == 3U);
  BOOST_TEST(setup.end(3).by_exception == 1U);
  BOOST_TEST(setup.end(4).span == 2U);
  BOOST_TEST(setup.end(4).by_exception == 1U);
  BOOST_TEST(setup.end(5).span == 1U);
  BOOST_TEST(setup.end(5).by_exception == 0U);
}

BOOST_AUTO_TEST_CASE(a_span_inside_a_clean_up_is_not_closed_by_the_exception_that_started_it) {
  Setup setup;
  struct CleanUp {
    Bus& bus;
    ~CleanUp() { const PhaseSpan span(bus, PhaseKind::module); }
  };
  try {
    const CleanUp clean_up{setup.bus};
    throw std::runtime_error("on its way");
  } catch (const std::runtime_error&) {
  }
  BOOST_TEST(setup.end(1).by_exception == 0U);
}

BOOST_AUTO_TEST_CASE(times_and_duration_agree) {
  for (const ClockKind clock : {ClockKind::mono, ClockKind::tsc}) {
    Setup setup(clock);
    { const PhaseSpan span(setup.bus, PhaseKind::decode); }
    const std::span<const Event> events = setup.events();
    BOOST_TEST(events[0].time > 0U);
    BOOST_TEST(events[1].time - events[0].time == setup.end(1).duration_ns);
  }
}

BOOST_AUTO_TEST_CASE(each_run_counts_its_spans_anew) {
  Setup setup;
  for (int run = 0; run < 2; ++run) {
    setup.recorder.clear();
    setup.bus.begin_run({});
    { const PhaseSpan span(setup.bus, PhaseKind::decode); }
    setup.bus.end_run();
    BOOST_TEST(setup.begin(1).span == 1U);
  }
}

BOOST_AUTO_TEST_CASE(a_span_that_nobody_saw_begin_is_not_told_to_end) {
  NameTable names;
  Bus bus(names);
  Recorder late;
  {
    const PhaseSpan unseen(bus, PhaseKind::load);
    BOOST_TEST(unseen.span() == 0U);
    bus.subscribe(late);
    const PhaseSpan seen(bus, PhaseKind::module);
  }
  bus.flush();
  BOOST_REQUIRE(late.events().size() == 2U);
  BOOST_TEST(payload_of<PhaseBegin>(late.events()[0]).parent == 0U);
}

BOOST_AUTO_TEST_CASE(spans_do_not_allocate) {
  if (probe_state() != ProbeState::measuring) return;
  Setup setup(ClockKind::tsc);
  const ProbeRegion region;
  for (int i = 0; i < 100; ++i) {
    const PhaseSpan outer(setup.bus, PhaseKind::decode);
    const PhaseSpan inner(setup.bus, PhaseKind::module);
  }
  BOOST_TEST(region.seen().allocations == 0U);
}

BOOST_AUTO_TEST_CASE(spans_that_cross_are_a_fault_of_ours) {
  const Ended ended = run_apart([] {
    Setup setup;
    std::optional<PhaseSpan> outer(std::in_place, setup.bus, PhaseKind::decode);
    const PhaseSpan inner(setup.bus, PhaseKind::module);
    outer.reset();
  });
  BOOST_TEST(ended.status == 3);
}

BOOST_AUTO_TEST_CASE(a_run_does_not_end_inside_a_phase) {
  const Ended ended = run_apart([] {
    Setup setup;
    setup.bus.begin_run({});
    const PhaseSpan open(setup.bus, PhaseKind::decode);
    setup.bus.end_run();
  });
  BOOST_TEST(ended.status == 3);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
