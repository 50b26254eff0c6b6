// A clone has the source's extents and bits, decodes as the source does, and is independent of it.
#include "kvwitness/core/decoder/clone.hpp"
#include "decoder_setup.hpp"
#include "kvwitness/core/compact_store.hpp"

#include <boost/test/data/test_case.hpp>

#include <utility>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::core;
using namespace kvwitness::core::testing;
namespace data = boost::unit_test::data;

namespace {

struct Case {
  const char* name;
  bool ring;
  std::uint32_t tokens;
  Position evicted;    // from the front
  Position truncated;  // to
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name;
}

const Case kCases[] = {{"empty", true, 0, 0, 0},
                       {"flat", false, 9, 0, 9},
                       {"flat, front evicted", false, 14, 5, 14},
                       {"ring, not full", true, 3, 0, 3},
                       {"ring, wrapped", true, 23, 0, 23},
                       {"ring, front evicted", true, 23, 20, 23},
                       {"ring, taken back", true, 23, 0, 21}};

std::unique_ptr<KvStore> store_for(const DecoderConfig& config, bool ring) {
  StoreConfig layers = store_config(config, 14, false, 2);
  if (!ring) return make_flat_store(layers);
  // Layers that keep different lengths.
  layers.layers[0].capacity = 6;
  layers.layers[1].capacity = 9;
  for (LayerGeometry& layer : layers.layers) layer.sliding = true;
  return make_ring_store(layers);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cloned_sequence)

BOOST_DATA_TEST_CASE(extents_bits_and_what_follows_are_equal, data::make(kCases) * data::make({false, true}), c,
                     between) {
  const DecoderConfig config = shaped({3, 4});
  Decoder decoder(config, seeded_weights(config), 4);
  const auto source = store_for(config, c.ring);
  const auto other = store_for(config, c.ring);
  KvStore& target = between ? *other : *source;
  BareCache from(*source);
  BareCache to(target);
  (void)feed_all(decoder, to, tokens_of(config, 5, 99), 1, 1);  // what the clone replaces
  (void)feed_all(decoder, from, tokens_of(config, c.tokens), 1);
  if (c.evicted > 0) BOOST_TEST_REQUIRE(source->evict(0, {0, c.evicted}).ok());
  BOOST_TEST_REQUIRE(source->truncate(0, c.truncated).ok());

  const auto copied = clone_sequence({*source, 0}, {target, 1});
  BOOST_TEST_REQUIRE(copied.ok());
  std::uint64_t rows = 0;
  for (LayerIndex layer = 0; layer < 2; ++layer) {
    const Extent a = *source->extent(0, layer);
    const Extent b = *target.extent(1, layer);
    BOOST_TEST(a.window_start == b.window_start);
    BOOST_TEST(a.end == b.end);
    BOOST_TEST((held_rows(*source, layer, 0) == held_rows(target, layer, 1)));
    rows += a.end - a.window_start;
  }
  BOOST_TEST(*copied == rows);

  // What one does next, the other does not feel.
  const std::vector<Token> next{7, 8, 9};
  if (!c.ring && c.evicted == 0) {
    const std::vector<float> a = feed_all(decoder, from, next, 1, 0);
    BOOST_TEST((a == feed_all(decoder, to, next, 1, 1)));
  }
  const HeldRows before = held_rows(*source, 1, 0);
  (void)target.clear(1);
  (void)feed_all(decoder, to, next, 1, 1);
  BOOST_TEST((held_rows(*source, 1, 0) == before));
}

BOOST_AUTO_TEST_CASE(a_wrapped_clone_decodes_as_its_source) {
  const DecoderConfig config = shaped({3, 4});
  Decoder decoder(config, seeded_weights(config), 4);
  const auto store = store_for(config, true);
  BareCache cache(*store);
  (void)feed_all(decoder, cache, tokens_of(config, 23), 1);
  BOOST_TEST_REQUIRE(clone_sequence({*store, 0}, {*store, 1}).ok());
  const std::vector<Token> next = tokens_of(config, 12, 5);
  BOOST_TEST((feed_all(decoder, cache, next, 1, 0) == feed_all(decoder, cache, next, 1, 1)));
}

BOOST_AUTO_TEST_CASE(keys_before_rotation_come_along) {
  const DecoderConfig config = shaped({5, 0});
  Decoder decoder(config, seeded_weights(config), 4);
  StoreConfig layers = store_config(config, 24, false, 2);
  for (LayerGeometry& layer : layers.layers) layer.rope = RopeConfig{};
  const auto store = make_compact_store(layers);
  BareCache cache(*store);
  (void)feed_all(decoder, cache, tokens_of(config, 16), 1);
  BOOST_TEST_REQUIRE(store->evict(0, {2, 5}).ok());
  BOOST_TEST_REQUIRE(clone_sequence({*store, 0}, {*store, 1}).ok());
  // The next eviction rotates from the raw rows: without them the clone would differ.
  for (const SequenceId sequence : {0U, 1U}) BOOST_TEST_REQUIRE(store->evict(sequence, {1, 7}).ok());
  for (LayerIndex layer = 0; layer < 2; ++layer)
    BOOST_TEST((held_rows(*store, layer, 0) == held_rows(*store, layer, 1)));
  const std::vector<Token> next{7, 8, 9};
  BOOST_TEST((feed_all(decoder, cache, next, 1, 0) == feed_all(decoder, cache, next, 1, 1)));
}

BOOST_AUTO_TEST_CASE(a_traced_clone_tells_what_was_done_to_the_copy) {
  const DecoderConfig config = shaped({5, 0});
  Decoder decoder(config, seeded_weights(config), 4);
  StoreConfig layers = store_config(config, 24, false, 2);
  for (LayerGeometry& layer : layers.layers) layer.rope = RopeConfig{};
  const auto store = make_compact_store(layers);
  trace::NameTable names;
  trace::Recorder recorder;
  trace::Bus bus(names, {.capacity = 4096, .batch = 4096});
  bus.subscribe(recorder);
  {
    TracedStore traced(*store, bus, 0);
    BareCache cache(*store);
    (void)feed_all(decoder, cache, tokens_of(config, 6), 1);
    BOOST_TEST((clone_sequence({std::as_const(traced), 0}, {traced, 0}).code() == RefusalCode::unsupported));
    BOOST_TEST(*clone_sequence({std::as_const(traced), 0}, {traced, 1}) == 2U * 6);
    BOOST_TEST(traced.end(1, 1) == 6U);
  }
  for (LayerIndex layer = 0; layer < 2; ++layer)
    BOOST_TEST((held_rows(*store, layer, 0) == held_rows(*store, layer, 1)));
  bus.flush();
  std::uint32_t cleared = 0;
  std::vector<Position> rotated_to;
  for (const trace::Event& event : recorder.events()) {
    if (event.type != trace::EventType::Called) continue;
    const auto called = trace::payload_of<trace::Called>(event);
    BOOST_TEST(event.sequence == 1U);
    // Of a source that was never longer nothing is taken back.
    BOOST_TEST((called.operation == trace::Operation::clear || called.operation == trace::Operation::append));
    cleared += called.operation == trace::Operation::clear;
    if (called.operation == trace::Operation::append && event.layer == 0) rotated_to.push_back(called.from);
  }
  BOOST_TEST(cleared == 1U);
  BOOST_TEST((rotated_to == std::vector<Position>{0, 1, 2, 3, 4, 5}));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_cloned_is_refused) {
  const DecoderConfig config = shaped({3, 4});
  const auto ring = store_for(config, true);
  const auto flat = store_for(config, false);
  const std::vector<float> row(config.kv_width(), 1.0F);
  BOOST_TEST((clone_sequence({*ring, 0}, {*ring, 0}).code() == RefusalCode::unsupported));
  BOOST_TEST((clone_sequence({*ring, 0}, {*flat, 1}).code() == RefusalCode::unsupported));
  BOOST_TEST((clone_sequence({*ring, 5}, {*ring, 1}).code() == RefusalCode::unknown_sequence));
  BOOST_TEST((clone_sequence({*ring, 0}, {*ring, 5}).code() == RefusalCode::unknown_sequence));
  BOOST_TEST_REQUIRE(ring->append(0, 0, {row.data(), row.data(), 1}).ok());
  BOOST_TEST((clone_sequence({*ring, 0}, {*ring, 1}).code() == RefusalCode::out_of_order));
}

BOOST_AUTO_TEST_SUITE_END()
