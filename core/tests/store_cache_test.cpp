// A decoder over stores, against the same decoder over whole sequences that knows no cache.
#include "kvwitness/core/decoder/store_cache.hpp"

#include "kvwitness/core/decoder/decoder.hpp"
#include "kvwitness/core/decoder/forward.hpp"
#include "kvwitness/core/decoder/speculate.hpp"
#include "kvwitness/core/flat_store.hpp"
#include "kvwitness/core/ring_store.hpp"
#include "kvwitness/trace/probe.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <memory>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::core;
namespace data = boost::unit_test::data;

namespace {

const std::vector<Token> kStream{3,  17, 5,  23, 41, 2, 19, 8,  31, 14, 7, 11,
                                 29, 13, 37, 6,  25, 9, 33, 21, 15, 27, 1, 10};

StoreConfig config_for(const DecoderConfig& model, std::uint32_t capacity, bool slides) {
  StoreConfig config;
  for (const DecoderLayer& layer : model.layers) {
    LayerGeometry geometry;
    geometry.q_heads = model.q_heads;
    geometry.kv_heads = model.kv_heads;
    geometry.head_dim = model.head_dim;
    geometry.window = layer.window;
    geometry.capacity = capacity;
    geometry.sliding = slides;
    geometry.rope = layer.rope;
    config.layers.push_back(geometry);
  }
  return config;
}

/// A decoder over a traced store.
struct Bench {
  Bench(const DecoderConfig& model, std::unique_ptr<KvStore> kept, std::uint32_t tokens_max = 1)
      : store(std::move(kept)),
        bus(names, {.capacity = 4096, .batch = 4096}),
        traced(*store, bus, 0, {.queries_max = tokens_max}),
        cache(traced, path, tokens_max),
        decoder(model, seeded_weights(model), tokens_max),
        logits(model.vocab) {
    bus.subscribe(recorder);
  }
  Outcome<Done> feed(std::span<const Token> tokens) { return decoder.feed(cache, 0, tokens, logits); }

  std::unique_ptr<KvStore> store;
  trace::NameTable names;
  trace::Recorder recorder;
  trace::Bus bus;
  TracedStore traced;
  AttentionPath path;
  StoreCache cache;
  Decoder decoder;
  std::vector<float> logits;
};

/// Logits of the last of `tokens`, without any cache.
std::vector<float> expected(const DecoderConfig& model, std::span<const Token> tokens) {
  const Forward whole = forward(model, seeded_weights(model), tokens);
  return {whole.logits.end() - model.vocab, whole.logits.end()};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(store_cache)

// Every capacity gives other offsets of the wrap, and 24 tokens meet each of them.
BOOST_DATA_TEST_CASE(a_ring_gives_the_bits_of_the_whole_sequence_at_every_offset, data::xrange(4U, 13U), capacity) {
  const DecoderConfig model = golden_decoder({4, true});
  Bench bench(model, make_ring_store(config_for(model, capacity, true)));
  for (std::size_t i = 0; i < kStream.size(); ++i) {
    BOOST_TEST_REQUIRE(bench.feed(std::span(kStream).subspan(i, 1)).ok());
    BOOST_TEST((bench.logits == expected(model, std::span(kStream).first(i + 1))), "token " << i);
  }
}

BOOST_DATA_TEST_CASE(chunks_give_the_bits_of_the_whole_sequence, data::make({1U, 3U, 8U, 24U}), chunk) {
  DecoderConfig model = golden_decoder({3, true});
  model.layers[1].window = {6, true};
  Bench bench(model, make_flat_store(config_for(model, 24, false)), chunk);
  for (std::size_t at = 0; at < kStream.size(); at += chunk)
    BOOST_TEST_REQUIRE(bench.feed(std::span(kStream).subspan(at, chunk)).ok());
  BOOST_TEST((bench.logits == expected(model, kStream)));
}

BOOST_AUTO_TEST_CASE(what_was_taken_back_leaves_no_trace) {
  const DecoderConfig model = golden_decoder({4, true});
  Bench bench(model, make_flat_store(config_for(model, 24, false)), 12);
  BOOST_TEST_REQUIRE(bench.feed(std::span(kStream).first(12)).ok());
  BOOST_TEST_REQUIRE(bench.cache.truncate(0, 7).ok());
  BOOST_TEST(bench.cache.next_position(0) == 7U);
  const std::vector<Token> other{90, 1, 55};
  BOOST_TEST_REQUIRE(bench.feed(other).ok());
  std::vector<Token> all(kStream.begin(), kStream.begin() + 7);
  all.insert(all.end(), other.begin(), other.end());
  BOOST_TEST((bench.logits == expected(model, all)));
}

BOOST_AUTO_TEST_CASE(a_full_store_ends_the_step_and_leaves_the_logits) {
  const DecoderConfig model = golden_decoder({});
  Bench bench(model, make_flat_store(config_for(model, 3, false)));
  for (std::size_t i = 0; i < 3; ++i) BOOST_TEST_REQUIRE(bench.feed(std::span(kStream).subspan(i, 1)).ok());
  const std::vector<float> before = bench.logits;
  const auto fourth = bench.feed(std::span(kStream).subspan(3, 1));
  BOOST_TEST((fourth.code() == trace::RefusalCode::full));
  BOOST_TEST((bench.logits == before));
}

BOOST_AUTO_TEST_CASE(attention_says_that_it_is_golden_and_where_rows_come_from) {
  const DecoderConfig model = golden_decoder({2, true});
  Bench bench(model, make_ring_store(config_for(model, 2, true)));
  for (std::uint32_t i = 0; i < 3; ++i) {
    bench.cache.prepare(0, {77, 10 + i}, 0);
    BOOST_TEST_REQUIRE(bench.feed(std::span(kStream).subspan(i, 1)).ok());
  }
  bench.bus.flush();
  std::size_t steps = 0;
  for (const trace::Event& event : bench.recorder.events()) {
    if (event.type == trace::EventType::Called) {
      const auto called = trace::payload_of<trace::Called>(event);
      if (called.operation == trace::Operation::append) BOOST_TEST(called.stream == 77U);
    }
    if (event.type != trace::EventType::AttentionStep) continue;
    const auto step = trace::payload_of<trace::AttentionStep>(event);
    BOOST_TEST((step.kernel == trace::KernelKind::golden));
    BOOST_TEST(step.ordinal == 10U + step.query);
    BOOST_TEST(step.visited == std::min(2U, step.query + 1));
    ++steps;
  }
  BOOST_TEST(steps == 6U);
}

BOOST_AUTO_TEST_CASE(a_tree_tells_the_rows_of_the_store_that_its_drafts_see) {
  const DecoderConfig model = golden_decoder({3, true});
  Bench bench(model, make_flat_store(config_for(model, 16, false)), 5);
  BOOST_TEST_REQUIRE(bench.feed(std::span(kStream).first(5)).ok());
  bench.bus.flush();
  const std::size_t before = bench.recorder.events().size();
  TreeVerifier verifier(bench.decoder);
  const std::vector<DraftNode> chain{{1, kSequenceEnd}, {2, 0}, {3, 1}, {4, 2}};
  std::vector<float> logits(chain.size() * model.vocab);
  BOOST_TEST_REQUIRE(verifier.verify(bench.cache, 0, chain, logits).ok());
  bench.bus.flush();
  std::vector<std::uint32_t> visited;
  for (std::size_t i = before; i < bench.recorder.events().size(); ++i) {
    const trace::Event& event = bench.recorder.events()[i];
    if (event.type == trace::EventType::AttentionStep)
      visited.push_back(trace::payload_of<trace::AttentionStep>(event).visited);
  }
  // A window of three: of five rows the first draft sees two, each one deeper sees one less.
  BOOST_TEST((visited == std::vector<std::uint32_t>{2, 1, 0, 0, 2, 1, 0, 0}));
  std::vector<Token> tokens(kStream.begin(), kStream.begin() + 5);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    tokens.push_back(chain[i].token);
    BOOST_TEST(std::ranges::equal(std::span(logits).subspan(i * model.vocab, model.vocab), expected(model, tokens)));
  }
}

BOOST_AUTO_TEST_CASE(sinks_before_the_window_are_refused) {
  DecoderConfig model = golden_decoder({2, true});
  model.positional_sinks = 1;
  Bench bench(model, make_flat_store(config_for(model, 8, false)));
  BOOST_TEST(bench.feed(std::span(kStream).first(1)).ok());
  BOOST_TEST(bench.feed(std::span(kStream).subspan(1, 1)).ok());
  const auto third = bench.feed(std::span(kStream).subspan(2, 1));
  BOOST_TEST((third.code() == trace::RefusalCode::unsupported));
}

BOOST_AUTO_TEST_CASE(a_token_takes_nothing_from_the_heap) {
  if (trace::probe_state() != trace::ProbeState::measuring) return;
  const DecoderConfig model = golden_decoder({4, true});
  Bench bench(model, make_ring_store(config_for(model, 8, true)));
  const trace::ProbeRegion region;
  for (std::size_t i = 0; i < kStream.size(); ++i) static_cast<void>(bench.feed(std::span(kStream).subspan(i, 1)));
  const std::uint64_t allocations = region.seen().allocations;
  BOOST_TEST(allocations == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
