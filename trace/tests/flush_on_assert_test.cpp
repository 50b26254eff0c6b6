#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/bus.hpp"

#include "run_apart.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

namespace kvwitness::trace {
namespace {

/// Writes "name:count " to standard error for each batch.
class Speaker final : public Subscriber {
 public:
  explicit Speaker(std::string name) : name_(std::move(name)) {}
  void on_batch(std::span<const Event> events) override {
    std::fprintf(stderr, "%s:%zu ", name_.c_str(), events.size());
  }

 private:
  std::string name_;
};

class Asserter final : public Subscriber {
 public:
  void on_batch(std::span<const Event> events) override { KVW_ASSERT(events.empty()); }
};

void emit_marks(Bus& bus, int count) {
  for (int i = 0; i < count; ++i) bus.emit({}, Mark{});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(flush_on_assert)

BOOST_AUTO_TEST_CASE(what_is_buffered_is_handed_out_also_inside_a_region) {
  const Ended ended = run_apart([] {
    NameTable names;
    Bus bus(names);
    Speaker speaker("spool");
    bus.subscribe(speaker);
    const FlushOnAssert guard(bus);
    bus.enter_region();
    emit_marks(bus, 5);
    KVW_ASSERT(false);
  });
  BOOST_TEST(ended.status == 3);
  BOOST_TEST(ended.printed.ends_with("spool:5 "));
}

BOOST_AUTO_TEST_CASE(a_subscriber_that_asserts_does_not_cost_the_next_its_batch) {
  const Ended ended = run_apart([] {
    NameTable names;
    Bus bus(names);
    Speaker before("before");
    Asserter asserter;
    Speaker after("after");
    bus.subscribe(before);
    bus.subscribe(asserter);
    bus.subscribe(after);
    const FlushOnAssert guard(bus);
    emit_marks(bus, 7);
    bus.flush();
  });
  BOOST_TEST(ended.status == 3);
  BOOST_TEST(ended.printed.starts_with("before:7 "));
  BOOST_TEST(ended.printed.ends_with("after:7 "));
}

BOOST_AUTO_TEST_CASE(the_innermost_bus_counts_and_then_the_outer_one_again) {
  const auto run = [](bool inner_lives) {
    return run_apart([=] {
      NameTable names;
      Bus outer(names);
      Bus inner(names);
      Speaker outer_speaker("outer");
      Speaker inner_speaker("inner");
      outer.subscribe(outer_speaker);
      inner.subscribe(inner_speaker);
      const FlushOnAssert outer_guard(outer);
      emit_marks(outer, 1);
      emit_marks(inner, 2);
      {
        const FlushOnAssert inner_guard(inner);
        KVW_ASSERT(!inner_lives);
      }
      KVW_ASSERT(false);
    });
  };
  BOOST_TEST(run(true).printed.ends_with("inner:2 "));
  BOOST_TEST(run(false).printed.ends_with("outer:1 "));
}

BOOST_AUTO_TEST_CASE(a_subscriber_that_emits_is_a_fault_of_ours) {
  class Emitter final : public Subscriber {
   public:
    explicit Emitter(Bus& bus) : bus_(&bus) {}
    void on_batch(std::span<const Event>) override { bus_->emit({}, Mark{}); }

   private:
    Bus* bus_;
  };
  const Ended ended = run_apart([] {
    NameTable names;
    Bus bus(names);
    Emitter emitter(bus);
    bus.subscribe(emitter);
    emit_marks(bus, 1);
    bus.flush();
  });
  BOOST_TEST(ended.status == 3);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
