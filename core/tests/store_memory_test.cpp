/// What stores take, and the sizes that they refuse.
#include "kvwitness/core/paged_store.hpp"
#include "kvwitness/core/quantised_store.hpp"

#include "kvwitness/trace/error.hpp"
#include "traced_bench.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace kvwitness::core;
using namespace kvwitness::core::testing;

BOOST_AUTO_TEST_SUITE(store_memory)

BOOST_AUTO_TEST_CASE(memory_is_codes_and_recent_rows) {
  StoreConfig config;
  config.layers = {{.q_heads = 2, .kv_heads = 1, .head_dim = 64, .window = {}, .capacity = 100}};
  config.sequences = 3;
  config.k_type = DType::q8_0;
  config.v_type = DType::rotated;
  config.v_rotated = {3, 32, 1, 7};
  config.recent = 10;
  config.quantise_group = 8;
  const auto store = make_quantised_store(config);
  const MemoryReport memory = store->memory();
  BOOST_REQUIRE_EQUAL(memory.storages.size(), 4U);
  BOOST_TEST(memory.storages[0].bytes == 3U * 100 * 68);
  BOOST_TEST(memory.storages[1].bytes == 3U * 17 * 64 * 4);
  BOOST_TEST(memory.storages[2].bytes == 3U * 100 * 2 * (4 + 12 + 4 + 4));
  BOOST_TEST(memory.storages[3].bytes == 3U * 17 * 64 * 4);
  BOOST_TEST(memory.reserved_bytes == 3U * (100 * 68 + 100 * 48 + 2 * 17 * 256));
}

BOOST_AUTO_TEST_CASE(pools_whose_slots_have_no_number_are_refused_by_name) {
  const auto complaint = [](std::uint32_t blocks, std::uint32_t host_blocks) -> std::string {
    StoreConfig config = config_of(1, small_layer(8, {}, false), 1);
    config.block = 4;
    config.pool_blocks = blocks;
    config.host_blocks = host_blocks;
    try {
      static_cast<void>(make_paged_store(config));
    } catch (const kvwitness::trace::Error& error) {
      return error.what();
    }
    return {};
  };
  BOOST_TEST(complaint(2, 2).empty());
  BOOST_TEST(complaint(1U << 30, 2).starts_with("pool_blocks: 1073741824 "));
  BOOST_TEST(complaint(2, 1U << 30).starts_with("host_blocks: 1073741824 "));
}

BOOST_AUTO_TEST_SUITE_END()
