/// Which bytes a poison fills. That it spares every row which is seen again is held against the list models in the
/// random runs of all stores.
#include "kvwitness/core/poison.hpp"

#include "kvwitness/core/quantised_store.hpp"
#include "traced_bench.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <set>

using namespace kvwitness::core;
using namespace kvwitness::core::testing;
namespace trace = kvwitness::trace;

namespace {

LayerGeometry layer_of(std::uint32_t capacity, std::uint32_t window, bool sliding) {
  return small_layer(capacity, {window, true}, sliding);
}

void append(KvStore& store, SequenceId sequence, std::uint32_t count) {
  std::vector<std::uint64_t> tags(count);
  for (std::uint32_t i = 0; i < count; ++i) tags[i] = 100 + i;
  const TaggedRows rows(tags);
  for (LayerIndex layer = 0; layer < store.layout().config->layers.size(); ++layer)
    BOOST_REQUIRE(store.append(sequence, layer, rows.rows()).ok());
}

/// Rows of a storage, `row_bytes` each, that hold nothing but `value`.
std::set<std::uint64_t> filled_rows(const StorageUse& use, std::uint64_t row_bytes, std::byte value) {
  std::set<std::uint64_t> filled;
  for (std::uint64_t row = 0; row < use.bytes / row_bytes; ++row) {
    const std::span<const std::byte> bytes(use.base + row * row_bytes, row_bytes);
    if (std::ranges::all_of(bytes, [&](std::byte byte) { return byte == value; })) filled.insert(row);
  }
  return filled;
}

using Rows = std::set<std::uint64_t>;

}  // namespace

BOOST_AUTO_TEST_SUITE(poison_fills)

BOOST_AUTO_TEST_CASE(slots_that_were_never_written_and_none_else) {
  const auto store = make_flat_store(config_of(2, layer_of(5, 3, false), 2));
  append(*store, 0, 3);
  append(*store, 1, 1);
  // [sequence][slot]: slots 3, 4 of the first, 1 .. 4 of the second; K and V of two layers.
  const Rows dead{3, 4, 6, 7, 8, 9};
  BOOST_TEST(poison(*store, PoisonFill::nan) == 4 * dead.size() * kRowBytes);
  BOOST_TEST(store->memory().storages.size() == 4U);
  for (const StorageUse& use : store->memory().storages)
    BOOST_TEST((filled_rows(use, kRowBytes, std::byte{0xff}) == dead));
  poison(*store, PoisonFill::zero);
  for (const StorageUse& use : store->memory().storages)
    BOOST_TEST((filled_rows(use, kRowBytes, std::byte{0}) == dead));
}

BOOST_AUTO_TEST_CASE(what_left_a_ring_that_turned) {
  const auto store = make_ring_store(config_of(1, layer_of(5, 2, true)));
  append(*store, 0, 4);
  append(*store, 0, 3);
  BOOST_TEST(poison(*store, PoisonFill::huge) == 0U);
  BOOST_REQUIRE(store->evict(0, {0, 5}).ok());
  // Positions 5 and 6 lie in slots 0 and 1.
  BOOST_TEST(poison(*store, PoisonFill::huge) == 2 * 3 * kRowBytes);
  BOOST_TEST((filled_rows(store->memory().storages[0], kRowBytes, std::byte{0x7b}) == Rows{2, 3, 4}));
}

BOOST_AUTO_TEST_CASE(codes_and_the_full_rows_that_became_codes) {
  StoreConfig config = config_of(1, layer_of(6, 4, true));
  config.k_type = config.v_type = DType::f16;
  config.recent = 2;
  const auto store = make_quantised_store(config);
  append(*store, 0, 3);
  // One row is a code: five slots of codes are dead. Two are f32, in a plane of as many rows.
  const std::uint64_t code_bytes = k_row_bytes(config, 0);
  BOOST_TEST(poison(*store, PoisonFill::nan) == 2 * 5 * code_bytes);
  BOOST_REQUIRE(store->evict(0, {0, 2}).ok());
  BOOST_TEST(poison(*store, PoisonFill::nan) == 2 * (6 * code_bytes + kRowBytes));
}

BOOST_AUTO_TEST_CASE(everything_once_a_sequence_is_cleared) {
  const auto store = make_compact_store(config_of(1, layer_of(4, 2, false)));
  append(*store, 0, 4);
  BOOST_TEST(poison(*store, PoisonFill::nan) == 0U);
  BOOST_REQUIRE(store->clear(0).ok());
  BOOST_TEST(poison(*store, PoisonFill::nan) == store->memory().reserved_bytes);
}

BOOST_AUTO_TEST_CASE(with_bytes_that_mean_the_same_in_every_format) {
  const auto bits = [](PoisonFill fill) { return std::to_integer<std::uint32_t>(byte_of(fill)) * 0x01010101U; };
  BOOST_TEST(std::isnan(trace::from_bits(bits(PoisonFill::nan))));
  const float huge = trace::from_bits(bits(PoisonFill::huge));
  BOOST_TEST((std::isfinite(huge) && huge > 1e36F));
  // f16: exponent bits all ones and a fraction is NaN, the largest exponent below them is a number.
  BOOST_TEST((bits(PoisonFill::nan) & 0x7c00U) == 0x7c00U);
  BOOST_TEST((bits(PoisonFill::huge) & 0x7c00U) == 0x7800U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(poison_is_told)

BOOST_AUTO_TEST_CASE(with_the_state_of_every_sequence_after_it) {
  Bench bench(make_flat_store(config_of(1, layer_of(4, 2, false), 2)));
  BOOST_REQUIRE(bench.append(3));
  bench.events();
  BOOST_REQUIRE(bench.traced->poison(PoisonFill::nan).ok());
  const auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) == "Called Counter RegionMeasured StateDigest StateDigest");
  const auto called = Bench::all<trace::Called>(events)[0];
  BOOST_TEST((called.operation == trace::Operation::poison));
  BOOST_TEST(called.count == 2U);
  BOOST_TEST(called.ordinal == 1U);
  const auto filled = Bench::all<trace::Counter>(events)[0];
  BOOST_TEST(bench.names.text(filled.name) == "poisoned-bytes");
  BOOST_TEST(std::bit_cast<double>(filled.value_bits) == 2.0 * (1 + 4) * kRowBytes);
  const auto states = Bench::all<trace::StateDigest>(events);
  BOOST_TEST(states[0].to == 3U);
  BOOST_TEST(states[1].to == 0U);
}

BOOST_AUTO_TEST_CASE(and_leaves_views_as_fresh_as_they_were) {
  Bench bench(make_ring_store(config_of(1, layer_of(4, 2, true))));
  BOOST_REQUIRE(bench.append(3));
  const auto view = bench.traced->open(0, 0, {1, 3});
  BOOST_REQUIRE(view.ok());
  const std::vector<float> q(kElements, 1.0F);
  std::vector<float> before(kElements);
  std::vector<float> after(kElements);
  BOOST_REQUIRE(bench.traced->attend(*view, input_at(q, 2), {}, before).ok());
  BOOST_REQUIRE(bench.traced->poison(PoisonFill::nan).ok());
  BOOST_REQUIRE(bench.traced->attend(*view, input_at(q, 2), {}, after).ok());
  BOOST_TEST(before == after);
}

namespace {

/// A flat store, of which some things are told otherwise.
class AroundFlat : public KvStore {
 public:
  explicit AroundFlat(const LayerGeometry& layer) : inner_(make_flat_store(config_of(1, layer))) {}
  StoreLayout layout() const noexcept override { return inner_->layout(); }
  MemoryReport memory() const noexcept override { return inner_->memory(); }
  Outcome<Extent> extent(SequenceId sequence, LayerIndex layer) const override {
    return inner_->extent(sequence, layer);
  }
  Outcome<Appended> append(SequenceId sequence, LayerIndex layer, const RowsIn& rows) override {
    return inner_->append(sequence, layer, rows);
  }
  Outcome<Window> window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const override {
    return inner_->window(sequence, layer, range, scratch);
  }
  Outcome<Copied> read(SequenceId sequence, LayerIndex layer, Range range, const RowsOut& out) const override {
    return inner_->read(sequence, layer, range, out);
  }
  Outcome<Edited> truncate(SequenceId sequence, Position to) override { return inner_->truncate(sequence, to); }
  Outcome<Edited> evict(SequenceId sequence, Range range) override { return inner_->evict(sequence, range); }
  Outcome<Edited> clear(SequenceId sequence) override { return inner_->clear(sequence); }

 private:
  std::unique_ptr<KvStore> inner_;
};

/// Hands out copies, so that nobody knows where its rows lie.
class CopyingStore final : public AroundFlat {
 public:
  explicit CopyingStore(bool claims_zero_copy)
      : AroundFlat(layer_of(4, 2, false)), claims_zero_copy_(claims_zero_copy) {}
  StoreLayout layout() const noexcept override {
    StoreLayout layout = AroundFlat::layout();
    if (!claims_zero_copy_) layout.capabilities &= ~static_cast<std::uint64_t>(trace::Capability::zero_copy);
    return layout;
  }
  Outcome<Window> window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const override {
    static std::byte elsewhere[64 * kElements * sizeof(float)];
    auto shown = AroundFlat::window(sequence, layer, range, scratch);
    if (shown && !range.empty()) scratch.runs()[0].k = scratch.runs()[0].v = elsewhere;
    return shown;
  }

 private:
  bool claims_zero_copy_;
};

/// Keeps K and V of a slot side by side, in one storage: [slot][K, V].
class SideBySideStore final : public AroundFlat {
 public:
  explicit SideBySideStore(const LayerGeometry& layer, LayerIndex told_layer = 0, std::uint64_t more = 0)
      : AroundFlat(layer),
        more_(more),
        rows_(std::size_t{layer.capacity} * 2 * kRowBytes),
        storage_{told_layer, Plane::both, rows_.size(), rows_.data()} {}
  StoreLayout layout() const noexcept override {
    StoreLayout layout = AroundFlat::layout();
    layout.capabilities |= more_;
    return layout;
  }
  MemoryReport memory() const noexcept override {
    MemoryReport report = AroundFlat::memory();
    report.storages = {&storage_, 1};
    report.reserved_bytes = storage_.bytes;
    return report;
  }
  Outcome<Appended> append(SequenceId sequence, LayerIndex layer, const RowsIn& rows) override {
    const Position first = extent(sequence, layer)->end;
    auto done = AroundFlat::append(sequence, layer, rows);
    for (std::uint32_t i = 0; done && i < rows.count; ++i) {
      std::byte* const row = rows_.data() + (first + i) * 2 * kRowBytes;
      std::memcpy(row, rows.k + i * kElements, kRowBytes);
      std::memcpy(row + kRowBytes, rows.v + i * kElements, kRowBytes);
    }
    return done;
  }
  Outcome<Window> window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const override {
    auto shown = AroundFlat::window(sequence, layer, range, scratch);
    if (!shown || range.empty()) return shown;
    Run& run = scratch.runs()[0];
    run.k = rows_.data() + range.from * 2 * kRowBytes;
    run.v = run.k + kRowBytes;
    run.k_stride_bytes = run.v_stride_bytes = 2 * kRowBytes;
    return shown;
  }

 private:
  std::uint64_t more_;
  std::vector<std::byte> rows_;
  StorageUse storage_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(as_refused_where_nobody_knows_where_rows_lie) {
  for (const bool claims_zero_copy : {false, true}) {
    Bench bench(std::make_unique<CopyingStore>(claims_zero_copy));
    BOOST_REQUIRE(bench.append(2));
    bench.events();
    const auto done = bench.traced->poison(PoisonFill::nan);
    BOOST_TEST((done.code() == RefusalCode::unsupported));
    BOOST_TEST(bench.types() == "Called Refused RegionMeasured StateDigest");
  }
}

/// In one that is declared for the layer, and in one for rows of any layer.
BOOST_AUTO_TEST_CASE(where_keys_and_values_lie_in_one_storage) {
  for (const LayerIndex told_layer : {LayerIndex{0}, trace::kNoLayer}) {
    Bench bench(std::make_unique<SideBySideStore>(layer_of(4, 2, false), told_layer));
    BOOST_REQUIRE(bench.append(3));
    bench.events();
    BOOST_REQUIRE(bench.traced->poison(PoisonFill::nan).ok());
    const auto events = bench.events();
    BOOST_TEST(std::bit_cast<double>(Bench::all<trace::Counter>(events)[0].value_bits) == 2.0 * kRowBytes);
    const StorageUse& all = bench.store->memory().storages[0];
    BOOST_TEST((filled_rows(all, 2 * kRowBytes, std::byte{0xff}) == Rows{3}));
  }
}

/// Those of a store that renumbers are needed again, and nothing tells where in the storage they would be.
BOOST_AUTO_TEST_CASE(as_refused_where_nobody_knows_where_keys_before_rotation_lie) {
  constexpr auto kRenumbers = static_cast<std::uint64_t>(trace::Capability::middle_evict) |
                              static_cast<std::uint64_t>(trace::Capability::renumbers);
  const auto poisoned = [](bool is_rotated, std::uint64_t more) {
    LayerGeometry layer = layer_of(4, 2, false);
    if (is_rotated) layer.rope.emplace();
    SideBySideStore store(layer, 0, more);
    append(store, 0, 3);
    KeptRows kept;
    return store.rows_kept(kept).code();
  };
  BOOST_TEST((poisoned(true, kRenumbers) == RefusalCode::unsupported));
  BOOST_TEST((poisoned(true, 0) == RefusalCode::none));
  BOOST_TEST((poisoned(false, kRenumbers) == RefusalCode::none));
}

BOOST_AUTO_TEST_SUITE_END()
