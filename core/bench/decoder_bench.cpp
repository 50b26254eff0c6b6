/// Decode of the golden model (window 4) over a bare ring of 8 slots: serial, batched, quantised, and the whole
/// sequence without a cache. Each tells its time a token as a ratio to the serial one of the same run, so that machines
/// can be compared.
#include "kvwitness/core/decoder/bare_cache.hpp"
#include "kvwitness/core/decoder/decoder.hpp"
#include "kvwitness/core/decoder/forward.hpp"
#include "kvwitness/core/ring_store.hpp"

#include <benchmark/benchmark.h>

#include <ctime>
#include <memory>
#include <numeric>
#include <vector>

namespace {

using namespace kvwitness::core;

constexpr WindowSize kWindow{4, true};
constexpr std::uint32_t kCapacity = 8;

StoreConfig store_config(const DecoderConfig& decoder, std::uint32_t sequences) {
  StoreConfig config;
  config.sequences = sequences;
  LayerGeometry layer;
  layer.q_heads = decoder.q_heads;
  layer.kv_heads = decoder.kv_heads;
  layer.head_dim = decoder.head_dim;
  layer.window = kWindow;
  layer.capacity = kCapacity;
  layer.sliding = true;
  config.layers.assign(decoder.layers.size(), layer);
  return config;
}

/// Sequences that decode in step, each token teacher-forced.
struct Decode {
  explicit Decode(Arithmetic arithmetic, std::uint32_t sequence_count = 1)
      : config(golden_decoder(kWindow)),
        decoder(config, seeded_weights(config), sequence_count, arithmetic),
        store(make_ring_store(store_config(config, sequence_count))),
        cache(*store),
        sequences(sequence_count),
        tokens(sequence_count),
        logits(std::size_t{sequence_count} * config.vocab) {
    std::iota(sequences.begin(), sequences.end(), 0U);
    for (int i = 0; i < 64; ++i) step();  // the ring has wrapped
  }

  void step() {
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>((++count * 31 + i) % config.vocab);
    (void)decoder.feed_batch(cache, sequences, tokens, logits);
    benchmark::DoNotOptimize(logits.data());
  }

  DecoderConfig config;
  Decoder decoder;
  std::unique_ptr<KvStore> store;
  BareCache cache;
  std::vector<SequenceId> sequences;
  std::vector<Token> tokens;
  std::vector<float> logits;
  std::uint32_t count = 0;
};

/// CPU time, which other work on the machine does not stretch.
double cpu_s() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// Seconds that a serial token takes, measured once.
double serial_token_s() {
  static const double known = [] {
    Decode decode(Arithmetic::golden);
    constexpr int kTokens = 100000;
    const double start = cpu_s();
    for (int i = 0; i < kTokens; ++i) decode.step();
    return (cpu_s() - start) / kTokens;
  }();
  return known;
}

void tell(benchmark::State& state, double start_s, std::uint32_t tokens_a_step) {
  const double tokens = static_cast<double>(state.iterations()) * tokens_a_step;
  const double token_s = (cpu_s() - start_s) / tokens;
  state.counters["ns_token"] = token_s * 1e9;
  state.counters["tokens_s"] = 1.0 / token_s;
  state.counters["times_serial"] = token_s / serial_token_s();
}

void decode_token(benchmark::State& state, Arithmetic arithmetic, std::uint32_t sequences) {
  (void)serial_token_s();
  Decode decode(arithmetic, sequences);
  const double start = cpu_s();
  for (auto _ : state) decode.step();
  tell(state, start, sequences);
}

void whole_sequence(benchmark::State& state) {
  (void)serial_token_s();
  constexpr std::uint32_t kTokens = 64;
  const DecoderConfig config = golden_decoder(kWindow);
  const Weights weights = seeded_weights(config);
  std::vector<Token> tokens(kTokens);
  std::iota(tokens.begin(), tokens.end(), 0U);
  const double start = cpu_s();
  for (auto _ : state) benchmark::DoNotOptimize(forward(config, weights, tokens).logits.data());
  tell(state, start, kTokens);
}

BENCHMARK_CAPTURE(decode_token, serial, Arithmetic::golden, 1);
BENCHMARK_CAPTURE(decode_token, batch_of_8, Arithmetic::golden, 8);
BENCHMARK_CAPTURE(decode_token, q8, Arithmetic::q8, 1);
BENCHMARK_CAPTURE(decode_token, q8_batch_of_8, Arithmetic::q8, 8);
BENCHMARK(whole_sequence);

}  // namespace
