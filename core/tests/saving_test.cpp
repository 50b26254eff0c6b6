/// Save and restore: the list model, copied when a file was saved, is what the store must be when it is restored.
#include "kvwitness/core/state_file.hpp"

#include "kvwitness/core/decoder/rope.hpp"
#include "kvwitness/trace/digest.hpp"
#include "traced_bench.hpp"

#include <cstring>
#include <random>

using namespace kvwitness::core;
using namespace kvwitness::core::testing;
namespace trace = kvwitness::trace;

namespace {

using File = std::vector<std::byte>;

/// Two layers with different windows, so that their extents differ once they have wrapped.
StoreConfig shape_of(const std::string& kind) {
  StoreConfig config;
  const bool slides = kind == "ring" || kind == "sink-ring" || kind == "paged";
  const std::uint32_t sinks = kind == "sink-ring" || kind == "paged" ? 2 : 0;
  config.layers = {small_layer(8 + sinks, {3, true}, slides), small_layer((slides ? 5 : 8) + sinks, {4, true}, slides)};
  for (LayerGeometry& layer : config.layers) layer.sinks = sinks;
  config.sequences = 2;
  return config;
}

struct Pair {
  explicit Pair(const std::string& kind) : Pair(kind, shape_of(kind)) {}
  Pair(const std::string& kind, const StoreConfig& config)
      : store(make(kind, config)), model(config, kind == "compact") {}

  void append(SequenceId sequence, std::uint32_t count = 1) {
    std::vector<std::uint64_t> tags(count);
    for (std::uint64_t& tag : tags) tag = next_tag++;
    for (LayerIndex layer = 0; layer < store->layout().config->layers.size(); ++layer) {
      const auto expected = model.append(sequence, layer, tags);
      BOOST_TEST_REQUIRE((store->append(sequence, layer, TaggedRows(tags).rows()).code() == expected));
      if (expected != RefusalCode::none) return;
    }
  }
  void evict(SequenceId sequence, Position to) {
    BOOST_TEST_REQUIRE((store->evict(sequence, {0, to}).code() == model.evict(sequence, 0, to)));
  }
  void truncate(SequenceId sequence, Position to) {
    BOOST_TEST_REQUIRE((store->truncate(sequence, to).code() == model.truncate(sequence, to)));
  }
  [[nodiscard]] File save(SequenceId sequence) const {
    const auto bytes = store->saving()->saved_bytes(sequence);
    File file(bytes.value());
    BOOST_TEST_REQUIRE((store->saving()->save(sequence, file).value().bytes == file.size()));
    return file;
  }
  [[nodiscard]] RefusalCode restore(SequenceId sequence, std::span<const std::byte> file) {
    return store->saving()->restore(sequence, file).code();
  }

  std::unique_ptr<KvStore> store;
  ListModel model;
  std::uint64_t next_tag = 1;
};

/// Gives a changed file the digest of a whole one, so that only the change can be wrong about it.
File resealed(File file) {
  const std::uint64_t digest = trace::digest_bytes(std::span(file).first(file.size() - 8));
  std::memcpy(file.data() + file.size() - 8, &digest, 8);
  return file;
}

template <class T>
File changed(File file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
  return resealed(std::move(file));
}

const std::vector<std::string> kKinds{"ring", "flat", "compact", "sink-ring", "paged"};

}  // namespace

BOOST_AUTO_TEST_SUITE(saving)

BOOST_AUTO_TEST_CASE(a_restored_sequence_is_what_it_was_and_goes_on_as_if_never_saved) {
  for (const std::string& kind : kKinds) {
    BOOST_TEST_CONTEXT(kind) {
      Pair pair(kind);
      pair.append(0, 3);
      for (int i = 0; i < 3; ++i) pair.append(0);
      pair.evict(0, 2);
      pair.append(0);
      pair.append(1, 2);
      const File file = pair.save(0);
      const ListModel then = pair.model;
      pair.append(0);
      pair.truncate(0, pair.store->extent(0, 0)->end - 1);
      BOOST_TEST((pair.store->clear(0).code() == pair.model.clear(0)));
      pair.append(0, 2);
      BOOST_TEST((pair.restore(0, file) == RefusalCode::none));
      pair.model = then;
      BOOST_TEST(holds_as_modelled(*pair.store, pair.model));
      BOOST_TEST((pair.save(0) == file));
      // What was evicted on request stays evicted, and legality follows.
      pair.truncate(0, 1);
      for (int i = 0; i < 12; ++i) {
        pair.append(0);
        BOOST_TEST(holds_as_modelled(*pair.store, pair.model));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(random_histories_are_restored) {
  std::mt19937 dice(0x5eed);
  for (const std::string& kind : kKinds) {
    Pair pair(kind);
    File file;
    ListModel then = pair.model;
    for (int step = 0; step < 3000; ++step) {
      const Position end = pair.store->extent(0, 0)->end;
      switch (dice() % 8) {
        case 0: pair.evict(0, end == 0 ? 0 : static_cast<Position>(dice() % end)); break;
        case 1: pair.truncate(0, static_cast<Position>(dice() % (end + 2))); break;
        case 2:
          if (dice() % 4 != 0) break;
          static_cast<void>(pair.store->clear(0));
          static_cast<void>(pair.model.clear(0));
          break;
        case 3:
          file = pair.save(0);
          then = pair.model;
          break;
        case 4:
          if (file.empty()) break;
          BOOST_TEST_REQUIRE((pair.restore(0, file) == RefusalCode::none));
          pair.model = then;
          break;
        default: pair.append(0, static_cast<std::uint32_t>(1 + dice() % 2));
      }
      BOOST_TEST_REQUIRE(holds_as_modelled(*pair.store, pair.model), kind << " step " << step);
    }
  }
}

BOOST_AUTO_TEST_CASE(damage_anywhere_is_refused_and_changes_nothing) {
  for (const std::string& kind : kKinds) {
    BOOST_TEST_CONTEXT(kind) {
      Pair pair(kind);
      pair.append(0, 3);
      const File file = pair.save(0);
      pair.append(0, 2);
      for (std::size_t length = 0; length < file.size(); ++length)
        BOOST_TEST_REQUIRE((pair.restore(0, std::span(file).first(length)) == RefusalCode::corrupt));
      for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
        File flipped = file;
        flipped[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        const RefusalCode code = pair.restore(0, flipped);
        // Bytes 8 to 11 are the version: another one is not known, rather than damaged.
        BOOST_TEST_REQUIRE((code == (bit / 32 == 2 ? RefusalCode::unsupported : RefusalCode::corrupt)));
      }
      File longer = file;
      longer.push_back(std::byte{0});
      BOOST_TEST((pair.restore(0, longer) == RefusalCode::corrupt));
      BOOST_TEST(holds_as_modelled(*pair.store, pair.model));
      BOOST_TEST((pair.restore(0, file) == RefusalCode::none));
    }
  }
}

BOOST_AUTO_TEST_CASE(whole_files_that_cannot_be_true_are_refused) {
  Pair pair("ring");
  pair.append(0, 3);
  const File file = pair.save(0);
  // Offsets of the format: 12 layers, 32 evicted_to, 36 raw keys, 40 and 48 the layers' positions.
  BOOST_TEST((pair.restore(0, changed(file, 12, 3U)) == RefusalCode::unsupported));
  BOOST_TEST((pair.restore(0, changed(file, 32, 4U)) == RefusalCode::corrupt));
  BOOST_TEST((pair.restore(0, changed(file, 36, 2U)) == RefusalCode::corrupt));
  BOOST_TEST((pair.restore(0, changed(file, 36, 1U)) == RefusalCode::unsupported));
  BOOST_TEST((pair.restore(0, changed(file, 40, 4U)) == RefusalCode::corrupt));
  BOOST_TEST((pair.restore(0, changed(file, 40, 1U)) == RefusalCode::corrupt));
  BOOST_TEST((pair.restore(0, changed(file, 44, 2U)) == RefusalCode::corrupt));
  BOOST_TEST((pair.restore(0, changed(file, 44, 0xffffffffU)) == RefusalCode::corrupt));
  // With W = 3, a query at 9 still sees position 7: a layer that begins at 8 has lost it, unless it was evicted. What
  // was evicted is held no longer.
  for (int i = 0; i < 6; ++i) pair.append(0);
  const File wrapped = pair.save(0);
  BOOST_TEST((pair.restore(0, changed(wrapped, 40, 8U)) == RefusalCode::corrupt));
  BOOST_TEST((pair.restore(0, changed(wrapped, 32, 8U)) == RefusalCode::corrupt));
  BOOST_TEST(holds_as_modelled(*pair.store, pair.model));
}

BOOST_AUTO_TEST_CASE(a_file_is_bound_to_its_geometry) {
  Pair pair("ring");
  pair.append(0, 3);
  const File file = pair.save(0);
  const auto refused = [&](auto change) {
    StoreConfig config = shape_of("ring");
    change(config);
    return Pair("ring", config).restore(0, file) == RefusalCode::unsupported;
  };
  BOOST_TEST(refused([](StoreConfig& config) { config.layers[1].window.keys = 3; }));
  BOOST_TEST(refused([](StoreConfig& config) { config.layers[1].head_dim = 8; }));
  BOOST_TEST(refused([](StoreConfig& config) { config.layers[1].rope = RopeConfig{}; }));
  BOOST_TEST(refused([](StoreConfig& config) { config.layers.pop_back(); }));
  BOOST_TEST(refused([](StoreConfig& config) {
    for (LayerGeometry& layer : config.layers) layer.q_heads = layer.kv_heads = 2, layer.head_dim = 2;
  }));
  // Slots are no part of it: a wider ring takes the file.
  StoreConfig wider = shape_of("ring");
  wider.layers[0].capacity = 20;
  BOOST_TEST((Pair("ring", wider).restore(1, file) == RefusalCode::none));
}

BOOST_AUTO_TEST_CASE(files_go_where_their_positions_fit) {
  Pair ring("ring");
  for (int i = 0; i < 9; ++i) ring.append(0);
  const File wrapped = ring.save(0);
  Pair flat("flat");
  BOOST_TEST((flat.restore(0, wrapped) == RefusalCode::none));
  BOOST_TEST(flat.store->extent(0, 1)->window_start == 4U);
  std::vector<std::byte> k(5 * 16);
  std::vector<std::byte> v(5 * 16);
  BOOST_TEST(flat.store->read(0, 1, {4, 9}, {k, v}).ok());
  for (std::size_t i = 0; i < 5; ++i) BOOST_TEST(is_row(&k[i * 16], 5 + i, Plane::k));
  // A store that renumbers begins at 0, and has no room for a sequence that does not.
  BOOST_TEST((Pair("compact").restore(0, wrapped) == RefusalCode::unsupported));
  // A full flat layer of 8 does not fit into the ring's 5.
  Pair full("flat");
  full.append(0, 8);
  BOOST_TEST((ring.restore(1, full.save(0)) == RefusalCode::unsupported));
  BOOST_TEST(holds_as_modelled(*ring.store, ring.model));
}

StoreConfig pool_of(std::uint32_t blocks, bool slides = true) {
  StoreConfig config = shape_of("ring");
  config.layers = {small_layer(slides ? 8 : 12, {3, true}, slides), small_layer(12, {}, false)};
  config.block = 2;
  config.pool_blocks = blocks;
  return config;
}

BOOST_AUTO_TEST_CASE(a_restore_that_lacks_blocks_is_refused_and_changes_nothing) {
  Pair pair("paged", pool_of(6));
  pair.append(0, 7);
  const File file = pair.save(0);  // 4 blocks
  pair.append(1, 3);               // the 2 that are left
  BOOST_TEST((pair.restore(1, file) == RefusalCode::no_memory));
  BOOST_TEST(holds_as_modelled(*pair.store, pair.model));
  // In place of what it holds itself there is room.
  BOOST_TEST((pair.restore(0, file) == RefusalCode::none));
  BOOST_TEST((pair.store->paging()->counts() == PoolCounts{0, 6, 0, 0}));
  BOOST_TEST(holds_as_modelled(*pair.store, pair.model));
  // What is promised to another sequence is not there.
  BOOST_TEST(pair.store->clear(0).ok());
  BOOST_TEST(pair.store->paging()->admit(0, {0, 1, 1, {}}).ok());
  BOOST_TEST((pair.restore(1, file) == RefusalCode::none));
  BOOST_TEST(pair.store->clear(1).ok());
  BOOST_TEST(pair.store->clear(0).ok());
  BOOST_TEST(pair.store->paging()->admit(0, {0, 4, 2, {}}).ok());
  BOOST_TEST((pair.restore(1, file) == RefusalCode::no_memory));
  // A restored sequence is no admitted one: what was promised to it is free again.
  BOOST_TEST((pair.restore(0, file) == RefusalCode::none));
  BOOST_TEST((pair.restore(1, file) == RefusalCode::no_memory));
}

/// A first layer that does not slide has room for more rows than its file had, while the others hold all of theirs.
BOOST_AUTO_TEST_CASE(restored_tables_have_room_for_what_an_append_brings) {
  Pair from("paged", pool_of(6));
  for (int i = 0; i < 12; ++i) from.append(0);
  const File file = from.save(0);
  const auto store = make_paged_store(pool_of(40, false));
  BOOST_REQUIRE(store->saving()->restore(0, file).ok());
  const Extent held = *store->extent(0, 0);
  BOOST_REQUIRE_EQUAL(held.window_start, 4U);
  const TaggedRows rows({50, 51, 52, 53});
  BOOST_TEST(store->append(0, 0, rows.rows()).ok());
  BOOST_TEST(store->clear(0).ok());
  BOOST_TEST(store->paging()->counts().held == 0U);
}

BOOST_AUTO_TEST_CASE(a_sequence_that_is_out_is_not_saved_and_can_be_replaced) {
  StoreConfig config = pool_of(8);
  config.host_blocks = 4;
  Pair pair("paged", config);
  pair.append(0, 3);
  const File file = pair.save(0);
  BOOST_REQUIRE(pair.store->paging()->swap_out(0).ok());
  BOOST_TEST((pair.store->saving()->saved_bytes(0).code() == RefusalCode::evicted));
  BOOST_TEST((pair.restore(0, file) == RefusalCode::none));
  BOOST_TEST((pair.store->paging()->counts() == PoolCounts{6, 2, 0, 0}));
  BOOST_TEST(holds_as_modelled(*pair.store, pair.model));
}

BOOST_AUTO_TEST_CASE(in_the_middle_of_a_token_nothing_is_copied) {
  Pair pair("flat");
  pair.append(0, 2);
  const File file = pair.save(0);
  BOOST_TEST(pair.store->append(0, 0, TaggedRows({7}).rows()).ok());
  BOOST_TEST((pair.store->saving()->saved_bytes(0).code() == RefusalCode::out_of_order));
  BOOST_TEST((pair.restore(0, file) == RefusalCode::out_of_order));
  BOOST_TEST((pair.restore(2, file) == RefusalCode::unknown_sequence));
  BOOST_TEST((pair.restore(1, file) == RefusalCode::none));
  File small(file.size() - 1);
  BOOST_TEST((pair.store->saving()->save(1, small).code() == RefusalCode::no_memory));
}

BOOST_AUTO_TEST_CASE(keys_before_rotation_are_saved_with_the_rotated_ones) {
  StoreConfig config = shape_of("compact");
  config.layers[1].rope = RopeConfig{};
  const auto store = make("compact", config);
  const auto other = make("compact", config);
  Rope rope(*config.layers[1].rope, kElements);
  for (std::uint64_t tag = 0; tag < 6; ++tag) {
    const TaggedRows raw({tag});
    std::vector<float> k = raw.k;
    rope.set_position(static_cast<Position>(tag));
    rope.rotate(raw.k, k);
    BOOST_TEST_REQUIRE(store->append(0, 0, raw.rows()).ok());
    BOOST_TEST_REQUIRE(store->append(0, 1, {k.data(), raw.v.data(), 1, raw.k.data(), static_cast<Position>(tag)}).ok());
  }
  File file(store->saving()->saved_bytes(0).value());
  BOOST_TEST_REQUIRE(store->saving()->save(0, file).ok());
  BOOST_TEST_REQUIRE(other->saving()->restore(1, file).ok());
  // Survivors of an eviction are rotated anew from what was restored.
  BOOST_TEST_REQUIRE(store->evict(0, {1, 3}).ok());
  BOOST_TEST_REQUIRE(other->evict(1, {1, 3}).ok());
  File a(store->saving()->saved_bytes(0).value());
  File b(a.size());
  BOOST_TEST_REQUIRE(store->saving()->save(0, a).ok());
  BOOST_TEST_REQUIRE(other->saving()->save(1, b).ok());
  BOOST_TEST((a == b));
  // A ring keeps no keys before rotation, and has no use for a file that does.
  StoreConfig plain = config;
  BOOST_TEST((make("flat", plain)->saving()->restore(0, file).code() == RefusalCode::unsupported));
}

/// Only a store that renumbers has them.
BOOST_AUTO_TEST_CASE(a_store_without_keys_before_rotation_saves_none) {
  const auto bytes = [](bool rotates) {
    StoreConfig config = shape_of("ring");
    for (LayerGeometry& layer : config.layers)
      if (rotates) layer.rope.emplace();
    Pair pair("ring", config);
    pair.append(0, 3);
    return pair.save(0).size();
  };
  BOOST_TEST(bytes(true) == bytes(false));
}

BOOST_AUTO_TEST_CASE(layers_that_read_a_donor_have_its_rows_again) {
  StoreConfig config = config_of(2, small_layer(8, {}, false));
  config.layers[1].donor = LayerIndex{0};
  const auto store = make("layered", config);
  BOOST_TEST_REQUIRE(store->append(0, 0, TaggedRows({5, 6, 7}).rows()).ok());
  File file(store->saving()->saved_bytes(0).value());
  BOOST_TEST_REQUIRE(store->saving()->save(0, file).ok());
  BOOST_TEST(file.size() == 40U + 2 * 8 + 8 + 3 * 2 * kRowBytes);
  BOOST_TEST_REQUIRE(store->clear(0).ok());
  BOOST_TEST_REQUIRE(store->saving()->restore(0, file).ok());
  BOOST_TEST(store->extent(0, 1)->end == 3U);
  std::vector<std::byte> k(3 * kRowBytes);
  std::vector<std::byte> v(3 * kRowBytes);
  BOOST_TEST_REQUIRE(store->read(0, 1, {0, 3}, {k, v}).ok());
  for (std::size_t i = 0; i < 3; ++i) BOOST_TEST(is_row(&v[i * kRowBytes], 5 + i, Plane::v));
  // A file in which both layers have rows of their own is another one.
  config.layers[1].donor.reset();
  BOOST_TEST((make("layered", config)->saving()->restore(0, file).code() == RefusalCode::unsupported));
}

BOOST_AUTO_TEST_CASE(views_over_a_restored_sequence_are_stale) {
  for (const std::string& kind : kKinds) {
    Pair pair(kind);
    pair.append(0, 3);
    pair.append(1, 3);
    const File file = pair.save(0);
    WindowScratch scratch(2, 0);
    WindowScratch other_scratch(2, 0);
    const Window window = pair.store->window(0, 0, {0, 3}, scratch).value();
    const Window other = pair.store->window(1, 0, {0, 3}, other_scratch).value();
    BOOST_TEST((pair.restore(0, std::span(file).first(9)) == RefusalCode::corrupt));
    BOOST_TEST(pair.store->still_valid(window).ok());
    BOOST_TEST((pair.restore(0, file) == RefusalCode::none));
    BOOST_TEST((pair.store->still_valid(window).code() == RefusalCode::stale));
    BOOST_TEST(pair.store->still_valid(other).ok());
  }
}

BOOST_AUTO_TEST_CASE(the_seam_tells_a_save_and_a_restore) {
  Bench bench(make("flat", config_of(1, small_layer(8, {}, false))));
  BOOST_TEST(bench.append(3).ok());
  File file(bench.traced->saved_bytes(0).value());
  static_cast<void>(bench.events());
  BOOST_TEST(bench.traced->save(0, file).ok());
  const auto saved = bench.events();
  BOOST_TEST(Bench::types_of(saved) == "Called Saved RegionMeasured");
  BOOST_TEST(Bench::all<trace::Saved>(saved)[0].digest == trace::digest_bytes(file));
  BOOST_TEST(Bench::all<trace::Saved>(saved)[0].to == 3U);
  BOOST_TEST(bench.append(2).ok());
  static_cast<void>(bench.events());
  BOOST_TEST(bench.traced->restore(0, file, 3).ok());
  const auto restored = bench.events();
  BOOST_TEST(Bench::types_of(restored) == "Called Restored RegionMeasured StateDigest");
  BOOST_TEST(Bench::all<trace::Called>(restored)[0].file == trace::digest_bytes(file));
  BOOST_TEST((Bench::all<trace::StateDigest>(restored)[0].reason == trace::DigestReason::after_edit));
  BOOST_TEST(bench.traced->end(0, 0) == 3U);
  BOOST_TEST((bench.traced->restore(0, std::span(file).first(20), 3).code() == RefusalCode::corrupt));
  BOOST_TEST(bench.types() == "Called Refused RegionMeasured StateDigest");
}

BOOST_AUTO_TEST_SUITE_END()
