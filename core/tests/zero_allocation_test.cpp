/// After construction nothing allocates: appends, windows, gathers and attention, untraced and traced.
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

BOOST_AUTO_TEST_SUITE_END()
