#include "kvwitness/core/geometry.hpp"

#include "kvwitness/core/flat_store.hpp"
#include "kvwitness/core/ring_store.hpp"
#include "kvwitness/trace/error.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <limits>
#include <string>

using namespace kvwitness::core;
namespace trace = kvwitness::trace;

namespace {

StoreConfig valid_config() {
  StoreConfig config;
  config.layers.assign(
      2, {.q_heads = 4, .kv_heads = 2, .head_dim = 8, .window = {16, true}, .capacity = 16, .sliding = true});
  return config;
}

/// What `build` says about a valid configuration after `spoil`; empty where it accepts it.
std::string complaint(
    const std::function<void(StoreConfig&)>& spoil,
    const std::function<void(const StoreConfig&)>& build = [](const StoreConfig& c) { validate(c); }) {
  StoreConfig config = valid_config();
  spoil(config);
  try {
    build(config);
  } catch (const trace::Error& error) {
    return error.what();
  }
  return {};
}

void check_names(const std::string& field, const std::function<void(StoreConfig&)>& spoil) {
  const std::string said = complaint(spoil);
  BOOST_TEST(said.starts_with(field + ":"), "expected a refusal of " << field << ", got \"" << said << '"');
}

}  // namespace

BOOST_AUTO_TEST_SUITE(geometry)

BOOST_AUTO_TEST_CASE(each_refusal_names_its_field) {
  BOOST_TEST(complaint([](StoreConfig&) {}) == "");
  check_names("layers", [](StoreConfig& c) { c.layers.clear(); });
  check_names("layers", [](StoreConfig& c) { c.layers.resize(65535, c.layers[0]); });
  check_names("sequences", [](StoreConfig& c) { c.sequences = 0; });
  check_names("sequences", [](StoreConfig& c) { c.sequences = trace::kNoSequence; });
  check_names("score_scale", [](StoreConfig& c) { c.score_scale = -1; });
  check_names("softcap", [](StoreConfig& c) { c.softcap = std::numeric_limits<float>::quiet_NaN(); });
  check_names("layers[1].q_heads", [](StoreConfig& c) { c.layers[1].q_heads = 0; });
  check_names("layers[1].kv_heads", [](StoreConfig& c) { c.layers[1].kv_heads = 0; });
  check_names("layers[1].kv_heads", [](StoreConfig& c) { c.layers[1].kv_heads = 3; });
  check_names("layers[0].head_dim", [](StoreConfig& c) { c.layers[0].head_dim = 0; });
  check_names("layers[0].capacity", [](StoreConfig& c) { c.layers[0].capacity = 0; });
  check_names("layers[0].capacity", [](StoreConfig& c) { c.layers[0].capacity = 15; });
  check_names("layers[1].capacity", [](StoreConfig& c) { c.layers[1].capacity = trace::kNoSlot; });
  check_names("layers[0].window", [](StoreConfig& c) { c.layers[0].window = {0, true}; });
  check_names("layers[0].window", [](StoreConfig& c) { c.layers[0].window = {4, false}; });
  check_names("k_type", [](StoreConfig& c) { c.k_type = DType::q8_0; });  // 16 elements are no block of 32
  check_names("v_type", [](StoreConfig& c) { c.v_type = DType::none; });
}

BOOST_AUTO_TEST_CASE(the_message_says_what_would_do) {
  BOOST_TEST(complaint([](StoreConfig& c) { c.layers[1].kv_heads = 3; }) ==
             "layers[1].kv_heads: 3 does not divide q_heads 4");
}

BOOST_AUTO_TEST_CASE(a_window_longer_than_a_layer_that_does_not_slide_is_served) {
  BOOST_TEST(complaint([](StoreConfig& c) {
               for (LayerGeometry& layer : c.layers) layer.sliding = false, layer.capacity = 4;
             }) == "");
}

BOOST_AUTO_TEST_CASE(products_are_limited_to_63_bits) {
  check_names("layers[0].head_dim", [](StoreConfig& c) {
    c.layers[0] = {.q_heads = 1U << 31, .kv_heads = 1U << 31, .head_dim = 1U << 31, .window = {}, .capacity = 1};
  });
  check_names("layers[0].capacity", [](StoreConfig& c) {
    c.layers[0] = {.q_heads = 1U << 15, .kv_heads = 1U << 15, .head_dim = 1U << 15, .window = {}, .capacity = 1U << 31};
  });
  // Each layer fits, both together do not.
  check_names("layers[1].capacity", [](StoreConfig& c) {
    for (LayerGeometry& layer : c.layers)
      layer = {.q_heads = 1U << 14, .kv_heads = 1U << 14, .head_dim = 1U << 14, .window = {}, .capacity = 5U << 29};
  });
}

BOOST_AUTO_TEST_CASE(offsets_beyond_32_bits_are_exact) {
  // Virtual: a store of more than 2^49 bytes and 2^32 rows is described, never allocated.
  StoreConfig config;
  config.layers.push_back({.q_heads = 64, .kv_heads = 64, .head_dim = 256, .window = {}, .capacity = 1U << 20});
  config.sequences = 8192;
  config.v_type = DType::f16;
  BOOST_CHECK_NO_THROW(validate(config));
  const std::uint64_t k_row = 64U * 256U * 4U;
  const std::uint64_t v_row = 64U * 256U * 2U;
  for (const SequenceId sequence : {0U, 1U, 4096U, 8191U}) {
    for (const Slot slot : {0U, 1U, (1U << 16) - 1, 1U << 16, (1U << 20) - 1}) {
      const std::uint64_t row = std::uint64_t{sequence} * (1U << 20) + slot;
      BOOST_TEST((row_offset(config, 0, Plane::k, sequence, slot) == row * k_row));
      BOOST_TEST((row_offset(config, 0, Plane::v, sequence, slot) == row * v_row));
    }
  }
  BOOST_TEST(plane_bytes(config, 0, Plane::k) == (std::uint64_t{1} << 49));
  BOOST_TEST(plane_bytes(config, 0, Plane::v) == (std::uint64_t{1} << 48));
}

BOOST_AUTO_TEST_CASE(the_score_scale_is_rounded_once) {
  StoreConfig config = valid_config();
  BOOST_TEST(score_scale(config, 0) == 0x1.6a09e6p-2F);  // 8^-1/2 to the nearest f32
  config.score_scale = 0.25F;
  BOOST_TEST(score_scale(config, 0) == 0.25F);
}

BOOST_AUTO_TEST_CASE(a_sliding_layer_without_a_window_sees_its_capacity) {
  LayerGeometry layer = valid_config().layers[0];
  BOOST_TEST((effective_window(layer) == WindowSize{16, true}));
  layer.window = {};
  BOOST_TEST((effective_window(layer) == WindowSize{16, true}));
  layer.sliding = false;
  BOOST_TEST((effective_window(layer) == WindowSize{}));
}

BOOST_AUTO_TEST_CASE(stores_refuse_what_they_cannot_keep) {
  const auto ring = [](const StoreConfig& c) { (void)make_ring_store(c); };
  const auto flat = [](const StoreConfig& c) { (void)make_flat_store(c); };
  BOOST_TEST(complaint([](StoreConfig&) {}, ring) == "");
  BOOST_TEST(complaint([](StoreConfig& c) { c.k_type = DType::f16; }, ring).starts_with("k_type:"));
  BOOST_TEST(complaint([](StoreConfig& c) { c.v_type = DType::bf16; }, ring).starts_with("v_type:"));
  BOOST_TEST(complaint([](StoreConfig& c) { c.sequences = 0; }, ring).starts_with("sequences:"));
  BOOST_TEST(complaint([](StoreConfig& c) { c.layers[0].sliding = false; }, flat).starts_with("layers[1].sliding:"));
  BOOST_TEST(complaint([](StoreConfig& c) { c.layers.clear(); }, flat).starts_with("layers:"));
}

BOOST_AUTO_TEST_CASE(the_longest_append_is_the_law_s) {
  const LayerGeometry flat{.window = {}, .capacity = 8};
  const LayerGeometry ring{.window = {5, true}, .capacity = 8, .sliding = true};
  const LayerGeometry tight{.window = {}, .capacity = 8, .sliding = true};
  BOOST_TEST(longest_append(flat, {0, 0}) == 8U);
  BOOST_TEST(longest_append(flat, {2, 8}) == 2U);
  BOOST_TEST(longest_append(flat, {0, 8}) == 0U);
  BOOST_TEST(longest_append(ring, {12, 20}) == 4U);  // C >= W + n - 1
  BOOST_TEST(longest_append(ring, {19, 20}) == 7U);  // nothing older is held any more
  BOOST_TEST(longest_append(tight, {12, 20}) == 1U);
  BOOST_TEST(chunk_capacity(ring, 4) == 8U);
  BOOST_TEST(chunk_capacity(tight, 3) == 10U);
  // The last position is kNoPosition - 1.
  BOOST_TEST(longest_append(ring, {trace::kNoPosition - 11, trace::kNoPosition - 3}) == 3U);
  BOOST_TEST(longest_append(ring, {trace::kNoPosition - 8, trace::kNoPosition}) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
