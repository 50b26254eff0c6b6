// Predictions against figures that others have published.
#include "kvwitness/core/plan.hpp"

#include "kvwitness/trace/error.hpp"

#include <boost/test/unit_test.hpp>

#include <utility>
#include <vector>

using namespace kvwitness::core;
using kvwitness::trace::Error;

namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

StoreConfig model(std::uint32_t layers, std::uint32_t kv_heads, std::uint32_t head_dim, std::uint32_t context,
                  DType type) {
  StoreConfig config;
  LayerGeometry layer;
  layer.q_heads = kv_heads;
  layer.kv_heads = kv_heads;
  layer.head_dim = head_dim;
  layer.capacity = context;
  config.layers.assign(layers, layer);
  config.k_type = config.v_type = type;
  return config;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plan)

BOOST_AUTO_TEST_CASE(published_figures_are_met) {
  // Llama-2-7B, 4,096 tokens in f16: 2 GiB, as llama.cpp prints "KV self size = 2048.00 MiB".
  BOOST_TEST(plan_slots(model(32, 32, 128, 4096, DType::f16)).bytes == 2048 * kMiB);
  // Llama-3-8B, 8,192 tokens in f16: "KV self size = 1024.00 MiB, K (f16): 512.00 MiB, V (f16): 512.00 MiB".
  const StorePlan llama3 = plan_slots(model(32, 8, 128, 8192, DType::f16));
  BOOST_TEST(llama3.bytes == 1024 * kMiB);
  std::uint64_t keys = 0;
  for (const PlannedPlane& plane : llama3.planes) keys += plane.plane == Plane::k ? plane.bytes : 0;
  BOOST_TEST(keys == 512 * kMiB);
  // In q8_0, 34 bytes for 32 values: 544.00 MiB.
  BOOST_TEST(plan_slots(model(32, 8, 128, 8192, DType::q8_0)).bytes == 544 * kMiB);
  // In q4_0, 18 bytes for 32 values: 288.00 MiB.
  BOOST_TEST(plan_slots(model(32, 8, 128, 8192, DType::q4_0)).bytes == 288 * kMiB);
  // OPT-13B: 800 KB a token (arXiv:2309.06180, section 3): 2 * 5120 * 40 * 2 bytes.
  BOOST_TEST(plan_slots(model(40, 40, 128, 1, DType::f16)).bytes == 800 * kKiB);
}

BOOST_AUTO_TEST_CASE(each_plane_has_a_line_of_its_own) {
  StoreConfig config = model(2, 2, 64, 10, DType::q8_0);
  config.layers[1].capacity = 3;
  config.sequences = 5;
  config.v_type = DType::f16;
  const StorePlan plan = plan_slots(config);
  // 2 heads of 64 are 4 blocks of 34 bytes, 2 of which are the scale; or 256 bytes in f16.
  const std::vector<PlannedPlane> expected{{0, Plane::k, 50, 50 * 136, 50 * 8},
                                           {0, Plane::v, 50, 50 * 256, 0},
                                           {1, Plane::k, 15, 15 * 136, 15 * 8},
                                           {1, Plane::v, 15, 15 * 256, 0}};
  BOOST_TEST((plan.planes == expected));
  BOOST_TEST(plan.bytes == 65U * (136 + 256));
  // The windows of one sequence at a time.
  BOOST_TEST(plan.scratch_bytes == 13U * (136 + 256));
}

BOOST_AUTO_TEST_CASE(keys_before_rotation_count_where_a_layer_rotates) {
  StoreConfig config = model(2, 1, 4, 8, DType::f32);
  config.layers[1].rope = RopeConfig{};
  BOOST_TEST(plan_slots(config).bytes == 4U * 8 * 16);
  const StorePlan compact = plan_compact(config);
  BOOST_TEST(compact.bytes == 5U * 8 * 16);
  BOOST_TEST((compact.planes.back() == PlannedPlane{1, Plane::k_raw, 8, 128, 0}));
  BOOST_TEST(compact.scratch_bytes == 4U * 8 * 16);
}

// vLLM's figure for OPT-13B (arXiv:2309.06180, section 3): a block of 16 tokens takes 16 times the 800 KB of a token in
// f16, twice that in f32.
BOOST_AUTO_TEST_CASE(a_pool_takes_what_its_blocks_do_whoever_has_them) {
  StoreConfig config = model(40, 40, 128, 2048, DType::f32);
  config.block = 16;
  config.pool_blocks = 10;
  config.sequences = 7;
  BOOST_TEST(plan_paged(config).bytes == 10U * 16 * 1600 * kKiB);
  BOOST_TEST(plan_paged(config).scratch_bytes == 2048U * 1600 * kKiB);
  config.host_blocks = 3;
  const StorePlan plan = plan_paged(config);
  BOOST_TEST(plan.bytes == 13U * 16 * 1600 * kKiB);
  BOOST_TEST(plan.planes.size() == 120U);
  // A row is 5120 f32; the host's line has K and V.
  BOOST_TEST((plan.planes[1] == PlannedPlane{0, Plane::v, 160, 160U * 20480, 0}));
  BOOST_TEST((plan.planes[2] == PlannedPlane{0, Plane::both, 48, 48U * 40960, 0}));
  config.v_type = DType::f16;
  BOOST_CHECK_THROW(static_cast<void>(plan_paged(config)), Error);
}

// Blocks of 4. A layer of 8 rows that does not slide lies across 3 of them, from the last row of one to the third of
// another. One that slides, with a window of 3, takes an append of 6 before it gives rows up: 14 rows, across 5 blocks.
BOOST_AUTO_TEST_CASE(a_pool_that_is_left_open_is_enough_for_all_sequences) {
  StoreConfig config = model(1, 1, 1, 8, DType::f32);
  config.sequences = 2;
  BOOST_TEST(plan_paged(config).planes.front().slots == 2U * 3 * 4);
  config.layers[0].window = {3, true};
  config.layers[0].sliding = true;
  BOOST_TEST(plan_paged(config).planes.front().slots == 2U * 5 * 4);
  config.block = 1;
  BOOST_TEST(plan_paged(config).planes.front().slots == 2U * 14);
  // A second layer of 20 rows holds those that the first one gave up, while an append of 6 is in the first alone.
  config.layers.push_back(model(1, 1, 1, 20, DType::f32).layers[0]);
  BOOST_TEST(plan_paged(config).planes.front().slots == 2U * 26);
  // The other way round it takes no more than its 20, and the second layer takes its 6 when the first has them.
  std::swap(config.layers[0], config.layers[1]);
  BOOST_TEST(plan_paged(config).planes.front().slots == 2U * 20);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_planned_is_refused) {
  BOOST_CHECK_THROW(static_cast<void>(plan_slots(model(1, 1, 33, 8, DType::q8_0))), Error);
  BOOST_CHECK_THROW(static_cast<void>(plan_slots(model(0, 1, 4, 8, DType::f32))), Error);
  // K and V together fit into 63 bits, the keys before rotation do not.
  StoreConfig config = model(1, 1U << 15, 1U << 14, (1U << 31) - 1, DType::f32);
  config.layers[0].rope = RopeConfig{};
  BOOST_TEST(plan_slots(config).bytes == (1ULL << 63) - (1ULL << 32));
  BOOST_CHECK_THROW(static_cast<void>(plan_compact(config)), Error);
}

BOOST_AUTO_TEST_SUITE_END()
