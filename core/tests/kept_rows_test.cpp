// Sinks, donors, ranks and layers sized by their windows: what store_random_test's list model does not look at.
#include "kvwitness/core/attention.hpp"
#include "kvwitness/core/plan.hpp"
#include "kvwitness/trace/error.hpp"
#include "store_check.hpp"

#include <cmath>
#include <numeric>

using namespace kvwitness::core;
using namespace kvwitness::core::testing;

namespace {

StoreConfig one(const LayerGeometry& layer) {
  StoreConfig config;
  config.layers = {layer};
  return config;
}

LayerGeometry sink_layer(std::uint32_t sinks, std::uint32_t window, std::uint32_t capacity) {
  LayerGeometry layer = small_layer(capacity, {window, true}, true);
  layer.sinks = sinks;
  return layer;
}

void append_tags(KvStore& store, std::uint64_t first, std::uint32_t count, LayerIndex layer = 0) {
  for (std::uint32_t i = 0; i < count; ++i) BOOST_REQUIRE(store.append(0, layer, TaggedRows({first + i}).rows()).ok());
}

std::string complaint(const StoreConfig& config) {
  try {
    validate(config);
  } catch (const kvwitness::trace::Error& error) {
    return error.what();
  }
  return {};
}

/// Mean of the first values of the rows seen: all keys are zero, so that every key weighs the same.
double mean_seen(std::span<const Run> runs, Position query, WindowSize window, std::uint32_t sinks, Visited& visited) {
  std::vector<float> q(kElements);
  std::vector<float> out(kElements);
  AttentionInput input;
  input.q = q;
  input.first_query = query;
  input.window = window;
  input.sinks = sinks;
  input.head_dim = kElements;
  attend_online(input, runs, out, {&visited, 1});
  return static_cast<double>(out[0]);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kept_rows)

BOOST_AUTO_TEST_CASE(sinks_and_donors_that_cannot_be_are_refused_by_name) {
  BOOST_TEST(complaint(one(sink_layer(2, 4, 6))).empty());
  BOOST_TEST(complaint(one(sink_layer(3, 4, 6))).find("layers[0].capacity") == 0U);
  LayerGeometry all_sinks = small_layer(4, {}, false);
  all_sinks.sinks = 4;
  BOOST_TEST(complaint(one(all_sinks)).find("layers[0].sinks") == 0U);

  StoreConfig config;
  config.layers.assign(3, small_layer(8, {4, true}, true));
  config.layers[1].donor = 0;
  config.layers[1].q_heads = 4;
  BOOST_TEST(complaint(config).empty());
  config.layers[2].donor = 1;  // a reader itself
  BOOST_TEST(complaint(config).find("layers[2].donor") == 0U);
  config.layers[2].donor = 2;
  BOOST_TEST(complaint(config).find("layers[2].donor") == 0U);
  config.layers[2].donor = 0;
  config.layers[2].window.keys = 3;
  BOOST_TEST(complaint(config).find("layers[2].donor") == 0U);

  BOOST_CHECK_THROW(make_ring_store(one(sink_layer(2, 4, 6))), kvwitness::trace::Error);
  config.layers.pop_back();
  BOOST_CHECK_THROW(make_sink_ring_store(config), kvwitness::trace::Error);
  BOOST_CHECK_THROW(make_flat_store(config), kvwitness::trace::Error);
}

BOOST_AUTO_TEST_CASE(a_sink_ring_turns_behind_its_sinks) {
  // C = 7, S = 2: positions 0, 1 stay, 2 .. 6 fill slots 2 .. 6, 7 takes slot 2 again.
  const auto store = make_sink_ring_store(one(sink_layer(2, 4, 7)));
  append_tags(*store, 0, 9);
  WindowScratch scratch(3, 0);
  const auto window = store->window(0, 0, {5, 9}, scratch);
  BOOST_REQUIRE(window.ok());
  BOOST_REQUIRE_EQUAL(window->runs.size(), 3U);
  const Position firsts[] = {0, 5, 7};
  const Slot slots[] = {0, 5, 2};
  for (std::size_t i = 0; i < 3; ++i) {
    BOOST_TEST(window->runs[i].first == firsts[i]);
    BOOST_TEST(window->runs[i].slot == slots[i]);
    BOOST_TEST(window->runs[i].count == 2U);
  }
  BOOST_TEST(store->extent(0, 0)->window_start == 4U);
  BOOST_TEST(store->memory().resident_positions == 7U);
  // Between the sinks and the window nothing is held.
  BOOST_TEST((store->window(0, 0, {1, 3}, scratch).code() == RefusalCode::evicted));
  BOOST_TEST((store->window(0, 0, {1, 2}, scratch).code() == RefusalCode::none));
}

BOOST_AUTO_TEST_CASE(a_kernel_sees_the_sinks_and_the_window_and_tells_the_gap) {
  // Ten rows in one run; value of position p: p.
  std::vector<float> k(10 * kElements);
  std::vector<float> v(10 * kElements);
  for (std::size_t p = 0; p < 10; ++p)
    std::fill_n(v.begin() + static_cast<std::ptrdiff_t>(p * kElements), kElements, p);
  const std::size_t row = kElements * sizeof(float);
  const Run whole{
      0, 10, 0, reinterpret_cast<const std::byte*>(k.data()), reinterpret_cast<const std::byte*>(v.data()), row, row};
  Visited visited;
  BOOST_TEST(mean_seen({&whole, 1}, 9, {3, true}, 2, visited) == (0 + 1 + 7 + 8 + 9) / 5.0);
  BOOST_TEST(visited.visited == 5U);
  BOOST_TEST((visited.gap == Range{2, 7}));
  Visited adjoining;
  BOOST_TEST(mean_seen({&whole, 1}, 4, {3, true}, 2, adjoining) == (0 + 1 + 2 + 3 + 4) / 5.0);
  BOOST_TEST(adjoining.gap.empty());
  Visited early;
  BOOST_TEST(mean_seen({&whole, 1}, 1, {3, true}, 4, early) == 0.5);
  BOOST_TEST(early.visited == 2U);
}

BOOST_AUTO_TEST_CASE(layers_are_as_large_as_their_windows_need) {
  // Gemma 3: five layers of 4 keys, then a full one; 64 positions, slack 3.
  StoreConfig config;
  config.layers = layers_in_pattern(small_layer(64, {}, false), 6, 4, 6);
  config.sequences = 2;
  config.slack = 3;
  for (std::size_t i = 0; i < 5; ++i) BOOST_TEST(config.layers[i].window.keys == 4U);
  BOOST_TEST(!config.layers[5].window.limited);
  const auto store = make_layered_store(config);
  const std::vector<LayerGeometry>& sized = store->layout().config->layers;
  for (std::size_t i = 0; i < 5; ++i) BOOST_TEST((sized[i].capacity == 7U && sized[i].sliding));
  BOOST_TEST((sized[5].capacity == 64U && !sized[5].sliding));
  const std::uint64_t row = 2 * kElements * sizeof(float);  // K and V
  const MemoryReport report = store->memory();
  BOOST_TEST(report.reserved_bytes == (5 * 7 + 64) * row * 2);
  BOOST_TEST(report.uniform_rows == 64U);
  BOOST_TEST(report.uniform_bytes == 6 * 64 * row * 2);
  BOOST_TEST(plan_layered(config).bytes == report.reserved_bytes);

  // gpt-oss: windowed, full, windowed, full. All windows: period 0; all full: 1.
  const auto alternating = layers_in_pattern(small_layer(64, {}, false), 4, 8, 2);
  BOOST_TEST((alternating[0].window.limited && !alternating[1].window.limited));
  BOOST_TEST((alternating[2].window.limited && !alternating[3].window.limited));
  for (const LayerGeometry& layer : layers_in_pattern(small_layer(64, {}, false), 3, 8, 0))
    BOOST_TEST(layer.window.limited);
  for (const LayerGeometry& layer : layers_in_pattern(small_layer(64, {}, false), 3, 8, 1))
    BOOST_TEST(!layer.window.limited);

  // A window that no sequence outgrows needs no ring.
  config.layers = {small_layer(6, {9, true}, false)};
  BOOST_TEST((layered_config(config).layers[0].capacity == 6U && !layered_config(config).layers[0].sliding));
}

BOOST_AUTO_TEST_CASE(a_reader_owns_no_memory_and_shows_its_donors_rows) {
  StoreConfig config;
  config.layers.assign(3, small_layer(5, {3, true}, true));
  config.layers[1].donor = 0;
  const auto store = make_layered_store(config);
  BOOST_TEST(store->memory().storages.size() == 4U);
  for (const StorageUse& use : store->memory().storages) BOOST_TEST(use.layer != 1);
  BOOST_TEST(plan_layered(config).bytes == store->memory().reserved_bytes);
  for (std::uint64_t token = 0; token < 7; ++token) {
    append_tags(*store, token, 1, 0);
    BOOST_TEST((store->append(0, 1, TaggedRows({token}).rows()).code() == RefusalCode::unsupported));
    append_tags(*store, token, 1, 2);
  }
  WindowScratch own(2, 0);
  WindowScratch through(2, 0);
  const auto donor = store->window(0, 0, {4, 7}, own);
  const auto reader = store->window(0, 1, {4, 7}, through);
  BOOST_REQUIRE((donor.ok() && reader.ok() && donor->runs.size() == reader->runs.size()));
  for (std::size_t i = 0; i < donor->runs.size(); ++i) BOOST_TEST(donor->runs[i].k == reader->runs[i].k);
  append_tags(*store, 7, 1, 0);
  append_tags(*store, 7, 1, 2);
  append_tags(*store, 8, 1, 0);
  append_tags(*store, 8, 1, 2);
  append_tags(*store, 9, 1, 0);
  BOOST_TEST((store->still_valid(*reader).code() == RefusalCode::stale));
}

BOOST_AUTO_TEST_CASE(keys_by_rank_are_handed_out_rotated_to_their_ranks) {
  LayerGeometry layer = sink_layer(2, 3, 6);
  layer.rope.emplace();
  layer.rope->theta = 100;
  layer.by_rank = true;
  const auto store = make_sink_ring_store(one(layer));
  append_tags(*store, 1, 9);
  WindowScratch scratch(3, 5 * 2 * kElements * sizeof(float));
  const auto window = store->window(0, 0, {6, 9}, scratch);
  BOOST_REQUIRE(window.ok());
  BOOST_TEST(window->copied_bytes == 5 * 2 * kElements * sizeof(float));
  const Position positions[] = {0, 1, 6, 7, 8};
  Position rank = 0;
  for (const Run& run : window->runs) {
    BOOST_TEST(run.rotated_to == rank);
    for (std::uint32_t i = 0; i < run.count; ++i, ++rank) {
      BOOST_REQUIRE_EQUAL(run.first + i, positions[rank]);
      float raw[kElements];
      fill(positions[rank] + 1, Plane::k, raw);
      const auto* turned = reinterpret_cast<const float*>(run.k_row(i));
      for (std::uint32_t j = 0; j < kElements / 2; ++j) {
        const double angle = rank * std::pow(100.0, -2.0 * j / kElements);
        const double x = raw[j];
        const double y = raw[j + kElements / 2];
        const double length = std::hypot(x, y);
        BOOST_TEST(std::abs(static_cast<double>(turned[j]) - (x * std::cos(angle) - y * std::sin(angle))) <
                   1e-6 * length);
        BOOST_TEST(std::abs(static_cast<double>(turned[j + kElements / 2]) -
                            (x * std::sin(angle) + y * std::cos(angle))) < 1e-6 * length);
      }
      BOOST_TEST(is_row(run.v_row(i), positions[rank] + 1, Plane::v));
    }
  }
  BOOST_TEST(rank == 5U);
  BOOST_TEST((store->still_valid(*window).code() == RefusalCode::none));
  append_tags(*store, 10, 2);
  BOOST_TEST((store->still_valid(*window).code() == RefusalCode::stale));
}

BOOST_AUTO_TEST_SUITE_END()
