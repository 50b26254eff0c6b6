/// After construction nothing allocates: appends, windows, gathers and attention, untraced and traced.
#include "kvwitness/core/decoder/golden_attention.hpp"
#include "kvwitness/core/paged_store.hpp"
#include "kvwitness/core/quantised_store.hpp"
#include "kvwitness/trace/probe.hpp"
#include "traced_bench.hpp"

using namespace kvwitness::core;
using namespace kvwitness::core::testing;
namespace trace = kvwitness::trace;

namespace {

/// Prerequisite of every test here; a build without the probe (sanitizers) skips them and says why.
boost::test_tools::assertion_result probe_measures(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(trace::probe_state() == trace::ProbeState::measuring);
  result.message() << trace::probe_state_text();
  return result;
}

constexpr Position kTokens = 64;

/// Keeps nothing, so that only the seam's own allocations can show.
class Sink final : public trace::Subscriber {
 public:
  void on_batch(std::span<const trace::Event> events) override { seen += events.size(); }
  std::size_t seen = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(zero_allocation, *boost::unit_test::precondition(probe_measures))

BOOST_AUTO_TEST_CASE(stores_and_kernel) {
  for (const std::string kind : {"ring", "flat", "compact"}) {
    const auto store = make(kind, config_of(2, small_layer(kind == "ring" ? 8 : kTokens, {8, true}, kind == "ring")));
    const TaggedRows rows({1});
    WindowScratch scratch(2, 0);
    std::vector<float> q(kElements, 0.01F);
    std::vector<float> out(kElements);
    std::vector<Visited> visited(1);
    AttentionInput input = input_at(q, 0);
    input.window = {8, true};
    const trace::ProbeRegion region;
    for (Position token = 0; token < kTokens; ++token) {
      for (LayerIndex layer = 0; layer < 2; ++layer) {
        (void)store->append(0, layer, rows.rows());
        input.first_query = token;
        const auto window = store->window(0, layer, {trace::window_low({8, true}, token), token + 1}, scratch);
        (void)store->still_valid(*window);
        attend_online(input, window->runs, out, visited);
      }
    }
    (void)store->evict(0, {0, kTokens - 1});
    (void)store->truncate(0, kTokens - 1);
    (void)store->clear(0);
    const trace::ProbeReading seen = region.seen();
    BOOST_TEST(seen.allocations == 0U);
    BOOST_TEST(visited[0].visited == 8U);
  }
}

BOOST_AUTO_TEST_CASE(the_seam) {
  Sink sink;
  trace::NameTable names;
  trace::Bus bus(names);
  bus.subscribe(sink);
  const auto store = make_ring_store(config_of(2, small_layer(8, {}, true)));
  TracedStore traced(*store, bus, 0, {});
  Scope scope(bus, trace::ScopeKind::forward, 4096);
  const TaggedRows rows({1});
  const std::vector<float> q(kElements, 0.01F);
  std::vector<float> out(kElements);
  const AttentionPath path;
  const trace::ProbeRegion region;
  for (Position token = 0; token < kTokens; ++token) {
    for (LayerIndex layer = 0; layer < 2; ++layer) {
      (void)traced.append(0, layer, rows.rows());
      const auto view = traced.open(0, layer, {token >= 7 ? token - 7 : 0, token + 1});
      const auto copy = traced.gather(*view, scope);
      (void)traced.attend(*view, input_at(q, token), path, out);
      (void)traced.attend(*copy, input_at(q, token), path, out);
      traced.close(*view);
      traced.close(*copy);
      (void)traced.append(0, layer, rows.rows());  // refused: not due, and followed by the state's digest
      scope.reset();
    }
  }
  (void)traced.truncate(0, kTokens);
  (void)traced.clear(0);
  const trace::ProbeReading seen = region.seen();
  bus.flush();
  BOOST_TEST(seen.allocations == 0U);
  BOOST_TEST(sink.seen > kTokens * 2 * 20);
  bus.unsubscribe(sink);
}

BOOST_AUTO_TEST_CASE(evictions_that_move_and_rotate) {
  Sink sink;
  trace::NameTable names;
  trace::Bus bus(names);
  bus.subscribe(sink);
  LayerGeometry layer = small_layer(16, {8, true}, false);
  layer.rope.emplace();
  const auto store = make_compact_store(config_of(2, layer));
  TracedStore traced(*store, bus, 0, {});
  const TaggedRows tagged({1});
  RowsIn rows = tagged.rows();
  rows.k_raw = rows.k;
  const trace::ProbeRegion region;
  for (Position token = 0; token < kTokens; ++token) {
    for (LayerIndex i = 0; i < 2; ++i) (void)traced.append(0, i, rows);
    if (token >= 7 && token % 4 == 3) (void)traced.evict(0, {1, 5});
  }
  const trace::ProbeReading seen = region.seen();
  bus.flush();
  BOOST_TEST(seen.allocations == 0U);
  BOOST_TEST(sink.seen > kTokens * 2 * 4);
  bus.unsubscribe(sink);
}

namespace {

/// Two layers that slide, of 32 values: a block of every code.
StoreConfig wide_config() {
  LayerGeometry layer{
      .q_heads = 2, .kv_heads = 1, .head_dim = 32, .window = {8, true}, .capacity = 32, .sliding = true};
  return config_of(2, layer, 2);
}

StoreConfig coded(DType type) {
  StoreConfig config = wide_config();
  config.k_type = config.v_type = type;
  config.k_rotated = config.v_rotated = {.bits = 3, .group = 32, .residual_bits = 1, .seed = 5};
  config.recent = 3;
  config.quantise_group = 2;
  return config;
}

/// Stores whose windows are codes, copies by rank, sinks and a ring, or as many runs as rows.
std::vector<std::unique_ptr<KvStore>> other_stores() {
  std::vector<std::unique_ptr<KvStore>> stores;
  for (const DType type : {DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::rotated})
    stores.push_back(make_quantised_store(coded(type)));
  StoreConfig sinks = wide_config();
  sinks.layers[0].sinks = sinks.layers[1].sinks = 4;
  sinks.layers[1].rope.emplace();
  sinks.layers[1].by_rank = true;
  stores.push_back(make_sink_ring_store(sinks));
  StoreConfig shared = wide_config();
  shared.layers[1].donor = 0;
  stores.push_back(make_layered_store(shared));
  StoreConfig blocks = wide_config();
  blocks.block = 1;
  stores.push_back(make_paged_store(blocks));
  return stores;
}

/// Appends, windows, copies, both kernels and reads of one layer. Returns how many calls were served.
int decode(TracedStore& traced, SequenceId sequence, LayerIndex layer, Scope& scope, std::span<float> room) {
  const std::span<float> row = room.first(32);
  const std::span<float> out = room.subspan(32, 64);
  const std::span<const float> q = room.subspan(96, 64);
  const bool is_reader = traced.config().layers[layer].donor.has_value();
  int served = is_reader || traced.append(sequence, layer, {row.data(), row.data(), 1}).ok() ? 1 : 0;
  const Position end = traced.end(sequence, layer);
  const auto view = traced.open(sequence, layer, {trace::window_low({8, true}, end - 1), end});
  if (!view) return served;
  const auto copy = traced.gather(*view, scope);
  const TwoPass golden{.extra = {}, .scores = room.subspan(160, 32)};
  AttentionInput input{.q = q, .first_query = end - 1, .window = {8, true}, .q_heads = 2, .head_dim = 32};
  input.sinks = traced.config().layers[layer].sinks;
  for (const TwoPass* two_pass : {static_cast<const TwoPass*>(nullptr), &golden}) {
    input.two_pass = two_pass;
    for (const trace::ViewId id : {*view, *copy}) served += traced.attend(id, input, {}, out).ok() ? 1 : 0;
  }
  const std::span<std::byte> bytes = std::as_writable_bytes(room.subspan(192));
  served += traced.read(sequence, layer, {end - 1, end}, {bytes.first(256), bytes.subspan(256, 256)}).ok() ? 1 : 0;
  traced.close(*view);
  traced.close(*copy);
  scope.reset();
  return served;
}

}  // namespace

BOOST_AUTO_TEST_CASE(windows_of_codes_ranks_sinks_donors_and_blocks) {
  for (const std::unique_ptr<KvStore>& store : other_stores()) {
    Sink sink;
    trace::NameTable names;
    trace::Bus bus(names);
    bus.subscribe(sink);
    {
      TracedStore traced(*store, bus, 0, {});
      Scope scope(bus, trace::ScopeKind::forward, 8192);
      std::vector<float> room(512, 0.25F);
      int served = 0;
      const trace::ProbeRegion region;
      for (Position token = 0; token < kTokens; ++token)
        for (SequenceId sequence = 0; sequence < 2; ++sequence)
          for (LayerIndex layer = 0; layer < 2; ++layer) served += decode(traced, sequence, layer, scope, room);
      const trace::ProbeReading seen = region.seen();
      bus.flush();
      BOOST_TEST(seen.allocations == 0U, store->layout().kind);
      BOOST_TEST(served == 6 * 2 * 2 * static_cast<int>(kTokens));
      BOOST_TEST(sink.seen > std::size_t{kTokens} * 2 * 2 * 20);
    }
    bus.unsubscribe(sink);
  }
}

BOOST_AUTO_TEST_SUITE_END()
