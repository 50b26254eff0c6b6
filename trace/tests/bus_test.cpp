#include "kvwitness/trace/bus.hpp"

#include "kvwitness/trace/probe.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kvwitness::trace {
namespace {

constexpr std::size_t kCapacity = 64;

/// Every record, and where the batches ended.
class Listener final : public Subscriber {
 public:
  void on_batch(std::span<const Event> batch) override {
    events.insert(events.end(), batch.begin(), batch.end());
    batches.push_back(batch.size());
  }
  std::vector<Event> events;
  std::vector<std::size_t> batches;
};

/// Throws at its batch number `at` (from 1).
class Thrower final : public Subscriber {
 public:
  explicit Thrower(int at) : at_(at) {}
  void on_batch(std::span<const Event>) override {
    if (++batches == at_) throw std::runtime_error("disk full");
  }
  int batches = 0;

 private:
  int at_;
};

struct Setup {
  explicit Setup(BusOptions options = {.capacity = kCapacity, .batch = kCapacity}) : bus(names, options) {
    bus.subscribe(listener);
  }
  NameTable names;
  Bus bus;
  Listener listener;
};

Mark mark(std::uint64_t value) {
  Mark told{};
  told.value = value;
  return told;
}

void emit_marks(Bus& bus, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) bus.emit({}, mark(first + i));
}

std::uint64_t mark_value(const Event& event) {
  return payload_of<Mark>(event).value;
}

/// What a reader finds: values of the marks that came, and of those that EventsDropped says are missing. Numbers run on
/// but for the gaps that are told; a mark's value is the number that it should have.
struct Reading {
  std::vector<std::uint64_t> came;
  std::vector<std::uint64_t> told_lost;
  bool gaps_as_told = true;
};

Reading read_back(std::span<const Event> events) {
  Reading reading;
  std::uint64_t next = 0;
  for (const Event& event : events) {
    if (event.type == EventType::EventsDropped) {
      const auto lost = payload_of<EventsDropped>(event);
      reading.gaps_as_told = reading.gaps_as_told && lost.first_number == next && lost.count > 0;
      for (; next < lost.first_number + lost.count; ++next) reading.told_lost.push_back(next);
    }
    reading.gaps_as_told = reading.gaps_as_told && event.number == next;
    if (event.type == EventType::Mark) reading.came.push_back(mark_value(event));
    ++next;
  }
  return reading;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bus)

BOOST_AUTO_TEST_CASE(without_a_subscriber_nothing_is_numbered_or_kept) {
  NameTable names;
  Bus quiet(names);
  emit_marks(quiet, 0, 10);
  BOOST_TEST(!quiet.active());
  BOOST_TEST(quiet.next_number() == 0U);
  Listener late;
  quiet.subscribe(late);
  quiet.flush();
  BOOST_TEST(late.events.empty());
}

BOOST_AUTO_TEST_CASE(every_subscriber_gets_every_event_in_order) {
  Setup setup;
  Listener second;
  setup.bus.subscribe(second);
  emit_marks(setup.bus, 0, 1000);
  setup.bus.flush();
  BOOST_REQUIRE(setup.listener.events.size() == 1000U);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    BOOST_TEST(setup.listener.events[i].number == i);
    BOOST_TEST(mark_value(setup.listener.events[i]) == i);
  }
  BOOST_TEST((setup.listener.events == second.events));
  BOOST_TEST(setup.bus.dropped() == 0U);
}

BOOST_AUTO_TEST_CASE(subject_and_payload_arrive_as_given) {
  Setup setup;
  setup.bus.emit({.store = 2, .sequence = 7, .layer = 3}, mark(42));
  setup.bus.flush();
  const Event& event = setup.listener.events.at(0);
  BOOST_TEST(event.store == 2);
  BOOST_TEST(event.sequence == 7U);
  BOOST_TEST(event.layer == 3);
  BOOST_TEST((event.type == EventType::Mark));
  BOOST_TEST(mark_value(event) == 42U);
}

BOOST_AUTO_TEST_CASE(a_full_buffer_is_handed_out_at_once) {
  Setup setup;
  emit_marks(setup.bus, 0, kCapacity);
  BOOST_TEST(setup.listener.batches.empty());
  emit_marks(setup.bus, kCapacity, 1);
  BOOST_TEST(setup.listener.batches == (std::vector<std::size_t>{kCapacity}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_step_boundary_waits_for_a_batch) {
  Setup setup({.capacity = kCapacity, .batch = 10});
  emit_marks(setup.bus, 0, 9);
  setup.bus.step_boundary();
  BOOST_TEST(setup.listener.events.empty());
  emit_marks(setup.bus, 9, 1);
  setup.bus.step_boundary();
  BOOST_TEST(setup.listener.events.size() == 10U);
}

BOOST_AUTO_TEST_CASE(nothing_is_handed_out_inside_a_region) {
  Setup setup;
  emit_marks(setup.bus, 0, 5);
  setup.bus.enter_region();
  setup.bus.enter_region();
  setup.bus.flush();
  setup.bus.leave_region();
  setup.bus.flush();
  BOOST_TEST(setup.listener.events.empty());
  setup.bus.leave_region();
  setup.bus.flush();
  BOOST_TEST(setup.listener.events.size() == 5U);
}

BOOST_AUTO_TEST_CASE(reserved_room_lasts_for_the_region) {
  Setup setup;
  emit_marks(setup.bus, 0, 40);
  setup.bus.reserve(24);
  BOOST_TEST(setup.listener.events.empty());
  setup.bus.reserve(kCapacity);
  BOOST_TEST(setup.listener.events.size() == 40U);
  setup.bus.enter_region();
  emit_marks(setup.bus, 40, kCapacity);
  setup.bus.leave_region();
  setup.bus.flush();
  BOOST_TEST(setup.bus.dropped() == 0U);
  BOOST_TEST(setup.listener.events.size() == 40U + kCapacity);
}

BOOST_AUTO_TEST_CASE(a_full_buffer_in_a_region_tells_its_loss) {
  Setup setup;
  setup.bus.enter_region();
  emit_marks(setup.bus, 0, kCapacity + 7);
  setup.bus.leave_region();
  emit_marks(setup.bus, kCapacity + 8, 3);
  setup.bus.flush();
  BOOST_TEST(setup.bus.dropped() == 7U);
  BOOST_REQUIRE(setup.listener.events.size() == kCapacity + 1 + 3);
  const auto lost = payload_of<EventsDropped>(setup.listener.events[kCapacity]);
  BOOST_TEST(lost.count == 7U);
  BOOST_TEST(lost.first_number == kCapacity);
  BOOST_TEST(setup.listener.events[kCapacity].number == kCapacity + 7);
  BOOST_TEST(read_back(setup.listener.events).gaps_as_told);
}

BOOST_AUTO_TEST_CASE(a_bus_that_drops_does_so_until_the_boundary) {
  Setup setup({.capacity = kCapacity, .batch = kCapacity, .overflow = Overflow::drop});
  emit_marks(setup.bus, 0, kCapacity + 100);
  BOOST_TEST(setup.listener.events.empty());
  setup.bus.step_boundary();
  emit_marks(setup.bus, setup.bus.next_number(), 2);
  setup.bus.flush();
  const Reading reading = read_back(setup.listener.events);
  BOOST_TEST(reading.gaps_as_told);
  BOOST_TEST(reading.told_lost.size() == 100U);
  BOOST_TEST(reading.told_lost.front() == kCapacity);
  BOOST_TEST(reading.came.size() == kCapacity + 2);
  BOOST_TEST(reading.came.back() == kCapacity + 100 + 1 + 1);
}

BOOST_AUTO_TEST_CASE(whatever_happens_each_event_came_or_was_told_lost) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto overflow = seed % 2 == 0 ? Overflow::drain : Overflow::drop;
    Setup setup({.capacity = kCapacity, .batch = 1 + random() % kCapacity, .overflow = overflow});
    int depth = 0;
    std::vector<std::uint64_t> emitted;
    for (int action = 0; action < 300; ++action) {
      switch (random() % 8) {
        case 0: setup.bus.enter_region(), ++depth; break;
        case 1:
        case 2:
          if (depth > 0) setup.bus.leave_region(), --depth;
          break;
        case 3: setup.bus.flush(); break;
        case 4: setup.bus.step_boundary(); break;
        case 5: setup.bus.reserve(random() % (kCapacity + 1)); break;
        default:
          for (auto n = random() % 40; n > 0; --n) {
            // A loss is told right before the next event is written; the mark's number is one further then.
            const std::uint64_t before = setup.bus.next_number();
            setup.bus.emit({}, mark(before));
            emitted.push_back(setup.bus.next_number() - 1);
          }
      }
    }
    while (depth-- > 0) setup.bus.leave_region();
    setup.bus.flush();
    Reading reading = read_back(setup.listener.events);
    BOOST_TEST(reading.gaps_as_told, "seed " << seed);
    BOOST_TEST(reading.told_lost.size() == setup.bus.dropped(), "seed " << seed);
    BOOST_TEST(reading.came.size() + reading.told_lost.size() == emitted.size(), "seed " << seed);
    std::vector<std::uint64_t> numbers = reading.told_lost;
    for (const Event& event : setup.listener.events)
      if (event.type == EventType::Mark) numbers.push_back(event.number);
    std::ranges::sort(numbers);
    BOOST_TEST((numbers == emitted), "seed " << seed);
  }
}

BOOST_AUTO_TEST_CASE(emitting_never_allocates) {
  if (probe_state() != ProbeState::measuring) return;
  NameTable names;
  Bus silent(names);
  Bus heard(names, {.capacity = 4096, .batch = 4096, .clock = ClockKind::tsc});
  Listener listener;
  heard.subscribe(listener);
  const ProbeRegion region;
  heard.enter_region();
  for (std::uint64_t i = 0; i < 5000; ++i) {
    silent.emit({}, mark(i));
    heard.emit({}, mark(i));
    heard.emit_stamped({}, mark(i));
  }
  heard.leave_region();
  const ProbeReading seen = region.seen();
  BOOST_TEST(seen.allocations == 0U);
  BOOST_TEST(seen.frees == 0U);
  BOOST_TEST(heard.dropped() == 10000U - 4096U);
}

BOOST_AUTO_TEST_CASE(handing_out_does_not_allocate_itself) {
  if (probe_state() != ProbeState::measuring) return;
  NameTable names;
  Bus heard(names, {.capacity = kCapacity, .batch = 1});
  Recorder recorder(10000);
  heard.subscribe(recorder);
  const ProbeRegion region;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    heard.reserve(8);
    heard.emit({}, mark(i));
    heard.step_boundary();
  }
  BOOST_TEST(region.seen().allocations == 0U);
  BOOST_TEST(recorder.events().size() == 5000U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(bus_run)

BOOST_AUTO_TEST_CASE(run_end_carries_the_digest_of_the_canonical_records) {
  Setup setup({.capacity = kCapacity, .batch = 1, .clock = ClockKind::mono});
  RunBegin begin{};
  begin.seed = 0x5eed;
  setup.bus.begin_run(begin);
  Allocation allocation{};
  allocation.storage = 3;
  allocation.bytes = 4096;
  allocation.site = hash_name("ring.cpp:12");
  setup.bus.emit({.store = 0}, allocation);
  RegionMeasured measured{};
  measured.allocations = 5;
  measured.faults = 17;
  measured.first_syscall = 9;
  setup.bus.emit({.store = 0}, measured);
  StepEnd step{};
  step.duration_ns = 12345;
  step.token = 6;
  setup.bus.emit_stamped({.store = 0, .sequence = 1}, step);
  setup.bus.end_run();

  std::vector<Event> records(setup.listener.events.begin(), setup.listener.events.end() - 1);
  BOOST_REQUIRE(records.size() == 4U);
  BOOST_TEST(records[0].time != 0U);
  BOOST_TEST(records[3].time >= records[0].time);
  for (Event& record : records) record.time = 0;
  // By the tables of events.md: call sites, durations and what depends on the machine do not count.
  allocation.site = 0;
  measured.faults = 0;
  measured.first_syscall = 0;
  step.duration_ns = 0;
  std::memcpy(records[1].payload.data(), &allocation, sizeof allocation);
  std::memcpy(records[2].payload.data(), &measured, sizeof measured);
  std::memcpy(records[3].payload.data(), &step, sizeof step);

  const auto end = payload_of<RunEnd>(setup.listener.events.back());
  BOOST_TEST(end.digest == XXH3_64bits(records.data(), records.size() * sizeof(Event)));
  BOOST_TEST(end.events == 4U);
  BOOST_TEST(end.steps == 1U);
  BOOST_TEST(end.dropped == 0U);
  BOOST_TEST((payload_of<RunBegin>(records[0]).clock == ClockKind::mono));
}

BOOST_AUTO_TEST_CASE(the_digest_does_not_depend_on_where_batches_end) {
  std::vector<std::uint64_t> digests;
  for (const std::size_t batch : {std::size_t{1}, std::size_t{7}, kCapacity}) {
    Setup setup({.capacity = kCapacity, .batch = batch});
    setup.bus.begin_run({});
    for (std::uint64_t i = 0; i < 500; ++i) {
      setup.bus.emit({}, mark(i));
      setup.bus.step_boundary();
    }
    setup.bus.end_run();
    digests.push_back(payload_of<RunEnd>(setup.listener.events.back()).digest);
  }
  BOOST_TEST(digests[0] == digests[1]);
  BOOST_TEST(digests[0] == digests[2]);
}

BOOST_AUTO_TEST_CASE(two_runs_on_one_bus_are_told_alike) {
  Setup setup;
  const auto run = [&setup] {
    setup.bus.begin_run({});
    emit_marks(setup.bus, 0, 100);
    setup.bus.end_run();
  };
  run();
  const std::vector<Event> first = setup.listener.events;
  setup.listener.events.clear();
  run();
  BOOST_TEST((first == setup.listener.events));
  BOOST_TEST(first.size() == 102U);
}

BOOST_AUTO_TEST_CASE(losses_are_counted_in_run_end_and_forgotten_by_the_next_run) {
  Setup setup({.capacity = kCapacity, .batch = kCapacity, .overflow = Overflow::drop});
  setup.bus.begin_run({});
  emit_marks(setup.bus, 0, kCapacity + 4);  // the buffer held RunBegin too: 5 are lost
  setup.bus.end_run();
  const Event last = setup.listener.events.back();
  const auto end = payload_of<RunEnd>(last);
  BOOST_TEST(end.dropped == 5U);
  BOOST_TEST(end.events == setup.listener.events.size() - 1);
  BOOST_TEST(last.number == end.events + end.dropped);
  std::vector<Event> records(setup.listener.events.begin(), setup.listener.events.end() - 1);
  BOOST_TEST(end.digest == XXH3_64bits(records.data(), records.size() * sizeof(Event)));

  setup.listener.events.clear();
  setup.bus.begin_run({});
  setup.bus.end_run();
  BOOST_TEST(payload_of<RunEnd>(setup.listener.events.back()).dropped == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(bus_subscribers)

BOOST_AUTO_TEST_CASE(one_that_throws_costs_the_others_nothing) {
  Setup setup;
  Thrower thrower(2);
  Listener after;
  setup.bus.subscribe(thrower);
  setup.bus.subscribe(after);
  emit_marks(setup.bus, 0, 10 * kCapacity);  // emitting itself does not throw
  BOOST_CHECK_THROW(setup.bus.flush(), std::runtime_error);
  setup.bus.flush();
  BOOST_TEST(thrower.batches == 2);
  BOOST_TEST(setup.listener.events.size() == 10 * kCapacity);
  BOOST_TEST(after.events.size() == 10 * kCapacity);
}

BOOST_AUTO_TEST_CASE(a_boundary_or_a_reservation_brings_the_exception_out) {
  for (const bool by_boundary : {true, false}) {
    Setup setup;
    Thrower thrower(1);
    setup.bus.subscribe(thrower);
    emit_marks(setup.bus, 0, kCapacity + 1);
    if (by_boundary)
      BOOST_CHECK_THROW(setup.bus.step_boundary(), std::runtime_error);
    else
      BOOST_CHECK_THROW(setup.bus.reserve(1), std::runtime_error);
  }
}

BOOST_AUTO_TEST_CASE(the_only_one_throwing_still_shows_at_the_runs_end) {
  NameTable names;
  Bus heard(names, {.capacity = kCapacity, .batch = kCapacity});
  Thrower thrower(1);
  heard.subscribe(thrower);
  heard.begin_run({});
  BOOST_CHECK_THROW(heard.end_run(), std::runtime_error);
  BOOST_TEST(!heard.active());
}

BOOST_AUTO_TEST_CASE(a_run_ends_whole_for_the_others) {
  Setup setup;
  Thrower thrower(1);
  setup.bus.subscribe(thrower);
  setup.bus.begin_run({});
  BOOST_CHECK_THROW(setup.bus.end_run(), std::runtime_error);
  BOOST_TEST((setup.listener.events.back().type == EventType::RunEnd));
}

BOOST_AUTO_TEST_CASE(one_that_unsubscribed_gets_nothing_more) {
  Setup setup;
  Listener leaving;
  setup.bus.subscribe(leaving);
  emit_marks(setup.bus, 0, 3);
  setup.bus.flush();
  setup.bus.unsubscribe(leaving);
  emit_marks(setup.bus, 3, 3);
  setup.bus.flush();
  BOOST_TEST(leaving.events.size() == 3U);
  BOOST_TEST(setup.listener.events.size() == 6U);
  setup.bus.unsubscribe(setup.listener);
  BOOST_TEST(!setup.bus.active());
}

BOOST_AUTO_TEST_CASE(a_recorder_keeps_a_run) {
  NameTable names;
  Bus heard(names, {.capacity = kCapacity, .batch = kCapacity});
  Recorder recorder(4);
  heard.subscribe(recorder);
  heard.begin_run({});
  emit_marks(heard, 0, 300);
  heard.end_run();
  BOOST_TEST(recorder.events().size() == 302U);
  recorder.clear();
  BOOST_TEST(recorder.events().empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
