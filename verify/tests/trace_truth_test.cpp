#include "rows/slot_law.hpp"
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>

using namespace kvwitness;
using namespace kvwitness::verify;
using trace::EventType;
using verify::testing::TraceBuilder;

namespace {

constexpr const char* kRule = "trace-truth";

/// A ring of 4 that wraps in a chunk, with an edit of each kind.
struct Ring : TraceBuilder {
  Ring() {
    store = ring({.capacity = 8, .window = 4});
    prefill(store, 0, 6);
    prefill(store, 0, 5);  // positions 6..10: slots 6, 7, 0, 1, 2
    decode(store, 0, 1);   // position 11: slot 3
    truncate(store, 0, 10);
    evict(store, 0, {4, 6});
    decode(store, 1, 1);
    clear(store, 1);
    end();
  }
  trace::StoreIndex store = 0;
};

struct Flat : TraceBuilder {
  Flat() {
    store = flat({.capacity = 16, .window = 4});
    prefill(store, 0, 6);
    evict(store, 0, {0, 2});
    decode(store, 0, 2);
    end();
  }
  trace::StoreIndex store = 0;
};

template <class Trace>
bool is_blamed(const std::function<void(Trace&)>& edit) {
  Trace trace;
  edit(trace);
  return trace.status_of(kRule) == Status::fail;
}
#define CHECK_BLAMED(Trace, Payload, nth, change) \
  BOOST_CHECK(is_blamed<Trace>([](Trace& t) { t.edit<Payload>(nth, [](Payload& p) { change; }); }))

}  // namespace

BOOST_AUTO_TEST_SUITE(trace_truth)

BOOST_AUTO_TEST_CASE(true_claims_pass) {
  BOOST_CHECK(Ring().failing().empty());
  BOOST_CHECK(Flat().failing().empty());
  BOOST_CHECK(Ring().status_of(kRule) == Status::pass);
  BOOST_CHECK(Flat().status_of(kRule) == Status::pass);
}

BOOST_AUTO_TEST_CASE(pieces_cover_exactly_the_rows_given) {
  BOOST_CHECK(is_blamed<Ring>([](Ring& t) { t.erase<trace::Append>(0); }));  // done, without appending
  BOOST_CHECK(is_blamed<Ring>([](Ring& t) { t.erase<trace::Append>(2); }));  // only up to the ring's end
  CHECK_BLAMED(Ring, trace::Append, 0, p.first += 1);
  CHECK_BLAMED(Ring, trace::Append, 1, p.count -= 1);
  CHECK_BLAMED(Ring, trace::Append, 2, p.count += 1);
  CHECK_BLAMED(Ring, trace::Append, 0, p.bytes -= 1);
}

BOOST_AUTO_TEST_CASE(slots_are_the_lawful_ones) {
  CHECK_BLAMED(Ring, trace::Append, 2, p.slot = 1);
  CHECK_BLAMED(Ring, trace::Append, 3, p.slot = 8);  // equals the capacity
  CHECK_BLAMED(Flat, trace::Append, 0, p.slot = 1);
  CHECK_BLAMED(Flat, trace::Append, 1, p.slot = 6);  // the front was evicted: position 6 belongs into slot 4
}

// A store that leaves its slots to itself, with room for 4 rows of each of 2 sequences, or for 8.
BOOST_AUTO_TEST_CASE(slots_are_those_that_the_storages_of_keys_have_room_for) {
  const auto judged = [](trace::Slot slot, std::uint64_t times) {
    TraceBuilder trace;
    const auto store = trace.flat({.capacity = 4});
    trace.edit<trace::StoreCreated>(0, [](trace::StoreCreated& created) {
      created.capabilities &= ~static_cast<std::uint64_t>(trace::Capability::zero_copy);
    });
    trace.edit<trace::Allocation>(0, [&](trace::Allocation& taken) { taken.bytes *= times; });
    trace.prefill(store, 0, 1);
    trace.edit<trace::Append>(0, [&](trace::Append& append) { append.slot = slot; });
    return trace.expects("trace-truth", times == 1 ? "slots below 4" : "slots below 8");
  };
  BOOST_CHECK(!judged(3, 1));
  BOOST_CHECK(judged(4, 1));
  BOOST_CHECK(!judged(4, 2));
  BOOST_CHECK(!judged(7, 2));
  BOOST_CHECK(judged(8, 2));
}

BOOST_AUTO_TEST_CASE(slots_are_lawful_though_nobody_reads_them) {
  for (const bool is_ring : {true, false}) {
    TraceBuilder trace;
    const auto store = is_ring ? trace.ring({.capacity = 8, .window = 4}) : trace.flat({.capacity = 8});
    trace.prefill(store, 0, 3);
    trace.edit<trace::Append>(0, [](trace::Append& append) { append.slot = 1; });
    BOOST_CHECK(trace.failing() == std::vector<std::string>{kRule});
  }
}

BOOST_AUTO_TEST_CASE(digests_are_those_of_the_rows_given) {
  CHECK_BLAMED(Ring, trace::Append, 0, p.k_digest += 1);
  CHECK_BLAMED(Ring, trace::Append, 2, p.v_digest += 1);
}

BOOST_AUTO_TEST_CASE(digests_that_were_not_given_are_inconclusive) {
  Ring trace;
  trace.edit<trace::Append>(1, [](trace::Append& append) { append.k_digest = 0; });
  BOOST_CHECK(trace.status_of(kRule) == Status::inconclusive);
}

BOOST_AUTO_TEST_CASE(what_is_held_and_lost_is_what_the_list_loses) {
  CHECK_BLAMED(Ring, trace::Append, 2, p.held_from = 0);
  CHECK_BLAMED(Ring, trace::Append, 0, p.held_from = 1);
  BOOST_CHECK(is_blamed<Ring>([](Ring& t) { t.erase<trace::Overwrite>(0); }));
  CHECK_BLAMED(Ring, trace::Overwrite, 0, p.count -= 1);
  CHECK_BLAMED(Ring, trace::Overwrite, 0, p.count += 1);
  CHECK_BLAMED(Ring, trace::Overwrite, 0, p.first += 1);
  CHECK_BLAMED(Ring, trace::Overwrite, 0, p.slot += 1);
  CHECK_BLAMED(Ring, trace::Overwrite, 1, p.by += 1);
}

BOOST_AUTO_TEST_CASE(edits_count_what_they_did) {
  CHECK_BLAMED(Ring, trace::Truncate, 0, p.to += 1);
  CHECK_BLAMED(Ring, trace::Truncate, 0, p.old_end -= 1);
  CHECK_BLAMED(Ring, trace::Truncate, 0, p.freed -= 1);
  CHECK_BLAMED(Ring, trace::Evict, 0, p.from += 1);
  CHECK_BLAMED(Ring, trace::Evict, 0, p.freed = 0);
  CHECK_BLAMED(Ring, trace::Clear, 0, p.freed = 0);
  CHECK_BLAMED(Flat, trace::Evict, 0, p.moved = 0);
  CHECK_BLAMED(Flat, trace::Move, 0, p.from_slot += 1);
  CHECK_BLAMED(Flat, trace::Move, 0, p.to_position += 1);
  CHECK_BLAMED(Flat, trace::Move, 0, p.bytes = 0);
  CHECK_BLAMED(Flat, trace::Move, 0, p.count = 3);
}

BOOST_AUTO_TEST_CASE(windows_lie_where_the_rows_were_written) {
  // [8, 12): slots 0..3.
  CHECK_BLAMED(Ring, trace::WindowRun, 0, p.slot += 1);
  CHECK_BLAMED(Ring, trace::WindowRun, 0, p.slot = trace::kNoSlot);
  CHECK_BLAMED(Flat, trace::WindowRun, 1, p.slot += 2);
  CHECK_BLAMED(Ring, trace::WindowOpened, 0, p.from -= 1);
}

BOOST_AUTO_TEST_CASE(offsets_are_affine_in_the_slot) {
  TraceBuilder trace;
  const auto store = trace.ring({.capacity = 4, .window = 2});
  trace.decode(store, 0, 8);
  BOOST_CHECK(trace.status_of(kRule) == Status::pass);
  // The last window: a slot computed in fewer bits than the offset needs.
  trace.edit<trace::WindowRun>(trace.count(EventType::WindowRun) - 1, [](trace::WindowRun& run) { run.offset -= 16; });
  BOOST_CHECK(trace.failing() == std::vector<std::string>{kRule});
}

BOOST_AUTO_TEST_CASE(declared_allocations_are_the_observed_ones) {
  const auto declared = [](std::uint32_t count, std::uint64_t observed, trace::Evidence evidence) {
    Ring trace;
    trace::Allocation taken{};
    taken.storage = 900;
    taken.bytes = 8;
    taken.count = count;
    taken.evidence = trace::Evidence::declared;
    trace.insert(trace.index_of(EventType::Append, 0), {trace.store, 0, 0}, taken);
    trace.edit<trace::RegionMeasured>(0, [&](trace::RegionMeasured& region) {
      region.allocations = observed;
      region.evidence = evidence;
    });
    return trace.status_of(kRule);
  };
  BOOST_CHECK(declared(2, 2, trace::Evidence::observed) == Status::pass);
  BOOST_CHECK(declared(2, 3, trace::Evidence::observed) == Status::fail);
  BOOST_CHECK(declared(2, 0, trace::Evidence::observed) == Status::fail);
  BOOST_CHECK(declared(2, 0, trace::Evidence::unmeasured) == Status::pass);
}

BOOST_AUTO_TEST_CASE(reported_numbers_add_up) {
  for (const std::size_t which : {0U, 1U, 2U}) {
    Ring trace;
    trace.edit<trace::Reported>(which, [](trace::Reported& reported) { reported.value += 1; });
    BOOST_CHECK(trace.failing() == std::vector<std::string>{kRule});
  }
}

BOOST_AUTO_TEST_CASE(reported_numbers_have_the_unit_of_their_name) {
  const auto with = [](std::size_t which, trace::Unit unit) {
    Ring trace;
    trace.edit<trace::Reported>(which, [&](trace::Reported& reported) { reported.unit = unit; });
    return trace.failing();
  };
  BOOST_CHECK(with(0, trace::Unit::positions) == std::vector<std::string>{kRule});
  BOOST_CHECK(with(1, trace::Unit::none) == std::vector<std::string>{kRule});
  BOOST_CHECK(with(2, trace::Unit::bytes) == std::vector<std::string>{kRule});
  BOOST_CHECK(with(2, trace::Unit::positions).empty());
  // Of a name of its own, what a store likes.
  Ring named;
  named.edit<trace::Reported>(1, [](trace::Reported& reported) {
    reported.what = trace::hash_name("tokens-seen");
    reported.unit = trace::Unit::tokens;
  });
  BOOST_CHECK(named.failing().empty());
}

BOOST_AUTO_TEST_CASE(offsets_may_run_either_way_but_not_overlap) {
  OffsetLaw down;
  BOOST_CHECK(down.admits(0, 160, 16));
  BOOST_CHECK(down.admits(2, 128, 16));
  BOOST_CHECK(down.admits(5, 80, 16));
  BOOST_CHECK(!down.admits(5, 81, 16));
  OffsetLaw overlapping;
  BOOST_CHECK(overlapping.admits(0, 0, 16));
  BOOST_CHECK(!overlapping.admits(1, 8, 16));
  OffsetLaw moved;
  BOOST_CHECK(moved.admits(3, 48, 16));
  BOOST_CHECK(!moved.admits(3, 64, 16));
}

BOOST_AUTO_TEST_CASE(without_claims_it_is_vacuous) {
  const TraceBuilder trace;
  BOOST_CHECK(trace.status_of(kRule) == Status::vacuous);
}

BOOST_AUTO_TEST_CASE(slots_that_a_store_keeps_to_itself_are_not_held_against_it) {
  const auto judged = [](bool is_ring, trace::Slot slot) {
    TraceBuilder trace;
    trace.ring({.capacity = 8, .window = 4});
    if (!is_ring)
      trace.edit<trace::StoreCreated>(0, [](trace::StoreCreated& created) {
        created.capabilities &= ~static_cast<std::uint64_t>(trace::Capability::ring) &
                                ~static_cast<std::uint64_t>(trace::Capability::zero_copy);
      });
    trace.prefill(0, 0, 3);
    trace.edit<trace::Append>(0, [&](trace::Append& append) { append.slot = slot; });
    return trace.status_of(kRule);
  };
  BOOST_CHECK(judged(false, trace::kNoSlot) == Status::pass);
  BOOST_CHECK(judged(false, 5) == Status::pass);
  BOOST_CHECK(judged(false, 6) == Status::fail);              // [6, 9) of 8
  BOOST_CHECK(judged(true, trace::kNoSlot) == Status::fail);  // it declares where its rows lie
}

BOOST_AUTO_TEST_CASE(slots_told_of_rows_that_were_copied_out_are_those_that_they_were_written_to) {
  const auto with_slot = [](trace::Slot slot) {
    TraceBuilder trace;
    trace.ring({.capacity = 8, .window = 4});
    trace.prefill(0, 0, 4);
    const trace::ViewId view = trace.copied_window(0, 0, 0, {1, 4});
    trace.edit<trace::WindowRun>(0, [&](trace::WindowRun& run) { run.slot = slot; });
    trace.close(view);
    return trace.status_of(kRule);
  };
  BOOST_CHECK(with_slot(trace::kNoSlot) == Status::pass);
  BOOST_CHECK(with_slot(1) == Status::pass);
  BOOST_CHECK(with_slot(2) == Status::fail);
}

BOOST_AUTO_TEST_SUITE_END()
