/// Decoders of many shapes, stores for them, and tokens, for the decoder's tests.
#pragma once

#include "kvwitness/core/decoder/bare_cache.hpp"
#include "kvwitness/core/decoder/decoder.hpp"
#include "kvwitness/core/flat_store.hpp"
#include "kvwitness/core/ring_store.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace kvwitness::core::testing {

struct Shape {
  std::string name;
  DecoderConfig config;
};
inline std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.name;
}

/// [layers] windows; 0: none.
inline DecoderConfig shaped(std::vector<std::uint32_t> windows, std::uint32_t q_heads = 4, std::uint32_t kv_heads = 2,
                            std::uint32_t head_dim = 8, std::uint32_t hidden = 32, std::uint32_t intermediate = 64) {
  DecoderConfig config;
  config.hidden = hidden;
  config.q_heads = q_heads;
  config.kv_heads = kv_heads;
  config.head_dim = head_dim;
  config.intermediate = intermediate;
  config.vocab = 41;
  for (const std::uint32_t keys : windows) config.layers.push_back({{keys, keys != 0}, {}, {}});
  return config;
}

/// Everything that a layer can have, at once and one by one; sizes that are no multiple of a vector among them.
inline std::vector<Shape> shapes() {
  std::vector<Shape> all{{"no window", shaped({0, 0})},
                         {"window 1", shaped({1, 1})},
                         {"window 3", shaped({3, 3})},
                         {"window 4 then 1", shaped({4, 1})},
                         {"window 2, none, 5", shaped({2, 0, 5})},
                         {"heads alone, odd widths", shaped({3, 5}, 3, 3, 4, 20, 27)},
                         {"group of 3, head_dim 10", shaped({0, 4}, 6, 2, 10, 36, 13)},
                         {"group of 4, head_dim 64", shaped({4}, 4, 1, 64, 24, 40)}};
  all.push_back({"softcap", shaped({0, 3})});
  all.back().config.softcap = 0.02F;
  all.push_back({"sink logits", shaped({3, 3})});
  all.back().config.layers[0].sink_logits = {0.5F, -1.0F, 3.0F, 0.0F};
  all.back().config.layers[1].sink_logits = {-0.25F, 0.75F, 0.125F, -2.0F};
  all.push_back({"positional sinks", shaped({3, 4})});
  all.back().config.positional_sinks = 2;
  all.push_back({"theta by layer, own head", shaped({4, 4})});
  all.back().config.layers[1].rope.theta = 10.0;
  all.back().config.tied_head = false;
  return all;
}

inline std::vector<Token> tokens_of(const DecoderConfig& config, std::size_t count, std::uint32_t seed = 1) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    tokens.push_back((seed >> 8) % config.vocab);
  }
  return tokens;
}

inline StoreConfig store_config(const DecoderConfig& decoder, std::uint32_t capacity, bool sliding,
                                std::uint32_t sequences = 1) {
  StoreConfig config;
  config.sequences = sequences;
  for (const DecoderLayer& layer : decoder.layers) {
    LayerGeometry& geometry = config.layers.emplace_back();
    geometry.q_heads = decoder.q_heads;
    geometry.kv_heads = decoder.kv_heads;
    geometry.head_dim = decoder.head_dim;
    geometry.window = layer.window;
    geometry.capacity = capacity;
    geometry.sliding = sliding;
  }
  return config;
}

inline std::unique_ptr<KvStore> flat_for(const DecoderConfig& decoder, std::uint32_t capacity,
                                         std::uint32_t sequences = 1) {
  return make_flat_store(store_config(decoder, capacity, false, sequences));
}

/// Rings just large enough for chunks of `chunk` tokens; the decoder has a window in every layer.
inline std::unique_ptr<KvStore> ring_for(const DecoderConfig& decoder, std::uint32_t chunk,
                                         std::uint32_t sequences = 1) {
  StoreConfig config = store_config(decoder, 0, true, sequences);
  for (LayerGeometry& layer : config.layers) layer.capacity = layer.window.keys + chunk - 1;
  return make_ring_store(config);
}

inline bool has_rings(const DecoderConfig& config) {
  return config.positional_sinks == 0 &&
         std::ranges::all_of(config.layers, [](const DecoderLayer& layer) { return layer.window.limited; });
}

/// Logits after every token, [tokens][vocab].
inline std::vector<float> feed_all(Decoder& decoder, DecoderCache& cache, std::span<const Token> tokens,
                                   std::size_t chunk, SequenceId sequence = 0) {
  const std::size_t vocab = decoder.config().vocab;
  std::vector<float> logits(tokens.size() * vocab);
  for (std::size_t at = 0; at < tokens.size(); at += chunk) {
    const std::size_t count = std::min(chunk, tokens.size() - at);
    const auto done =
        decoder.feed(cache, sequence, tokens.subspan(at, count), std::span(logits).subspan(at * vocab, count * vocab));
    BOOST_TEST_REQUIRE(done.ok());
  }
  return logits;
}

struct HeldRows {
  std::vector<float> k, v;
  friend bool operator==(const HeldRows&, const HeldRows&) = default;
};

/// What a layer of a sequence holds, read out.
inline HeldRows held_rows(const KvStore& store, LayerIndex layer, SequenceId sequence = 0) {
  const Extent held = *store.extent(sequence, layer);
  const std::size_t values = (held.end - held.window_start) * store.layout().config->layers[layer].kv_elements();
  HeldRows rows{std::vector<float>(values), std::vector<float>(values)};
  const RowsOut out{std::as_writable_bytes(std::span(rows.k)), std::as_writable_bytes(std::span(rows.v))};
  BOOST_TEST_REQUIRE(store.read(sequence, layer, {held.window_start, held.end}, out).ok());
  return rows;
}

}  // namespace kvwitness::core::testing
