/// Stores that return nonsense: it is told as it is, nothing is read that is not known to be memory, nothing crashes.
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/probe.hpp"
#include "traced_bench.hpp"

#include <functional>
#include <new>
#include <stdexcept>

using namespace kvwitness::core;
using namespace kvwitness::core::testing;
namespace trace = kvwitness::trace;

namespace {

/// A ring whose answers a test can spoil.
class SpoiltStore : public KvStore {
 public:
  explicit SpoiltStore(const StoreConfig& config) : inner(make_ring_store(config)) {}

  StoreLayout layout() const noexcept override { return inner->layout(); }
  MemoryReport memory() const noexcept override { return inner->memory(); }
  Outcome<Extent> extent(SequenceId sequence, LayerIndex layer) const override {
    auto held = inner->extent(sequence, layer);
    return spoil_extent ? spoil_extent(*held) : held;
  }
  Outcome<Appended> append(SequenceId sequence, LayerIndex layer, const RowsIn& rows) override {
    const auto appended = inner->append(sequence, layer, rows);
    return spoil_append ? spoil_append(*appended) : appended;
  }
  Outcome<Window> window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const override {
    const auto window = inner->window(sequence, layer, range, scratch);
    return spoil_window ? spoil_window(*window, scratch) : window;
  }
  Outcome<Copied> read(SequenceId sequence, LayerIndex layer, Range range, const RowsOut& out) const override {
    ++reads;
    const auto copied = inner->read(sequence, layer, range, out);
    return copied.ok() ? Outcome<Copied>(Copied{copied->bytes, heap}) : copied;
  }
  Outcome<Done> still_valid(const Window&) const override { return Done{}; }
  Outcome<Edited> truncate(SequenceId sequence, Position to) override { return inner->truncate(sequence, to); }
  Outcome<Edited> evict(SequenceId sequence, Range range) override { return inner->evict(sequence, range); }
  Outcome<Edited> clear(SequenceId sequence) override {
    auto edited = inner->clear(sequence);
    return edited.ok() ? Outcome<Edited>(Edited{edited->freed, edited->moved, heap}) : edited;
  }

  std::unique_ptr<KvStore> inner;
  mutable int reads = 0;
  Declared heap;  ///< what reads and clears say that they took
  std::function<Outcome<Extent>(Extent)> spoil_extent;
  std::function<Outcome<Appended>(Appended)> spoil_append;
  std::function<Outcome<Window>(Window, WindowScratch&)> spoil_window;
};

struct SpoiltBench : Bench {
  SpoiltBench() : Bench(std::make_unique<SpoiltStore>(config_of(1, small_layer(4, {}, true)))) {
    spoilt = static_cast<SpoiltStore*>(store.get());
    for (int i = 0; i < 4; ++i) BOOST_REQUIRE(append(1).ok());
    events();
  }

  /// Opens [0, 4) with its first run changed by `change`, and returns what was told about it.
  trace::WindowRun told_run(const std::function<void(Run&)>& change) {
    spoilt->spoil_window = [change](Window window, WindowScratch& scratch) -> Outcome<Window> {
      change(scratch.runs()[0]);
      return window;
    };
    view = *traced->open(0, 0, {0, 4});
    return all<trace::WindowRun>(events())[0];
  }
  /// Keys that attention over the opened window visits.
  std::uint32_t visited() {
    const std::vector<float> q(kElements, 0.01F);
    std::vector<float> out(kElements);
    BOOST_REQUIRE(traced->attend(view, input_at(q, 3), AttentionPath(), out).ok());
    return all<trace::AttentionStep>(events())[0].visited;
  }

  SpoiltStore* spoilt;
  trace::ViewId view = 0;
};

/// A store that can only copy: `window` and `still_valid` are the interface's own.
class CopyingStore : public SpoiltStore {
 public:
  using SpoiltStore::SpoiltStore;
  StoreLayout layout() const noexcept override {
    StoreLayout layout = inner->layout();
    layout.kind = "copying";
    for (const auto bit : {trace::Capability::zero_copy, trace::Capability::held_views})
      layout.capabilities &= ~static_cast<std::uint64_t>(bit);
    return layout;
  }
  Outcome<Window> window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const override {
    return KvStore::window(sequence, layer, range, scratch);
  }
  Outcome<Done> still_valid(const Window& window) const override { return KvStore::still_valid(window); }
};

class StoreOfNothing final : public SpoiltStore {
 public:
  using SpoiltStore::SpoiltStore;
  StoreLayout layout() const noexcept override { return {"nothing", nullptr, 0, 1}; }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(traced_nonsense)

BOOST_AUTO_TEST_CASE(pieces_are_told_as_they_are_one_too_many_at_most) {
  SpoiltBench bench;
  std::vector<Piece> pieces(100, Piece{1000, 9, 4000000000U});
  bench.spoilt->spoil_append = [&](Appended) -> Outcome<Appended> { return Appended{pieces, pieces, {3, 96}}; };
  BOOST_REQUIRE(bench.append(1).ok());
  const auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) ==
             "Called RowDigests Allocation Overwrite Overwrite Append Append RegionMeasured");
  const auto piece = Bench::all<trace::Append>(events)[0];
  BOOST_TEST(piece.first == 1000U);
  BOOST_TEST(piece.count == 9U);
  BOOST_TEST(piece.slot == 4000000000U);
  BOOST_TEST(piece.k_digest == 0U);  // nine rows were not given
  const auto heap = Bench::all<trace::Allocation>(events)[0];
  BOOST_TEST(heap.count == 3U);
  BOOST_TEST(heap.bytes == 96U);
  BOOST_TEST((heap.origin == trace::Origin::heap));
  BOOST_TEST((heap.evidence == trace::Evidence::declared));
}

BOOST_AUTO_TEST_CASE(heap_use_that_a_store_admits_is_told_in_every_call) {
  SpoiltBench bench;
  bench.spoilt->heap = {2, 80};
  std::vector<std::byte> k(kRowBytes);
  std::vector<std::byte> v(kRowBytes);
  BOOST_REQUIRE(bench.traced->read(0, 0, {0, 1}, {k, v}).ok());
  auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) == "Called Allocation AdapterInserted AdapterInserted ReadRows RegionMeasured");
  BOOST_TEST(Bench::all<trace::Allocation>(events)[0].count == 2U);
  BOOST_REQUIRE(bench.traced->clear(0).ok());
  events = bench.events();
  BOOST_TEST(Bench::types_of(events) == "Called Allocation Clear RegionMeasured StateDigest");
  BOOST_TEST(Bench::all<trace::Allocation>(events)[0].bytes == 80U);
}

/// Whatever a store stamps its windows with is told as it is.
BOOST_AUTO_TEST_CASE(the_stamp_of_a_window_is_told) {
  SpoiltBench bench;
  for (const std::uint64_t stamp : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0}}) {
    bench.spoilt->spoil_window = [stamp](Window window, WindowScratch&) -> Outcome<Window> {
      window.generation = stamp;
      return window;
    };
    BOOST_REQUIRE(bench.traced->open(0, 0, {0, 4}).ok());
    BOOST_TEST(Bench::all<trace::WindowOpened>(bench.events())[0].generation == stamp);
  }
}

BOOST_AUTO_TEST_CASE(a_piece_at_another_position_has_another_digest) {
  SpoiltBench bench;
  const Piece elsewhere{7, 1, 0};
  bench.spoilt->spoil_append = [&](Appended) -> Outcome<Appended> { return Appended{{&elsewhere, 1}, {}, {}}; };
  BOOST_REQUIRE(bench.append(1).ok());
  const auto events = bench.events();
  BOOST_TEST(Bench::all<trace::Append>(events)[0].k_digest != Bench::all<trace::RowDigests>(events)[0].k0);
  BOOST_TEST(Bench::all<trace::RowDigests>(events)[0].first == 4U);  // the seam's own count
}

BOOST_AUTO_TEST_CASE(what_a_store_throws_is_told_as_a_refusal) {
  SpoiltBench bench;
  bench.spoilt->spoil_append = [](Appended) -> Outcome<Appended> { throw std::bad_alloc(); };
  BOOST_TEST((bench.append(1).code() == RefusalCode::no_memory));
  bench.spoilt->spoil_append = [](Appended) -> Outcome<Appended> { throw std::runtime_error("lost"); };
  BOOST_TEST((bench.append(1).code() == RefusalCode::corrupt));
  bench.spoilt->spoil_append = [](Appended) -> Outcome<Appended> { return trace::Refused{}; };
  BOOST_TEST((bench.append(1).code() == RefusalCode::corrupt));
  // It was in the store's hands each time, and stands in its state: the judge sees that a refusal changed something.
  const auto states = Bench::all<trace::StateDigest>(bench.events());
  BOOST_TEST(states[0].to == 5U);
  BOOST_TEST(states[2].to == 7U);
}

BOOST_AUTO_TEST_CASE(an_extent_that_cannot_be_is_told_without_digests) {
  SpoiltBench bench;
  bench.spoilt->spoil_extent = [](Extent) -> Outcome<Extent> { return Extent{9, 2}; };
  bench.traced->digest_state(0, trace::DigestReason::after_edit);
  bench.spoilt->spoil_extent = [](Extent) -> Outcome<Extent> { return Extent{0, 4000000000U}; };
  bench.traced->digest_state(0, trace::DigestReason::after_edit);
  const auto states = Bench::all<trace::StateDigest>(bench.events());
  BOOST_TEST(states[0].from == 9U);
  BOOST_TEST(states[0].to == 2U);
  BOOST_TEST(states[1].to == 4000000000U);
  for (const auto& state : states) BOOST_TEST(state.k_digest == 0U);
}

BOOST_AUTO_TEST_CASE(rows_in_memory_that_was_never_declared_are_not_read) {
  SpoiltBench bench;
  const auto wild = reinterpret_cast<const std::byte*>(std::uintptr_t{0x10});
  const trace::WindowRun run = bench.told_run([&](Run& r) { r.k = wild; });
  BOOST_TEST(run.offset == trace::kOutsideStorage);
  BOOST_TEST(run.count == 4U);
  BOOST_TEST(run.k_digest == 0U);
  BOOST_TEST(run.v_digest == 0U);
  BOOST_TEST(bench.visited() == 0U);
}

BOOST_AUTO_TEST_CASE(runs_are_clamped_before_memory_is_read) {
  {
    SpoiltBench bench;
    const auto run = bench.told_run([](Run& r) { r.count = std::numeric_limits<std::uint32_t>::max(); });
    BOOST_TEST(run.count == std::numeric_limits<std::uint32_t>::max());
    BOOST_TEST(run.k_digest == 0U);
    BOOST_TEST(bench.visited() == 4U);
  }
  {
    SpoiltBench bench;
    bench.told_run([](Run& r) { r.k_stride_bytes = 3 * kRowBytes; });  // the third row would lie behind the storage
    BOOST_TEST(bench.visited() == 2U);
  }
  {
    SpoiltBench bench;
    bench.told_run([](Run& r) {
      r.k_stride_bytes = r.v_stride_bytes = 0;  // one row, again and again
      r.count = 1U << 30;
    });
    BOOST_TEST(bench.traced->window_of(bench.view).runs[0].count == 4U);  // a layer has no more rows than slots
  }
  {
    SpoiltBench bench;
    bench.told_run([](Run& r) { r.k_stride_bytes = static_cast<std::size_t>(-16); });
    BOOST_TEST(bench.visited() == 1U);
  }
  {
    SpoiltBench bench;
    bench.told_run([](Run& r) { r.k += 3 * kRowBytes + kRowBytes / 2; });  // half of it lies behind the storage
    BOOST_TEST(bench.visited() == 0U);
  }
  {
    SpoiltBench bench;
    bench.told_run([](Run& r) { r.k += 1; });  // no address of an f32
    BOOST_TEST(bench.visited() == 0U);
  }
  {
    SpoiltBench bench;
    bench.told_run([](Run& r) { r.first = trace::kNoPosition - 1; });
    BOOST_TEST(bench.visited() == 0U);
  }
}

BOOST_AUTO_TEST_CASE(run_lists_outside_the_caller_s_room_are_not_walked) {
  SpoiltBench bench;
  const Run* wild = reinterpret_cast<const Run*>(std::uintptr_t{0x40});
  bench.spoilt->spoil_window = [&](Window window, WindowScratch&) -> Outcome<Window> {
    window.runs = {wild, 3};
    return window;
  };
  bench.view = *bench.traced->open(0, 0, {0, 4});
  BOOST_TEST(bench.types() == "Called WindowOpened RegionMeasured");
  BOOST_TEST(bench.visited() == 0U);
  bench.spoilt->spoil_window = [&](Window window, WindowScratch&) -> Outcome<Window> {
    window.runs = {window.runs.data(), 1U << 20};
    return window;
  };
  BOOST_REQUIRE(bench.traced->open(0, 0, {0, 4}).ok());
  BOOST_TEST(Bench::all<trace::WindowRun>(bench.events()).size() == 2U);
  // From the second of the two runs that there is room for.
  bench.spoilt->spoil_window = [&](Window window, WindowScratch&) -> Outcome<Window> {
    window.runs = {window.runs.data() + 1, 1U << 20};
    return window;
  };
  BOOST_REQUIRE(bench.traced->open(0, 0, {0, 4}).ok());
  BOOST_TEST(Bench::all<trace::WindowRun>(bench.events()).size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_store_without_a_configuration_is_refused_when_it_is_wrapped) {
  trace::NameTable names;
  trace::Bus bus(names);
  StoreOfNothing store(config_of(1, small_layer(4, {}, true)));
  BOOST_CHECK_THROW(TracedStore(store, bus, 0), trace::Error);
}

BOOST_AUTO_TEST_CASE(the_interface_s_own_window_copies_and_is_priced) {
  Bench bench(std::make_unique<CopyingStore>(config_of(1, small_layer(4, {}, true))));
  for (int i = 0; i < 6; ++i) BOOST_REQUIRE(bench.append(1).ok());
  bench.events();
  const auto view = bench.traced->open(0, 0, {2, 6});
  BOOST_REQUIRE(view.ok());
  const auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) == "Called AdapterInserted AdapterInserted WindowOpened WindowRun RegionMeasured");
  for (const auto& adapter : Bench::all<trace::AdapterInserted>(events)) {
    BOOST_TEST((adapter.kind == trace::AdapterKind::copy_read));
    BOOST_TEST(adapter.bytes_after == 4 * kRowBytes);
    BOOST_TEST(adapter.view == *view);
  }
  BOOST_TEST(Bench::all<trace::WindowOpened>(events)[0].copied_bytes == 8 * kRowBytes);
  std::vector<std::byte> k(4 * kRowBytes);
  std::vector<std::byte> v(4 * kRowBytes);
  BOOST_REQUIRE(bench.store->read(0, 0, {2, 6}, {k, v}).ok());
  const auto run = Bench::all<trace::WindowRun>(events)[0];
  BOOST_TEST(run.slot == trace::kNoSlot);
  BOOST_TEST(run.k_digest == trace::rows_digest(k.data(), kRowBytes, kRowBytes, 2, 4));
  BOOST_TEST(run.v_digest == trace::rows_digest(v.data(), kRowBytes, kRowBytes, 2, 4));
  BOOST_TEST((bench.traced->open(0, 0, {1, 6}).code() == RefusalCode::evicted));
  BOOST_TEST((bench.traced->open(0, 0, {2, 7}).code() == RefusalCode::future));
  WindowScratch small(1, 8 * kRowBytes - 1);
  // A store whose `read` does not look how much room it has is not asked.
  const int reads = static_cast<CopyingStore*>(bench.store.get())->reads;
  BOOST_TEST((bench.store->window(0, 0, {2, 6}, small).code() == RefusalCode::no_memory));
  BOOST_TEST(static_cast<CopyingStore*>(bench.store.get())->reads == reads);
}

BOOST_AUTO_TEST_CASE(the_interface_s_own_staleness_follows_the_extent) {
  CopyingStore store(config_of(1, small_layer(4, {}, true)));
  const TaggedRows one({1});
  for (int i = 0; i < 4; ++i) BOOST_REQUIRE(store.append(0, 0, one.rows()).ok());
  WindowScratch scratch(1, 8 * kRowBytes);
  const auto window = store.window(0, 0, {1, 3}, scratch);
  const auto empty = store.window(0, 0, {2, 2}, scratch);
  BOOST_TEST(store.still_valid(*window).ok());
  BOOST_REQUIRE(store.append(0, 0, one.rows()).ok());
  BOOST_TEST(store.still_valid(*window).ok());  // position 0 is lost, 1 and 2 are not
  BOOST_REQUIRE(store.append(0, 0, one.rows()).ok());
  BOOST_TEST((store.still_valid(*window).code() == RefusalCode::stale));
  BOOST_TEST(store.still_valid(*empty).ok());
  BOOST_REQUIRE(store.clear(0).ok());
  for (int i = 0; i < 3; ++i) BOOST_REQUIRE(store.append(0, 0, one.rows()).ok());
  BOOST_TEST((store.still_valid(*window).code() == RefusalCode::stale));  // held again, but the end was taken back
}

BOOST_AUTO_TEST_CASE(a_copy_is_refused_after_an_edit_that_its_store_cannot_follow) {
  Bench bench(std::make_unique<CopyingStore>(config_of(1, small_layer(8, {}, true))));
  for (int i = 0; i < 4; ++i) BOOST_REQUIRE(bench.append(1).ok());
  const auto view = bench.traced->open(0, 0, {0, 4});
  const std::vector<float> q(kElements, 0.01F);
  std::vector<float> out(kElements);
  BOOST_REQUIRE(bench.append(1).ok());
  BOOST_TEST(bench.traced->attend(*view, input_at(q, 3), AttentionPath(), out).ok());
  // Taken back and written anew: the extent alone looks as if nothing had happened.
  BOOST_REQUIRE(bench.traced->truncate(0, 3).ok());
  BOOST_REQUIRE(bench.append(2).ok());
  BOOST_TEST((bench.traced->attend(*view, input_at(q, 3), AttentionPath(), out).code() == RefusalCode::stale));
}

BOOST_AUTO_TEST_SUITE_END()
