/// Eviction from the middle: what moves, how it is numbered and rotated, and how the seam tells it.
#include "kvwitness/core/compact_store.hpp"

#include "kvwitness/core/decoder/rope.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/error.hpp"
#include "traced_bench.hpp"

#include <cmath>
#include <cstring>

using namespace kvwitness::core;
using namespace kvwitness::core::testing;
namespace trace = kvwitness::trace;

namespace {

constexpr std::uint32_t kCapacity = 16;

LayerGeometry layer_with(std::optional<double> theta, WindowSize window = {}) {
  LayerGeometry layer = small_layer(kCapacity, window, false);
  if (theta) {
    layer.rope.emplace();
    layer.rope->theta = *theta;
  }
  return layer;
}

StoreConfig layers_of(std::initializer_list<LayerGeometry> layers) {
  StoreConfig config;
  config.layers = layers;
  return config;
}

/// A key of kElements, rotated by hand: pairs (j, j + 2) turned by position * theta^(-j / 2), in double.
std::vector<double> rotated_by_hand(std::uint64_t tag, double theta, Position position) {
  float raw[kElements];
  fill(tag, Plane::k, raw);
  std::vector<double> out(kElements);
  for (std::size_t j = 0; j < kElements / 2; ++j) {
    const double angle = position * std::pow(theta, -static_cast<double>(j) / (kElements / 2.0));
    out[j] = raw[j] * std::cos(angle) - raw[j + 2] * std::sin(angle);
    out[j + 2] = raw[j + 2] * std::cos(angle) + raw[j] * std::sin(angle);
  }
  return out;
}

/// Rows of tags at consecutive positions, their keys rotated as a caller does it.
struct RotatedRows {
  RotatedRows(const LayerGeometry& layer, const std::vector<std::uint64_t>& tags, Position first) : raw(tags) {
    k = raw.k;
    if (!layer.rope) return;
    Rope rope(*layer.rope, kElements);
    for (std::size_t i = 0; i < tags.size(); ++i) {
      rope.set_position(first + static_cast<Position>(i));
      rope.rotate(std::span(raw.k).subspan(i * kElements, kElements), std::span(k).subspan(i * kElements, kElements));
    }
    position = first;
  }
  [[nodiscard]] RowsIn rows() const {
    return {k.data(), raw.v.data(), static_cast<std::uint32_t>(k.size() / kElements), raw.k.data(), position};
  }
  TaggedRows raw;
  std::vector<float> k;
  Position position = trace::kNoPosition;
};

void append(KvStore& store, const std::vector<std::uint64_t>& tags) {
  const StoreConfig& config = *store.layout().config;
  for (LayerIndex layer = 0; layer < config.layers.size(); ++layer) {
    const Position end = store.extent(0, layer)->end;
    BOOST_REQUIRE(store.append(0, layer, RotatedRows(config.layers[layer], tags, end).rows()).ok());
  }
}

struct Rows {
  std::vector<float> k;
  std::vector<float> v;
};

Rows read_all(const KvStore& store, LayerIndex layer) {
  const Extent held = *store.extent(0, layer);
  Rows rows{std::vector<float>(held.end * kElements), std::vector<float>(held.end * kElements)};
  BOOST_REQUIRE(store
                    .read(0, layer, {0, held.end},
                          {std::as_writable_bytes(std::span(rows.k)), std::as_writable_bytes(std::span(rows.v))})
                    .ok());
  return rows;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(compact_store)

BOOST_AUTO_TEST_CASE(an_evicted_span_was_never_seen_in_any_layer) {
  const StoreConfig config =
      layers_of({layer_with(10000.0, {3, true}), layer_with(std::nullopt), layer_with(500.0, {8, true})});
  const auto store = make_compact_store(config);
  const auto never_saw = make_compact_store(config);
  append(*store, {0, 1, 2, 90, 91, 3, 4});
  append(*never_saw, {0, 1, 2, 3, 4});
  const auto edited = store->evict(0, {3, 5});
  BOOST_TEST(edited->freed == 2U);
  append(*store, {5});
  append(*never_saw, {5});
  for (LayerIndex layer = 0; layer < 3; ++layer) {
    BOOST_TEST(store->extent(0, layer)->end == 6U);
    BOOST_TEST(same_bits(read_all(*store, layer).k, read_all(*never_saw, layer).k));
    BOOST_TEST(same_bits(read_all(*store, layer).v, read_all(*never_saw, layer).v));
  }
}

BOOST_AUTO_TEST_CASE(survivors_are_rotated_by_the_theta_of_their_layer) {
  const auto store = make_compact_store(layers_of({layer_with(10000.0), layer_with(20.0)}));
  append(*store, {3, 4, 5, 6, 7});
  BOOST_REQUIRE(store->evict(0, {0, 1}).ok());
  BOOST_REQUIRE(store->evict(0, {1, 2}).ok());
  for (const LayerIndex layer : {LayerIndex{0}, LayerIndex{1}}) {
    const Rows rows = read_all(*store, layer);
    const std::vector<std::uint64_t> tags{4, 6, 7};
    for (Position p = 0; p < 3; ++p) {
      const auto expected = rotated_by_hand(tags[p], layer == 0 ? 10000.0 : 20.0, p);
      for (std::size_t i = 0; i < kElements; ++i) BOOST_TEST(std::abs(rows.k[p * kElements + i] - expected[i]) < 1e-5);
      BOOST_TEST(is_row(reinterpret_cast<const std::byte*>(rows.v.data() + p * kElements), tags[p], Plane::v));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_report_names_every_piece_that_moved_or_was_rotated) {
  const auto store = make_compact_store(layers_of({layer_with(std::nullopt), layer_with(10000.0)}));
  append(*store, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto edited = store->evict(0, {2, 5});
  BOOST_REQUIRE(edited->moved.size() == 2U);
  for (LayerIndex layer = 0; layer < 2; ++layer) {
    const Moved& moved = edited->moved[layer];
    BOOST_TEST(moved.layer == layer);
    BOOST_TEST(moved.from_position == 5U);
    BOOST_TEST(moved.to_position == 2U);
    BOOST_TEST(moved.from_slot == 5U);
    BOOST_TEST(moved.to_slot == 2U);
    BOOST_TEST(moved.count == 3U);
    BOOST_TEST(moved.bytes == 3 * 2 * kRowBytes);
  }
  BOOST_REQUIRE(edited->rotated.size() == 1U);
  const Rotated& rotated = edited->rotated[0];
  BOOST_TEST(rotated.layer == 1U);
  BOOST_TEST(rotated.position == 2U);
  BOOST_TEST(rotated.slot == 2U);
  BOOST_TEST(rotated.applied == 2U);
  BOOST_TEST(rotated.count == 3U);
  BOOST_TEST(rotated.from_raw);
  BOOST_TEST(rotated.times == 1U);
}

BOOST_AUTO_TEST_CASE(raw_keys_are_storage_of_their_own_where_there_is_a_rope) {
  const auto store = make_compact_store(layers_of({layer_with(std::nullopt), layer_with(10000.0)}));
  append(*store, {0, 1, 2});
  const MemoryReport memory = store->memory();
  BOOST_TEST(memory.storages.size() == 5U);
  BOOST_TEST((memory.storages.back().plane == Plane::k_raw));
  BOOST_TEST(memory.storages.back().layer == 1U);
  BOOST_TEST(memory.storages.back().bytes == kCapacity * kRowBytes);
  BOOST_TEST(memory.reserved_bytes == 5 * kCapacity * kRowBytes);
  BOOST_TEST(memory.used_bytes == 3 * 5 * kRowBytes);
  BOOST_TEST(memory.resident_positions == 6U);
}

BOOST_AUTO_TEST_CASE(rotated_keys_without_their_raw_rows_are_refused) {
  const auto store = make_compact_store(layers_of({layer_with(10000.0)}));
  const TaggedRows rows({1});
  BOOST_TEST((store->append(0, 0, rows.rows()).code() == RefusalCode::unsupported));
  BOOST_TEST(store->extent(0, 0)->end == 0U);
  // What is refused anyway keeps its reason.
  BOOST_TEST((store->append(9, 0, rows.rows()).code() == RefusalCode::unknown_sequence));
  BOOST_TEST((store->append(0, 1, rows.rows()).code() == RefusalCode::out_of_order));
}

BOOST_AUTO_TEST_CASE(shapes_that_cannot_be_renumbered_or_rotated_are_refused) {
  StoreConfig sliding = layers_of({layer_with(std::nullopt)});
  sliding.layers[0].sliding = true;
  BOOST_CHECK_THROW(make_compact_store(sliding), trace::Error);
  StoreConfig odd = layers_of({layer_with(10000.0)});
  odd.layers[0].head_dim = 3;
  BOOST_CHECK_THROW(make_compact_store(odd), trace::Error);
  // Tiny ones made even the product's own stores differ from the oracle: angles had no digits left.
  for (const double theta : {0.0, 1e-300, 0.5}) {
    const StoreConfig config = layers_of({layer_with(theta)});
    BOOST_CHECK_THROW(make_compact_store(config), trace::Error);
  }
  BOOST_CHECK_NO_THROW(make_compact_store(layers_of({layer_with(1.0)})));
}

BOOST_AUTO_TEST_CASE(the_seam_tells_moves_rotations_and_the_survivors_at_both_positions) {
  Bench bench(make_compact_store(layers_of({layer_with(10000.0)})));
  const LayerGeometry layer = layer_with(10000.0);
  const RotatedRows given(layer, {0, 1, 2, 3}, 0);
  BOOST_REQUIRE(bench.traced->append(0, 0, given.rows()).ok());
  const auto appended = Bench::all<trace::Called>(bench.events());
  BOOST_TEST(appended[0].from == 0U);
  BOOST_TEST(appended[0].to == 4U);
  BOOST_REQUIRE(bench.traced->evict(0, {0, 1}).ok());
  const auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) ==
             "Called Move Rotate Rotate Rotate RowDigests RowDigests RowDigests RowDigests Evict RegionMeasured "
             "StateDigest");
  const auto rotations = Bench::all<trace::Rotate>(events);
  for (Position p = 0; p < 3; ++p) {
    BOOST_TEST(rotations[p].position == p);
    BOOST_TEST(rotations[p].applied == p);
    BOOST_TEST(rotations[p].from_raw == 1U);
    BOOST_TEST(rotations[p].times == 1U);
  }
  // V of tags 1, 2 and 3, as they were given at their positions and as they lie one below.
  const auto survivors = Bench::all<trace::RowDigests>(events);
  const auto v_digest = [](std::uint64_t tag, Position position) {
    float row[kElements];
    fill(tag, Plane::v, row);
    return trace::digest_bytes(std::as_bytes(std::span(row)), position);
  };
  BOOST_TEST(survivors[0].first == 1U);
  BOOST_TEST(survivors[0].v0 == v_digest(1, 1));
  BOOST_TEST(survivors[0].v1 == v_digest(2, 2));
  BOOST_TEST(survivors[1].first == 0U);
  BOOST_TEST(survivors[1].v0 == v_digest(1, 0));
  BOOST_TEST(survivors[2].first == 3U);
  BOOST_TEST(survivors[2].count == 1U);
  BOOST_TEST(survivors[3].v0 == v_digest(3, 2));
  // The seam's own count goes on from what is left.
  const RotatedRows next(layer, {4}, 3);
  BOOST_REQUIRE(bench.traced->append(0, 0, next.rows()).ok());
  BOOST_TEST(Bench::all<trace::RowDigests>(bench.events())[0].first == 3U);
}

BOOST_AUTO_TEST_SUITE_END()
