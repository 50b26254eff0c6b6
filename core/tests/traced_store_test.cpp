/// The seam: which events a call is told in, and what they say. The order is the table in trace/events.md.
#include "kvwitness/core/traced_store.hpp"

#include "kvwitness/trace/digest.hpp"
#include "traced_bench.hpp"

#include <sys/mman.h>

#include <cstddef>
#include <string>

using namespace kvwitness::core;
using namespace kvwitness::core::testing;
namespace trace = kvwitness::trace;

namespace {

/// Digest of one row by the trace's definition: XXH3 of the bytes, seeded with the position.
std::uint64_t digest(std::uint64_t tag, Plane plane, Position position) {
  float row[kElements];
  fill(tag, plane, row);
  return trace::digest_bytes(std::as_bytes(std::span(row)), position);
}

std::uint64_t digest_of_range(Plane plane, Position from, Position to) {
  std::uint64_t sum = 0;
  for (Position p = from; p < to; ++p) sum += digest(p, plane, p);  // tags count up with the positions
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(traced_store)

BOOST_AUTO_TEST_CASE(a_store_is_told_from_its_creation_to_its_end) {
  restart_storage_ids();
  Bench bench(make_ring_store(config_of(2, small_layer(4, {3, true}, true), 2)));
  const auto created = bench.events();
  BOOST_TEST(
      Bench::types_of(created) ==
      "RunBegin StoreCreated LayerDeclared LayerDeclared LayerFormat LayerFormat Allocation Allocation Allocation "
      "Allocation");
  const auto store = Bench::all<trace::StoreCreated>(created)[0];
  BOOST_TEST(bench.names.text(store.name) == "sut");
  BOOST_TEST(bench.names.text(store.kind) == "ring");
  BOOST_TEST(store.capabilities == ring_capabilities());
  BOOST_TEST(store.layers == 2U);
  BOOST_TEST(store.sequences == 2U);
  const auto declared = Bench::all<trace::LayerDeclared>(created)[1];
  BOOST_TEST(declared.capacity == 4U);
  BOOST_TEST(declared.window == 3U);
  BOOST_TEST(declared.limited == 1U);
  BOOST_TEST(declared.sliding == 1U);
  BOOST_TEST(declared.head_dim == kElements);
  const auto format = Bench::all<trace::LayerFormat>(created)[1];
  BOOST_TEST(format.k_row_bytes == kRowBytes);
  BOOST_TEST(format.donor == 1U);
  BOOST_TEST(trace::from_bits(format.score_scale_bits) == 0.5F);
  const auto memory = Bench::all<trace::Allocation>(created);
  for (std::size_t i = 0; i < 4; ++i) {
    BOOST_TEST(memory[i].storage == i + 1);
    BOOST_TEST(memory[i].bytes == 2 * 4 * kRowBytes);
    BOOST_TEST((memory[i].origin == trace::Origin::store));
    BOOST_TEST((memory[i].evidence == trace::Evidence::declared));
  }
  BOOST_REQUIRE(bench.append(1).ok());
  const auto view = bench.traced->open(0, 0, {0, 1});
  bench.events();
  bench.traced->report_memory();
  const auto reported = Bench::all<trace::Reported>(bench.events());
  BOOST_REQUIRE_EQUAL(reported.size(), 3U);
  BOOST_TEST(bench.names.text(reported[0].what) == "reserved-bytes");
  BOOST_TEST(reported[0].value == 4 * 2 * 4 * kRowBytes);
  BOOST_TEST(reported[1].value == 2 * kRowBytes);
  BOOST_TEST(reported[2].value == 1U);
  bench.traced.reset();
  const auto ended = bench.events();
  BOOST_TEST(Bench::types_of(ended) == "WindowClosed Free Free Free Free");
  BOOST_TEST(Bench::all<trace::WindowClosed>(ended)[0].view == *view);
  for (std::size_t i = 0; i < 4; ++i) BOOST_TEST(Bench::all<trace::Free>(ended)[i].storage == i + 1);
}

BOOST_AUTO_TEST_CASE(an_append_tells_rows_losses_and_pieces) {
  Bench bench(make_ring_store(config_of(1, small_layer(4, {2, true}, true))));
  bench.events();
  BOOST_REQUIRE(bench.append(3, 0, {.stream = 77, .ordinal = 5}).ok());
  auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) == "Called RowDigests RowDigests Append RegionMeasured");
  const auto called = Bench::all<trace::Called>(events)[0];
  BOOST_TEST((called.operation == trace::Operation::append));
  BOOST_TEST(called.count == 3U);
  BOOST_TEST(called.stream == 77U);
  BOOST_TEST(called.ordinal == 5U);
  const auto rows = Bench::all<trace::RowDigests>(events);
  BOOST_TEST(rows[0].first == 0U);
  BOOST_TEST(rows[0].count == 2U);
  BOOST_TEST(rows[0].k1 == digest(1, Plane::k, 1));
  BOOST_TEST(rows[1].first == 2U);
  BOOST_TEST(rows[1].count == 1U);
  BOOST_TEST(rows[1].v0 == digest(2, Plane::v, 2));
  BOOST_TEST(rows[1].k1 == 0U);
  BOOST_REQUIRE(bench.append(3).ok());  // 3, 4, 5 in slots 3, 0, 1; 0 and 1 are lost
  events = bench.events();
  BOOST_TEST(Bench::types_of(events) == "Called RowDigests RowDigests Overwrite Append Append RegionMeasured");
  const auto lost = Bench::all<trace::Overwrite>(events)[0];
  BOOST_TEST(lost.first == 0U);
  BOOST_TEST(lost.count == 2U);
  BOOST_TEST(lost.slot == 0U);
  BOOST_TEST(lost.by == 4U);
  const auto pieces = Bench::all<trace::Append>(events);
  BOOST_TEST(pieces[0].slot == 3U);
  BOOST_TEST(pieces[0].k_digest == digest_of_range(Plane::k, 3, 4));
  BOOST_TEST(pieces[1].first == 4U);
  BOOST_TEST(pieces[1].slot == 0U);
  BOOST_TEST(pieces[1].bytes == 2 * 2 * kRowBytes);
  BOOST_TEST(pieces[1].v_digest == digest_of_range(Plane::v, 4, 6));
  BOOST_TEST(pieces[1].held_from == 2U);
  for (const trace::Event& event : events) {
    BOOST_TEST(event.sequence == 0U);
    BOOST_TEST(event.layer == 0U);
    BOOST_TEST(event.store == 0U);
  }
}

BOOST_AUTO_TEST_CASE(a_refusal_is_followed_by_what_the_sequence_holds) {
  Bench bench(make_flat_store(config_of(2, small_layer(2, {}, false))));
  for (LayerIndex layer = 0; layer < 2; ++layer) BOOST_REQUIRE(bench.append(2, layer).ok());
  bench.events();
  BOOST_TEST((bench.append(1).code() == RefusalCode::full));
  auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) == "Called Refused RegionMeasured StateDigest StateDigest");
  const auto refusal = Bench::all<trace::Refused>(events)[0];
  BOOST_TEST((refusal.reason == RefusalCode::full));
  BOOST_TEST(refusal.asked_from == 2U);
  BOOST_TEST(refusal.asked_to == 3U);
  BOOST_TEST(refusal.held_to == 2U);
  BOOST_TEST((Bench::all<trace::RegionMeasured>(events)[0].outcome == RefusalCode::full));
  const auto state = Bench::all<trace::StateDigest>(events)[0];
  BOOST_TEST((state.reason == trace::DigestReason::after_refusal));
  BOOST_TEST(state.to == 2U);
  BOOST_TEST(state.k_digest == digest_of_range(Plane::k, 0, 2));
  BOOST_TEST((bench.traced->truncate(1, 0).code() == RefusalCode::unknown_sequence));
  BOOST_TEST(bench.types() == "Called Refused RegionMeasured");
  BOOST_TEST((bench.traced->refuse_unsupported(0, trace::Operation::fork).code() == RefusalCode::unsupported));
  BOOST_TEST(bench.types() == "Called Refused RegionMeasured StateDigest StateDigest");
}

BOOST_AUTO_TEST_CASE(a_window_is_told_run_by_run_where_it_lies) {
  Bench bench(make_ring_store(config_of(1, small_layer(4, {}, true), 2)));
  for (int i = 0; i < 6; ++i) BOOST_REQUIRE(bench.append(1).ok());  // 2..5 in slots 2, 3, 0, 1
  bench.events();
  const auto view = bench.traced->open(0, 0, {2, 6});
  BOOST_REQUIRE(view.ok());
  auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) == "Called WindowOpened WindowRun WindowRun RegionMeasured");
  const auto opened = Bench::all<trace::WindowOpened>(events)[0];
  BOOST_TEST(opened.view == *view);
  BOOST_TEST(opened.from == 2U);
  BOOST_TEST(opened.to == 6U);
  BOOST_TEST(opened.runs == 2U);
  BOOST_TEST(opened.copied_bytes == 0U);
  const auto runs = Bench::all<trace::WindowRun>(events);
  BOOST_TEST(runs[0].offset == 2 * kRowBytes);
  BOOST_TEST(runs[0].slot == 2U);
  BOOST_TEST(runs[0].k_digest == digest_of_range(Plane::k, 2, 4));
  BOOST_TEST(runs[1].offset == 0U);
  BOOST_TEST(runs[1].first == 4U);
  BOOST_TEST(runs[1].v_digest == digest_of_range(Plane::v, 4, 6));
  BOOST_TEST(bench.traced->window_of(*view).runs.size() == 2U);
  bench.traced->close(*view);
  BOOST_TEST(bench.types() == "WindowClosed");
  BOOST_REQUIRE(bench.traced->open(0, 0, {3, 3}).ok());
  BOOST_TEST(bench.types() == "Called WindowOpened RegionMeasured");
  BOOST_TEST((bench.traced->open(0, 0, {1, 4}).code() == RefusalCode::evicted));
  BOOST_TEST(bench.types() == "Called Refused RegionMeasured StateDigest");
}

BOOST_AUTO_TEST_CASE(view_ids_are_unique_over_the_stores_of_a_run) {
  Bench bench(make_ring_store(config_of(1, small_layer(4, {}, true))), {.views_max = 2});
  const auto other_store = make_ring_store(config_of(1, small_layer(4, {}, true)));
  TracedStore other(*other_store, bench.bus, 1, {.name = "ref"});
  BOOST_TEST(*bench.traced->open(0, 0, {0, 0}) == 1U);
  BOOST_TEST(*other.open(0, 0, {0, 0}) == 2U);
  BOOST_TEST(*bench.traced->open(0, 0, {0, 0}) == 3U);
  BOOST_TEST((bench.traced->open(0, 0, {0, 0}).code() == RefusalCode::no_memory));
  bench.traced->close(1);
  BOOST_TEST(*bench.traced->open(0, 0, {0, 0}) == 4U);
}

BOOST_AUTO_TEST_CASE(a_gather_is_priced_once_a_plane_and_attends_to_the_same_bits) {
  Bench bench(make_ring_store(config_of(1, small_layer(4, {}, true))));
  Scope scope(bench.bus, trace::ScopeKind::forward, 4096);
  for (int i = 0; i < 6; ++i) BOOST_REQUIRE(bench.append(1).ok());
  const auto pair = bench.traced->open(0, 0, {2, 6});
  bench.events();
  const auto copy = bench.traced->gather(*pair, scope);
  BOOST_REQUIRE(copy.ok());
  auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) ==
             "Called Allocation Allocation AdapterInserted AdapterInserted WindowOpened WindowRun RegionMeasured");
  BOOST_TEST(Bench::all<trace::Called>(events)[0].view == *pair);
  const auto adapters = Bench::all<trace::AdapterInserted>(events);
  BOOST_TEST((adapters[0].plane == Plane::k));
  BOOST_TEST((adapters[1].plane == Plane::v));
  for (const auto& adapter : adapters) {
    BOOST_TEST((adapter.kind == trace::AdapterKind::gather_kv_window));
    BOOST_TEST(adapter.view == *copy);
    BOOST_TEST(adapter.rows == 4U);
    BOOST_TEST(adapter.bytes_before == 4 * kRowBytes);
    BOOST_TEST(adapter.bytes_after == 4 * kRowBytes);
  }
  const auto run = Bench::all<trace::WindowRun>(events)[0];
  BOOST_TEST(run.slot == trace::kNoSlot);
  BOOST_TEST(run.offset == trace::kOutsideStorage);
  BOOST_TEST(run.k_digest == digest_of_range(Plane::k, 2, 6));
  BOOST_TEST((Bench::all<trace::RegionMeasured>(events)[0].allocations == 0U));

  const std::vector<float> q{0.001F, -0.002F, 0.003F, 0.001F};
  std::vector<float> from_pair(kElements);
  std::vector<float> from_copy(kElements);
  BOOST_REQUIRE(bench.traced->attend(*pair, input_at(q, 5), AttentionPath(), from_pair).ok());
  BOOST_REQUIRE(bench.traced->attend(*copy, input_at(q, 5), AttentionPath(), from_copy).ok());
  BOOST_TEST(std::memcmp(from_pair.data(), from_copy.data(), sizeof(float) * kElements) == 0);
  const auto steps = Bench::all<trace::AttentionStep>(bench.events());
  BOOST_TEST((steps[0].kernel == trace::KernelKind::blocked));
  BOOST_TEST((steps[1].kernel == trace::KernelKind::gathered));
  BOOST_TEST(steps[0].out_digest == steps[1].out_digest);

  // The copy goes stale with its rows, also when the window that it was made of is closed.
  bench.traced->close(*pair);
  BOOST_REQUIRE(bench.append(1).ok());
  BOOST_TEST((bench.traced->attend(*copy, input_at(q, 5), AttentionPath(), from_copy).code() == RefusalCode::stale));
}

BOOST_AUTO_TEST_CASE(a_gather_takes_both_planes_or_nothing) {
  Bench bench(make_ring_store(config_of(1, small_layer(4, {}, true))));
  Scope scope(bench.bus, trace::ScopeKind::forward, 64 + 2 * kRowBytes - 1);
  for (int i = 0; i < 2; ++i) BOOST_REQUIRE(bench.append(1).ok());
  const auto view = bench.traced->open(0, 0, {0, 2});
  bench.events();
  BOOST_TEST((bench.traced->gather(*view, scope).code() == RefusalCode::no_memory));
  BOOST_TEST(bench.types() == "Called Refused RegionMeasured StateDigest");
  BOOST_TEST(scope.ledger().allocations == 0U);
  Scope large(bench.bus, trace::ScopeKind::model, 64 + 2 * kRowBytes);
  const auto copy = bench.traced->gather(*view, large);
  BOOST_REQUIRE(copy.ok());
  large.reset();
  std::vector<float> out(kElements);
  const std::vector<float> q(kElements, 1.0F);
  BOOST_TEST((bench.traced->attend(*copy, input_at(q, 1), AttentionPath(), out).code() == RefusalCode::stale));
  for (int i = 0; i < 3; ++i) BOOST_REQUIRE(bench.append(1).ok());  // position 4 takes the slot of position 0
  BOOST_TEST((bench.traced->gather(*view, scope).code() == RefusalCode::stale));
}

BOOST_AUTO_TEST_CASE(attention_tells_each_query_and_the_runs_again_where_the_store_went_on) {
  Bench bench(make_ring_store(config_of(1, small_layer(8, {}, true))));
  BOOST_REQUIRE(bench.append(4).ok());
  const auto view = bench.traced->open(0, 0, {0, 4});
  bench.events();
  const std::vector<float> q(2 * kElements, 0.01F);
  std::vector<float> out(2 * kElements);
  BOOST_REQUIRE(
      bench.traced->attend(*view, input_at(q, 2, 2), AttentionPath(), out, {.stream = 9, .ordinal = 40}).ok());
  const auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) == "Called AttentionStep AttentionStep RegionMeasured");
  const auto called = Bench::all<trace::Called>(events)[0];
  BOOST_TEST(called.from == 2U);
  BOOST_TEST(called.to == 4U);
  BOOST_TEST(called.view == *view);
  BOOST_TEST(called.count == 2U);
  const auto steps = Bench::all<trace::AttentionStep>(events);
  BOOST_TEST(steps[1].query == 3U);
  BOOST_TEST(steps[1].ordinal == 41U);
  BOOST_TEST(steps[1].first_key == 0U);
  BOOST_TEST(steps[1].last_key == 3U);
  BOOST_TEST(steps[1].visited == 4U);
  BOOST_TEST(steps[1].out_digest == trace::digest_bytes(std::as_bytes(std::span(out).last(kElements))));

  BOOST_REQUIRE(bench.append(1).ok());
  bench.events();
  const AttentionInput again = input_at(q, 3);
  BOOST_REQUIRE(bench.traced->attend(*view, again, AttentionPath(), out).ok());
  BOOST_TEST(bench.types() == "Called WindowRun AttentionStep RegionMeasured");
  BOOST_REQUIRE(bench.traced->attend(*view, again, AttentionPath(), out).ok());
  BOOST_TEST(bench.types() == "Called AttentionStep RegionMeasured");
  BOOST_REQUIRE(bench.append(4).code() == RefusalCode::full);
  BOOST_REQUIRE(bench.append(1).ok());
  BOOST_REQUIRE(bench.append(1).ok());
  BOOST_REQUIRE(bench.append(1).ok());
  BOOST_REQUIRE(bench.append(1).ok());  // position 8 takes the slot of position 0
  bench.events();
  BOOST_TEST((bench.traced->attend(*view, again, AttentionPath(), out).code() == RefusalCode::stale));
  const auto refused = bench.events();
  BOOST_TEST(Bench::types_of(refused) == "Called Refused RegionMeasured StateDigest");
  BOOST_TEST(Bench::all<trace::Refused>(refused)[0].view == *view);
}

BOOST_AUTO_TEST_CASE(a_read_is_a_copy_and_priced) {
  Bench bench(make_ring_store(config_of(1, small_layer(4, {}, true))));
  for (int i = 0; i < 6; ++i) BOOST_REQUIRE(bench.append(1).ok());
  bench.events();
  std::vector<std::byte> k(3 * kRowBytes);
  std::vector<std::byte> v(3 * kRowBytes);
  BOOST_REQUIRE(bench.traced->read(0, 0, {3, 6}, {k, v}).ok());
  const auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) == "Called AdapterInserted AdapterInserted ReadRows RegionMeasured");
  const auto read = Bench::all<trace::ReadRows>(events)[0];
  BOOST_TEST(read.from == 3U);
  BOOST_TEST(read.to == 6U);
  BOOST_TEST(read.bytes == 6 * kRowBytes);
  BOOST_TEST(read.k_digest == digest_of_range(Plane::k, 3, 6));
  BOOST_TEST(read.v_digest == digest_of_range(Plane::v, 3, 6));
  BOOST_TEST((Bench::all<trace::AdapterInserted>(events)[1].kind == trace::AdapterKind::copy_read));
}

BOOST_AUTO_TEST_CASE(edits_tell_moves_then_the_edit_then_the_state) {
  Bench bench(make_flat_store(config_of(2, small_layer(8, {}, false))));
  for (LayerIndex layer = 0; layer < 2; ++layer) {
    bench.next_tag = 0;
    BOOST_REQUIRE(bench.append(6, layer).ok());
  }
  bench.events();
  BOOST_REQUIRE(bench.traced->evict(0, {0, 2}).ok());
  auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) == "Called Move Move Evict RegionMeasured StateDigest StateDigest");
  BOOST_TEST(events[1].layer == 0U);
  BOOST_TEST(events[2].layer == 1U);
  BOOST_TEST(events[3].layer == trace::kNoLayer);
  const auto evicted = Bench::all<trace::Evict>(events)[0];
  BOOST_TEST(evicted.freed == 2U);
  BOOST_TEST(evicted.moved == 4U);
  BOOST_TEST((Bench::all<trace::StateDigest>(events)[1].reason == trace::DigestReason::after_edit));
  BOOST_TEST(Bench::all<trace::StateDigest>(events)[1].v_digest == digest_of_range(Plane::v, 2, 6));
  BOOST_REQUIRE(bench.traced->truncate(0, 5).ok());
  events = bench.events();
  BOOST_TEST(Bench::types_of(events) == "Called Truncate RegionMeasured StateDigest StateDigest");
  BOOST_TEST(Bench::all<trace::Truncate>(events)[0].to == 5U);
  BOOST_TEST(Bench::all<trace::Truncate>(events)[0].old_end == 6U);
  BOOST_TEST(Bench::all<trace::Truncate>(events)[0].freed == 1U);
  bench.next_tag = 5;
  BOOST_REQUIRE(bench.append(1).ok());  // the seam counts on from where the store was taken back to
  BOOST_TEST(Bench::all<trace::RowDigests>(bench.events())[0].first == 5U);
  BOOST_REQUIRE(bench.traced->clear(0).ok());
  events = bench.events();
  BOOST_TEST(Bench::types_of(events) == "Called Clear RegionMeasured StateDigest StateDigest");
  const auto empty = Bench::all<trace::StateDigest>(events)[0];
  BOOST_TEST(empty.from == empty.to);
  BOOST_TEST(empty.k_digest == 0U);
  bench.traced->digest_state(0, trace::DigestReason::at_end);
  BOOST_TEST(bench.types() == "");  // nothing is held any more
}

BOOST_AUTO_TEST_CASE(digests_are_left_out_where_they_are_not_asked_for) {
  Bench bench(make_ring_store(config_of(1, small_layer(4, {}, true))), {.digest_windows = false});
  BOOST_REQUIRE(bench.append(2).code() == RefusalCode::none);
  bench.events();
  BOOST_REQUIRE(bench.traced->open(0, 0, {0, 2}).ok());
  const auto run = Bench::all<trace::WindowRun>(bench.events())[0];
  BOOST_TEST(run.k_digest == 0U);
  BOOST_TEST(run.v_digest == 0U);
}

namespace {

/// Values that nobody has read yet: each page of them faults when a store first does.
class UntouchedRow {
 public:
  explicit UntouchedRow(std::size_t values)
      : bytes_(values * sizeof(float)), start_(mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    BOOST_REQUIRE(start_ != MAP_FAILED);
  }
  UntouchedRow(const UntouchedRow&) = delete;
  UntouchedRow& operator=(const UntouchedRow&) = delete;
  ~UntouchedRow() { munmap(start_, bytes_); }

  [[nodiscard]] const float* values() const noexcept { return static_cast<const float*>(start_); }

 private:
  std::size_t bytes_;
  void* start_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(page_faults_are_told_by_the_outermost_region) {
  LayerGeometry layer = small_layer(4, {}, false);
  layer.head_dim = 1U << 18;
  Bench bench(make_flat_store(config_of(1, layer)));
  const auto append = [&] {
    const UntouchedRow k(layer.head_dim);
    const UntouchedRow v(layer.head_dim);
    BOOST_REQUIRE(bench.traced->append(0, 0, {k.values(), v.values(), 1}).ok());
  };
  const auto faults_told = [&] { return Bench::all<trace::RegionMeasured>(bench.events())[0].faults; };
  bench.events();
  append();
  BOOST_TEST(faults_told() > 0U);
  bench.bus.enter_region();
  append();
  bench.bus.leave_region();
  BOOST_TEST(faults_told() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
