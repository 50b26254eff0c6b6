/// A decode step (append, window, attend) over ring and flat, bare and through the seam. Each traced run tells its
/// cost as a ratio to the bare run of the same shape, so that machines can be compared.
#include "kvwitness/core/attention.hpp"
#include "kvwitness/core/flat_store.hpp"
#include "kvwitness/core/ring_store.hpp"
#include "kvwitness/core/traced_store.hpp"

#include <benchmark/benchmark.h>

#include <ctime>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace {

using namespace kvwitness::core;
namespace trace = kvwitness::trace;

enum class Kind { ring, flat };

/// Decode of one layer with 4 query heads over 2 kv heads, from a full window on. A flat store is evicted to its window
/// when it is full.
struct Decode {
  Decode(Kind kind, std::uint32_t window_keys) : window{window_keys, true} {
    StoreConfig config;
    const std::uint32_t capacity = kind == Kind::ring ? window_keys : 4 * window_keys;
    config.layers = {{.q_heads = 4,
                      .kv_heads = 2,
                      .head_dim = 64,
                      .window = window,
                      .capacity = capacity,
                      .sliding = kind == Kind::ring}};
    store = kind == Kind::ring ? make_ring_store(config) : make_flat_store(config);
    row.assign(config.layers[0].kv_elements(), 0.01F);
    q.assign(config.layers[0].q_elements(), 0.02F);
    out.resize(q.size());
    input = {.q = q, .window = window, .q_heads = 4, .kv_heads = 2, .head_dim = 64, .score_scale = 0.125F};
  }

  [[nodiscard]] RowsIn rows() const { return {row.data(), row.data(), 1}; }
  [[nodiscard]] Range visible() const { return {trace::window_low(window, token), token + 1}; }

  /// Appends a full window, to the store or through its seam.
  template <class Store>
  void fill(Store& into) {
    for (; token < window.keys; ++token) (void)into.append(0, 0, rows());
  }

  void step() {
    if (is_full()) (void)store->evict(0, {0, visible().from});
    (void)store->append(0, 0, rows());
    input.first_query = token;
    const auto view = store->window(0, 0, visible(), scratch);
    attend_online(input, view->runs, out, visited);
    benchmark::DoNotOptimize(out.data());
    ++token;
  }

  void step(TracedStore& traced) {
    if (is_full()) (void)traced.evict(0, {0, visible().from});
    (void)traced.append(0, 0, rows());
    input.first_query = token;
    const auto view = traced.open(0, 0, visible());
    (void)traced.attend(*view, input, path, out);
    traced.close(*view);
    ++token;
  }

  [[nodiscard]] bool is_full() const {
    return longest_append(store->layout().config->layers[0], *store->extent(0, 0)) == 0;
  }

  WindowSize window;
  std::unique_ptr<KvStore> store;
  std::vector<float> row, q, out;
  std::vector<Visited> visited = std::vector<Visited>(1);
  WindowScratch scratch{2, 0};
  AttentionInput input;
  AttentionPath path;
  Position token = 0;
};

/// CPU time, which other work on the machine does not stretch.
double cpu_s() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// Seconds that a bare step of this shape takes, measured once.
double bare_step_s(Kind kind, std::uint32_t window_keys) {
  static std::map<std::pair<Kind, std::uint32_t>, double> known;
  const auto [at, is_new] = known.try_emplace({kind, window_keys}, 0.0);
  if (is_new) {
    Decode decode(kind, window_keys);
    decode.fill(*decode.store);
    constexpr int kBatch = 256;
    int steps = 0;
    const double start = cpu_s();
    for (; cpu_s() - start < 0.2; steps += kBatch)
      for (int i = 0; i < kBatch; ++i) decode.step();
    at->second = (cpu_s() - start) / steps;
  }
  return at->second;
}

void bare_step(benchmark::State& state, Kind kind) {
  Decode decode(kind, static_cast<std::uint32_t>(state.range(0)));
  decode.fill(*decode.store);
  for (auto _ : state) decode.step();
}

/// Hands every batch to a recorder that forgets it, so that memory stays bounded.
class Forgetful final : public trace::Subscriber {
 public:
  void on_batch(std::span<const trace::Event> events) override {
    recorder_.clear();
    recorder_.on_batch(events);
  }

 private:
  trace::Recorder recorder_{1 << 13};
};

void traced_step(benchmark::State& state, Kind kind, bool recorded, bool digest_windows) {
  const auto window_keys = static_cast<std::uint32_t>(state.range(0));
  Decode decode(kind, window_keys);
  trace::NameTable names;
  trace::Bus bus(names);
  Forgetful recorder;
  if (recorded) bus.subscribe(recorder);
  {
    TracedStore seam(*decode.store, bus, 0, {.digest_windows = digest_windows});
    decode.fill(seam);
    const double start = cpu_s();
    for (auto _ : state) decode.step(seam);
    const double step_s = (cpu_s() - start) / static_cast<double>(state.iterations());
    state.counters["times_bare"] = step_s / bare_step_s(kind, window_keys);
  }
}

void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(16)->Arg(256)->Arg(2048);
}

BENCHMARK_CAPTURE(bare_step, ring, Kind::ring)->Apply(shapes);
BENCHMARK_CAPTURE(bare_step, flat, Kind::flat)->Apply(shapes);
BENCHMARK_CAPTURE(traced_step, ring_unheard, Kind::ring, false, true)->Apply(shapes);
BENCHMARK_CAPTURE(traced_step, ring_recorded, Kind::ring, true, false)->Apply(shapes);
BENCHMARK_CAPTURE(traced_step, ring_recorded_digests, Kind::ring, true, true)->Apply(shapes);
BENCHMARK_CAPTURE(traced_step, flat_recorded_digests, Kind::flat, true, true)->Apply(shapes);

}  // namespace
