/// Ring and flat against the list model, in worlds small enough to try all of them.
#include "store_check.hpp"

#include <algorithm>

using namespace kvwitness::core;
using namespace kvwitness::core::testing;
namespace trace = kvwitness::trace;

namespace {

/// A store and the model that it is held against; appends the same rows to both.
struct World {
  World(const std::string& kind, const StoreConfig& config) : store(make(kind, config)), model(config) {}

  RefusalCode append(SequenceId sequence, LayerIndex layer, std::uint32_t count) {
    std::vector<std::uint64_t> tags(count);
    for (std::uint64_t& tag : tags) tag = next_tag++;
    const TaggedRows rows(tags);
    const RefusalCode expected = model.append(sequence, layer, tags);
    const auto appended = store->append(sequence, layer, rows.rows());
    BOOST_TEST((appended.code() == expected));
    if (appended.ok() && expected == RefusalCode::none) check_report(*appended, sequence, layer, count);
    return expected;
  }

  /// Every layer of a token.
  void append_token(SequenceId sequence, std::uint32_t count) {
    for (LayerIndex layer = 0; layer < store->layout().config->layers.size(); ++layer) append(sequence, layer, count);
  }

  void check_report(const Appended& appended, SequenceId sequence, LayerIndex layer, std::uint32_t count) {
    Position next = static_cast<Position>(model.layer(sequence, layer).end()) - count;
    for (const Piece& piece : appended.pieces) {
      BOOST_TEST(piece.first == next);
      next += piece.count;
    }
    BOOST_TEST(next == model.layer(sequence, layer).end());
    BOOST_TEST(appended.declared.allocations == 0U);
  }

  std::unique_ptr<KvStore> store;
  ListModel model;
  std::uint64_t next_tag = 1;
};

StoreConfig one_layer(const LayerGeometry& layer) {
  StoreConfig config;
  config.layers = {layer};
  return config;
}

/// All windows of the layer, legal or not, up to one past its ends.
void check_all_windows(World& world, LayerIndex layer) {
  const ListLayer& rows = world.model.layer(0, layer);
  const auto last = static_cast<Position>(rows.end() + 1);
  WindowScratch scratch(2, 0);
  for (Position from = rows.start > 0 ? static_cast<Position>(rows.start - 1) : 0; from <= last; ++from) {
    for (Position to = from > 0 ? from - 1 : 0; to <= last; ++to) {
      const auto window = world.store->window(0, layer, {from, to}, scratch);
      BOOST_REQUIRE((window.code() == world.model.see(0, layer, from, to)));
      if (!window) continue;
      BOOST_REQUIRE(shows(*window, rows));
      BOOST_REQUIRE(window->runs.size() <= 2U);
    }
  }
}

void run_world(const std::string& kind, const LayerGeometry& layer, std::uint32_t chunk) {
  World world(kind, one_layer(layer));
  BOOST_TEST_CONTEXT(kind << " C=" << layer.capacity << " W=" << layer.window.keys << " sliding=" << layer.sliding
                          << " n=" << chunk) {
    for (std::uint32_t tokens = 0; tokens < 3 * layer.capacity + 2; tokens += chunk) {
      world.append(0, 0, chunk);
      BOOST_REQUIRE(holds_as_modelled(*world.store, world.model));
      check_all_windows(world, 0);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(store_law)

BOOST_AUTO_TEST_CASE(every_small_ring_and_flat_at_every_wrap_offset) {
  for (std::uint32_t capacity = 1; capacity <= 6; ++capacity) {
    for (std::uint32_t keys = 0; keys <= capacity; ++keys) {
      const WindowSize window{keys, keys != 0};
      for (std::uint32_t chunk = 1; chunk <= capacity + 1; ++chunk) {
        run_world("ring", small_layer(capacity, window, true), chunk);
        run_world("ring", small_layer(capacity, window, false), chunk);
        run_world("flat", small_layer(capacity, window, false), chunk);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_truncation_of_every_small_store) {
  for (const bool sliding : {true, false}) {
    for (std::uint32_t capacity = 1; capacity <= 5; ++capacity) {
      for (std::uint32_t keys = 0; keys <= capacity; ++keys) {
        for (std::uint32_t tokens = 0; tokens <= (sliding ? 2 * capacity + 1 : capacity); ++tokens) {
          for (std::uint32_t to = 0; to <= tokens + 1; ++to) {
            World world("ring", one_layer(small_layer(capacity, {keys, keys != 0}, sliding)));
            for (std::uint32_t i = 0; i < tokens; ++i) world.append(0, 0, 1);
            const RefusalCode expected = world.model.truncate(0, to);
            BOOST_REQUIRE((world.store->truncate(0, to).code() == expected));
            BOOST_REQUIRE(holds_as_modelled(*world.store, world.model));
            world.append(0, 0, 1);  // what was taken back is written anew
            BOOST_REQUIRE(holds_as_modelled(*world.store, world.model));
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_eviction_of_every_small_store) {
  for (const std::string kind : {"ring", "flat"}) {
    const bool sliding = kind == "ring";
    for (std::uint32_t capacity = 1; capacity <= 5; ++capacity) {
      for (std::uint32_t tokens = 0; tokens <= (sliding ? 2 * capacity + 1 : capacity); ++tokens) {
        for (std::uint32_t from = 0; from <= tokens + 1; ++from) {
          for (std::uint32_t to = 0; to <= tokens + 1; ++to) {
            World world(kind, one_layer(small_layer(capacity, {}, sliding)));
            for (std::uint32_t i = 0; i < tokens; ++i) world.append(0, 0, 1);
            BOOST_REQUIRE((world.store->evict(0, {from, to}).code() == world.model.evict(0, from, to)));
            BOOST_REQUIRE(holds_as_modelled(*world.store, world.model));
            world.append(0, 0, 1);
            BOOST_REQUIRE(holds_as_modelled(*world.store, world.model));
            // An eviction is remembered: positions that were evicted on request cannot be taken back to.
            const std::uint32_t back = to > 0 ? to - 1 : 0;
            BOOST_REQUIRE((world.store->truncate(0, back).code() == world.model.truncate(0, back)));
            BOOST_REQUIRE(holds_as_modelled(*world.store, world.model));
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(overwritten_positions_are_reported_with_their_slots) {
  World world("ring", one_layer(small_layer(5, {3, true}, true)));
  for (int i = 0; i < 8; ++i) world.append(0, 0, 1);  // holds 3..7
  std::vector<std::uint64_t> tags{100, 101, 102};
  const TaggedRows rows(tags);
  const auto appended = world.store->append(0, 0, rows.rows());  // 8, 9, 10 in slots 3, 4, 0
  BOOST_REQUIRE(appended.ok());
  BOOST_REQUIRE_EQUAL(appended->pieces.size(), 2U);
  BOOST_TEST(appended->pieces[0].first == 8U);
  BOOST_TEST(appended->pieces[0].count == 2U);
  BOOST_TEST(appended->pieces[0].slot == 3U);
  BOOST_TEST(appended->pieces[1].first == 10U);
  BOOST_TEST(appended->pieces[1].slot == 0U);
  BOOST_REQUIRE_EQUAL(appended->overwritten.size(), 2U);
  BOOST_TEST(appended->overwritten[0].first == 3U);
  BOOST_TEST(appended->overwritten[0].count == 2U);
  BOOST_TEST(appended->overwritten[0].slot == 3U);
  BOOST_TEST(appended->overwritten[1].first == 5U);
  BOOST_TEST(appended->overwritten[1].count == 1U);
  BOOST_TEST(appended->overwritten[1].slot == 0U);
}

BOOST_AUTO_TEST_CASE(a_flat_store_reports_what_an_eviction_moved) {
  World world("flat", one_layer(small_layer(8, {}, false)));
  for (int i = 0; i < 6; ++i) world.append(0, 0, 1);
  const auto evicted = world.store->evict(0, {0, 2});
  BOOST_REQUIRE(evicted.ok());
  BOOST_TEST(evicted->freed == 2U);
  BOOST_REQUIRE_EQUAL(evicted->moved.size(), 1U);
  const Moved moved = evicted->moved[0];
  BOOST_TEST(moved.from_position == 2U);
  BOOST_TEST(moved.to_position == 2U);
  BOOST_TEST(moved.from_slot == 2U);
  BOOST_TEST(moved.to_slot == 0U);
  BOOST_TEST(moved.count == 4U);
  BOOST_TEST(moved.bytes == 4U * 2 * kElements * sizeof(float));
  BOOST_TEST(world.store->evict(0, {0, 6})->moved.empty());  // nothing survives, nothing moves
}

BOOST_AUTO_TEST_CASE(a_row_is_readable_at_once_in_every_layer_also_after_the_wrap) {
  StoreConfig config;
  config.layers = {small_layer(4, {4, true}, true), small_layer(6, {3, true}, true), small_layer(4, {}, true)};
  World world("ring", config);
  for (Position token = 0; token < 15; ++token) {
    for (LayerIndex layer = 0; layer < 3; ++layer) {
      world.append(0, layer, 1);
      WindowScratch scratch(2, 0);
      const Position low = token >= 3 ? token - 2 : 0;
      const auto window = world.store->window(0, layer, {low, token + 1}, scratch);
      BOOST_REQUIRE(window.ok());
      BOOST_REQUIRE(shows(*window, world.model.layer(0, layer)));
      // The layers that are still to come do not hold the token yet.
      for (LayerIndex later = layer + 1; later < 3; ++later)
        BOOST_REQUIRE((world.store->window(0, later, {token, token + 1}, scratch).code() == RefusalCode::future));
    }
  }
}

BOOST_AUTO_TEST_CASE(layers_out_of_order_twice_or_skipped_and_edits_inside_a_token_change_nothing) {
  for (const std::string kind : {"ring", "flat"}) {
    StoreConfig config;
    config.layers.assign(3, small_layer(6, {2, true}, kind == "ring"));
    config.sequences = 2;
    World world(kind, config);
    world.append_token(0, 2);
    for (LayerIndex due = 0; due < 3; ++due) {
      for (LayerIndex layer = 0; layer < 4; ++layer) {
        if (layer == due) continue;
        BOOST_TEST((world.append(0, layer, 1) == RefusalCode::out_of_order));
        BOOST_REQUIRE(holds_as_modelled(*world.store, world.model));
      }
      if (due > 0) {
        BOOST_TEST((world.append(0, due, 2) == RefusalCode::out_of_order));  // another count than layer 0 got
        BOOST_TEST((world.store->truncate(0, 1).code() == RefusalCode::out_of_order));
        BOOST_TEST((world.store->evict(0, {0, 1}).code() == RefusalCode::out_of_order));
        BOOST_REQUIRE(holds_as_modelled(*world.store, world.model));
      }
      BOOST_TEST((world.append(1, due, 1) == RefusalCode::none));  // other sequences go their own way
      BOOST_TEST((world.append(0, due, 1) == RefusalCode::none));
    }
    BOOST_TEST((world.append(2, 0, 1) == RefusalCode::unknown_sequence));
    BOOST_TEST((world.append(0, 0, 0) == RefusalCode::unsupported));
    BOOST_REQUIRE(holds_as_modelled(*world.store, world.model));
  }
}

BOOST_AUTO_TEST_CASE(clear_in_the_middle_of_a_token_leaves_a_fresh_sequence) {
  StoreConfig config;
  config.layers.assign(2, small_layer(3, {}, true));
  config.sequences = 2;
  World world("ring", config);
  for (int i = 0; i < 5; ++i) world.append_token(0, 1);
  BOOST_TEST((world.store->evict(0, {0, 4}).code() == world.model.evict(0, 0, 4)));
  world.append(0, 0, 1);
  const auto cleared = world.store->clear(0);
  BOOST_TEST((cleared.code() == world.model.clear(0)));
  BOOST_TEST(cleared->freed == 2U);  // layer 0 held 4 and 5, layer 1 only 4
  BOOST_REQUIRE(holds_as_modelled(*world.store, world.model));
  for (int i = 0; i < 4; ++i) world.append_token(0, 1);
  BOOST_TEST((world.store->truncate(0, 3).code() == world.model.truncate(0, 3)));  // no eviction is remembered
  BOOST_REQUIRE(holds_as_modelled(*world.store, world.model));
  BOOST_TEST((world.store->clear(2).code() == RefusalCode::unknown_sequence));
}

BOOST_AUTO_TEST_CASE(a_refusal_says_what_is_held) {
  World world("ring", one_layer(small_layer(4, {}, true)));
  for (int i = 0; i < 6; ++i) world.append(0, 0, 1);
  WindowScratch scratch(2, 0);
  const trace::Refused refusal = world.store->window(0, 0, {1, 5}, scratch).refusal();
  BOOST_TEST((refusal.operation == trace::Operation::window));
  BOOST_TEST((refusal.reason == RefusalCode::evicted));
  BOOST_TEST(refusal.asked_from == 1U);
  BOOST_TEST(refusal.asked_to == 5U);
  BOOST_TEST(refusal.held_from == 2U);
  BOOST_TEST(refusal.held_to == 6U);
}

BOOST_AUTO_TEST_CASE(room_too_small_is_refused_before_anything_is_written) {
  World world("ring", one_layer(small_layer(4, {}, true)));
  for (int i = 0; i < 6; ++i) world.append(0, 0, 1);
  std::vector<std::byte> k(4 * kElements * sizeof(float), std::byte{0x5a});
  std::vector<std::byte> v(k.size() - 1, std::byte{0x5a});
  BOOST_TEST((world.store->read(0, 0, {2, 6}, {k, v}).code() == RefusalCode::no_memory));
  BOOST_TEST(std::all_of(k.begin(), k.end(), [](std::byte b) { return b == std::byte{0x5a}; }));
  WindowScratch one(1, 0);
  BOOST_TEST((world.store->window(0, 0, {2, 6}, one).code() == RefusalCode::no_memory));  // crosses the end: two runs
  BOOST_TEST(world.store->window(0, 0, {4, 6}, one).ok());
}

BOOST_AUTO_TEST_SUITE_END()
