#include "rows/row_places.hpp"

#include "kvwitness/trace/trace_file.hpp"
#include "kvwitness/verify/judge.hpp"
#include "paged_trace.hpp"
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using trace::EventType;
using trace::Plane;
using verify::testing::PagedTrace;
using verify::testing::TraceBuilder;

namespace {

constexpr const char* kRule = "trace-truth";
constexpr std::uint64_t kRowBytes = 16;
constexpr std::uint32_t kCapacity = 4;
constexpr std::uint64_t kPlaneBytes = 2 * kCapacity * kRowBytes;  // of two sequences

/// Both sequences of a ring that wraps.
struct TwoRings : TraceBuilder {
  explicit TwoRings(std::size_t layers = 1) {
    store = ring({.capacity = kCapacity, .window = 2}, layers);
    decode(store, 0, 6);
    decode(store, 1, 6);
    end();
    // Tests declare other storages than the builder reports at the end.
    while (count(EventType::Reported) != 0) erase<trace::Reported>();
  }
  trace::StoreIndex store = 0;
};

/// Every offset becomes move(run, its sequence, its layer).
void move_runs(
    TraceBuilder& trace,
    const std::function<std::uint64_t(const trace::WindowRun&, trace::SequenceId, trace::LayerIndex)>& move) {
  for (trace::Event& event : trace.events) {
    if (event.type != EventType::WindowRun) continue;
    auto run = trace::payload_of<trace::WindowRun>(event);
    run.offset = move(run, event.sequence, event.layer);
    event.payload = trace::make_event({}, run).payload;
  }
}

void declare(TraceBuilder& trace, std::size_t nth, std::uint64_t bytes) {
  trace.edit<trace::Allocation>(nth, [&](trace::Allocation& taken) { taken.bytes = bytes; });
}

void declare(TraceBuilder& trace, std::size_t nth, std::uint64_t bytes, Plane plane) {
  declare(trace, nth, bytes);
  trace.edit<trace::Allocation>(nth, [&](trace::Allocation& taken) { taken.plane = plane; });
}

void cannot(TraceBuilder& trace, trace::Capability capability) {
  trace.edit<trace::StoreCreated>(
      0, [&](trace::StoreCreated& created) { created.capabilities &= ~static_cast<std::uint64_t>(capability); });
}

bool is_right(const TraceBuilder& trace) {
  return trace.status_of(kRule) == Status::pass;
}

/// Byte by byte.
bool share_a_byte(const EvenRows& left, const EvenRows& right) {
  const auto bytes_of = [](const EvenRows& rows) {
    std::vector<bool> bytes(512);
    for (std::uint64_t i = 0; i < rows.rows; ++i)
      for (std::uint64_t b = 0; b < rows.row_bytes; ++b) bytes[rows.first + i * rows.stride + b] = true;
    return bytes;
  };
  const auto of_left = bytes_of(left);
  const auto of_right = bytes_of(right);
  for (std::size_t i = 0; i < of_left.size(); ++i)
    if (of_left[i] && of_right[i]) return true;
  return false;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(row_places)

BOOST_AUTO_TEST_CASE(rows_overlap_where_they_share_a_byte) {
  std::mt19937 random(7);
  const auto up_to = [&](std::uint64_t most) { return random() % (most + 1); };
  int overlapping = 0;
  for (int i = 0; i < 20000; ++i) {
    EvenRows left{up_to(40), 1 + up_to(11), 1 + up_to(9), 1};
    left.row_bytes += up_to(left.stride - 1);
    EvenRows right{up_to(40), left.stride, 1 + up_to(9), 1};
    const bool is_dense = i % 3 == 0;
    if (is_dense) right.stride = 1 + up_to(15);
    right.row_bytes = is_dense ? right.stride : 1 + up_to(right.stride - 1);
    const bool expected = share_a_byte(left, right);
    overlapping += expected ? 1 : 0;
    BOOST_REQUIRE_EQUAL(overlap(left, right), expected);
    BOOST_REQUIRE_EQUAL(overlap(right, left), expected);
  }
  BOOST_TEST(overlapping > 1000);
  BOOST_TEST(overlapping < 19000);
}

BOOST_AUTO_TEST_CASE(each_side_has_room_for_all_slots) {
  for (const std::size_t side : {0U, 1U}) {
    TwoRings trace;
    declare(trace, side, kPlaneBytes + 1000);
    BOOST_TEST(is_right(trace));
    declare(trace, side, kPlaneBytes - 1);
    BOOST_TEST(!is_right(trace));
  }
}

BOOST_AUTO_TEST_CASE(both_sides_may_lie_in_one_storage) {
  const auto together = [](std::uint64_t bytes, std::uint64_t first_key) {
    TwoRings trace;
    declare(trace, 0, bytes, Plane::both);
    trace.erase<trace::Allocation>(1);
    move_runs(trace, [&](const auto& run, auto, auto) { return run.offset + first_key; });
    return is_right(trace);
  };
  BOOST_TEST(together(2 * kPlaneBytes, 0));
  BOOST_TEST(together(2 * kPlaneBytes, kPlaneBytes));       // values in front
  BOOST_TEST(!together(2 * kPlaneBytes - 1, 0));            // keys fit, but not both
  BOOST_TEST(!together(2 * kPlaneBytes, kPlaneBytes + 1));  // keys run past the end
}

BOOST_AUTO_TEST_CASE(rows_lie_within_a_storage) {
  const auto shifted = [](std::uint64_t by, std::uint64_t bytes) {
    TwoRings trace;
    declare(trace, 0, bytes);
    move_runs(trace, [&](const auto& run, auto, auto) { return run.offset + by; });
    return is_right(trace);
  };
  BOOST_TEST(shifted(0, kPlaneBytes));
  BOOST_TEST(!shifted(1, kPlaneBytes));
  BOOST_TEST(shifted(1, kPlaneBytes + 1));
  BOOST_TEST(!shifted(1000000000, kPlaneBytes + 1));
}

BOOST_AUTO_TEST_CASE(a_slot_that_was_never_told_has_its_place_too) {
  TraceBuilder trace;
  const auto store = trace.ring({.capacity = kCapacity, .window = 1});
  trace.decode(store, 1, 2);  // slots 0 and 1 of the last sequence
  trace.end();
  BOOST_TEST(is_right(trace));
  move_runs(trace, [](const auto& run, auto, auto) { return run.offset + 2 * kRowBytes; });
  BOOST_TEST(!is_right(trace));  // 2 and 3 would lie behind the end
}

BOOST_AUTO_TEST_CASE(slots_may_run_downwards) {
  const auto downwards = [](std::uint64_t last) {
    TwoRings trace;
    move_runs(trace, [&](const auto& run, auto sequence, auto) {
      return last - (sequence * kCapacity + run.slot) * kRowBytes;
    });
    return is_right(trace);
  };
  BOOST_TEST(downwards(kPlaneBytes - kRowBytes));
  BOOST_TEST(!downwards(kPlaneBytes - kRowBytes - 1));  // below the beginning
}

BOOST_AUTO_TEST_CASE(sequences_lie_apart) {
  const auto of_sequence = [](std::uint64_t apart) {
    TwoRings trace;
    move_runs(trace, [&](const auto& run, auto sequence, auto) { return sequence * apart + run.slot * kRowBytes; });
    return is_right(trace);
  };
  BOOST_TEST(of_sequence(kPlaneBytes / 2));
  BOOST_TEST(!of_sequence(kPlaneBytes / 2 - kRowBytes));
  BOOST_TEST(!of_sequence(0));
}

BOOST_AUTO_TEST_CASE(sequences_that_lie_apart_by_one_row_only_overlap_at_once) {
  // Full causal, so that each window begins in slot 0, and no stride is known.
  TraceBuilder trace;
  const auto store = trace.flat({.capacity = kCapacity});
  trace.decode(store, 0, 3);
  trace.decode(store, 1, 3);
  trace.end();
  BOOST_TEST(is_right(trace));
  move_runs(trace, [](const auto& run, auto, auto) { return run.slot * kRowBytes; });
  BOOST_TEST(!is_right(trace));
}

BOOST_AUTO_TEST_CASE(sequences_may_take_turns_row_by_row) {
  const auto between = [](std::uint64_t distance) {
    TwoRings trace;
    move_runs(trace, [&](const auto& run, auto sequence, auto) {
      return std::uint64_t{run.slot} * 2 * kRowBytes + sequence * distance;
    });
    return is_right(trace);
  };
  BOOST_TEST(between(kRowBytes));
  BOOST_TEST(!between(kRowBytes - 1));
  BOOST_TEST(!between(0));
}

BOOST_AUTO_TEST_CASE(each_sequence_may_have_a_storage_of_its_own) {
  TwoRings trace;
  declare(trace, 0, kPlaneBytes / 2);
  trace::Allocation second = trace.payload<trace::Allocation>(0);
  second.storage = 77;
  trace.insert(trace.index_of(EventType::Allocation), {trace.store, trace::kNoSequence, 0}, second);
  move_runs(trace, [](const auto& run, auto, auto) { return run.slot * kRowBytes; });
  BOOST_TEST(is_right(trace));
  move_runs(trace, [](const auto& run, auto, auto) { return run.offset + 1; });
  BOOST_TEST(!is_right(trace));
}

/// As a store that grows does with its old one.
BOOST_AUTO_TEST_CASE(rows_do_not_lie_in_storages_that_were_freed) {
  const auto freed = [](std::uint64_t storage) {
    TwoRings trace;
    trace::Allocation taken = trace.payload<trace::Allocation>(0);
    const trace::Subject layer{trace.store, trace::kNoSequence, 0};
    trace::Free gone{};
    gone.storage = storage == 0 ? taken.storage : storage;
    gone.bytes = taken.bytes;
    gone.origin = taken.origin;
    taken.storage = 77;
    declare(trace, 0, taken.bytes);
    trace.insert(trace.index_of(EventType::Called), layer, gone);
    if (storage == 77) trace.insert(trace.index_of(EventType::Allocation), layer, taken);
    return trace;
  };
  BOOST_TEST(is_right(freed(77)));
  BOOST_TEST(!is_right(freed(0)));
}

BOOST_AUTO_TEST_CASE(layers_may_share_a_storage_but_no_byte) {
  const auto shared = [](std::uint64_t of_layer) {
    TwoRings trace(2);
    for (std::size_t i = 0; i < 2; ++i) {
      declare(trace, i, 2 * kPlaneBytes);
      trace.events[trace.index_of(EventType::Allocation, i)].layer = trace::kNoLayer;
      trace.erase<trace::Allocation>(2);
    }
    move_runs(trace, [&](const auto& run, auto, auto layer) { return run.offset + layer * of_layer; });
    return is_right(trace);
  };
  BOOST_TEST(shared(kPlaneBytes));
  BOOST_TEST(!shared(kPlaneBytes - kRowBytes));
  BOOST_TEST(!shared(0));
}

BOOST_AUTO_TEST_CASE(rows_do_not_lie_in_storages_of_other_planes_or_layers) {
  TwoRings none;
  for (int i = 0; i < 2; ++i) none.erase<trace::Allocation>();
  BOOST_TEST(!is_right(none));
  TwoRings values;
  declare(values, 0, kPlaneBytes, Plane::v);
  BOOST_TEST(!is_right(values));
  TwoRings other(2);
  other.events[other.index_of(EventType::Allocation, 0)].layer = 1;
  BOOST_TEST(!is_right(other));
}

BOOST_AUTO_TEST_CASE(rows_outside_of_all_storages_are_priced_and_not_placed) {
  TwoRings trace;
  move_runs(trace, [](const auto&, auto, auto) { return trace::kOutsideStorage; });
  BOOST_TEST(is_right(trace));
  BOOST_TEST((trace.failing() == std::vector<std::string>{"adapter-priced"}));
}

BOOST_AUTO_TEST_CASE(sequences_of_other_stores_may_share_rows) {
  const auto one_pool = [](bool is_zero_copy, std::uint64_t bytes) {
    TwoRings trace;
    if (!is_zero_copy) cannot(trace, trace::Capability::zero_copy);
    for (const std::size_t side : {0U, 1U}) declare(trace, side, bytes);
    move_runs(trace, [](const auto& run, auto, auto) { return run.slot * kRowBytes; });
    return is_right(trace);
  };
  BOOST_TEST(one_pool(false, kPlaneBytes / 2));
  BOOST_TEST(!one_pool(false, kPlaneBytes / 2 - 1));  // no room for one of them
  BOOST_TEST(!one_pool(true, kPlaneBytes / 2));
}

BOOST_AUTO_TEST_CASE(slots_of_a_pool_lie_from_the_beginning_of_its_planes_on) {
  const auto pool = [](std::uint64_t by, std::uint64_t slack, bool is_layers) {
    PagedTrace trace({.layers = 2});
    trace.append(0, 6);
    trace.append(1, 5);
    for (trace::LayerIndex layer = 0; layer < 2; ++layer) {
      trace.close(trace.window(0, layer, {0, 6}));
      trace.close(trace.window(1, layer, {2, 5}));
    }
    trace.finish();
    for (std::size_t i = 0; i < 4; ++i) {
      declare(trace, i, trace.payload<trace::Allocation>(i).bytes + slack);
      if (!is_layers) trace.events[trace.index_of(EventType::Allocation, i)].layer = trace::kNoLayer;
    }
    move_runs(trace, [&](const auto& run, auto, auto) { return run.offset + by; });
    return trace.status_of(kRule) == Status::pass;
  };
  BOOST_TEST(pool(0, 0, true));
  BOOST_TEST(pool(0, 64, true));
  BOOST_TEST(!pool(16, 64, true));
  BOOST_TEST(!pool(1, 64, true));
  BOOST_TEST(!pool(1000, 0, true));
  BOOST_TEST(pool(16, 64, false));  // storages of any layer: where a layer begins in them is the store's affair
  BOOST_TEST(!pool(65, 64, false));
}

BOOST_AUTO_TEST_CASE(a_pool_has_room_for_its_blocks) {
  for (const std::size_t side : {0U, 1U}) {
    PagedTrace trace;
    trace.append(0, 3);
    trace.close(trace.window(0, 0, {0, 3}));
    trace.finish();
    BOOST_TEST(is_right(trace));
    declare(trace, side, trace.payload<trace::Allocation>(side).bytes - 1);
    BOOST_TEST(!is_right(trace));
  }
}

BOOST_AUTO_TEST_CASE(rows_beside_codes_lie_within_a_storage) {
  trace::TraceReader reader(KVWITNESS_SOURCE_DIR "/verify/tests/traces/fields+codes@quantised.jsonl");
  TraceBuilder trace;
  trace.events.clear();
  for (trace::Event event; reader.next(event);) trace.events.push_back(event);
  const auto violations = [&] {
    Judge judge(reader.header().claims);
    judge.on_batch(trace.events);
    const CaseVerdict verdict = judge.finish();
    const auto rule = std::ranges::find(verdict.rules, kRule, &RuleVerdict::rule);
    return rule->violations;
  };
  BOOST_TEST(violations() == 0U);
  std::uint64_t moved = 0;
  move_runs(trace, [&](const auto& run, auto, auto) {
    const bool is_moved = run.offset != trace::kOutsideStorage;
    moved += is_moved ? 1 : 0;
    return is_moved ? run.offset + 1000000000 : run.offset;
  });
  BOOST_TEST(moved > 10U);
  BOOST_TEST(violations() == moved);
}

BOOST_AUTO_TEST_CASE(offsets_as_far_apart_as_can_be_are_judged) {
  for (const std::uint64_t far : {std::uint64_t{1} << 63, ~std::uint64_t{1}}) {
    TwoRings trace;
    move_runs(trace, [&](const auto& run, auto, auto) { return run.slot % 2 == 0 ? far : 0; });
    BOOST_TEST(!is_right(trace));
  }
}

BOOST_AUTO_TEST_SUITE_END()
