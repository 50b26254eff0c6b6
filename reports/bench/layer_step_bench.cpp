/// One layer of one decode step at a window of 128 keys, in the shape of Llama 3 8B (32 query heads, 8 KV heads of 128
/// elements), everything in cache: append, window, attention. What recording its events costs, what digesting the rows
/// given, the window's rows and the output costs, and what judging by the standing rules costs, each as a share of the
/// step itself. The step stands in the region of its token, as the driver's do: one region, and one look at the page
/// faults, for all layers of a token.
#include "kvwitness/core/attention.hpp"
#include "kvwitness/core/blocked_attention.hpp"
#include "kvwitness/core/ring_store.hpp"
#include "kvwitness/core/traced_store.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/verify/judge.hpp"
#include "rows.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace kvwitness;
using trace::bench::cpu_s;

constexpr std::uint32_t kWindow = 128;
constexpr int kStepsAhead = 16;
constexpr int kStepsAtOnce = 64;
constexpr int kTurns = 12;

core::StoreConfig ring_config() {
  core::StoreConfig config;
  config.layers = {
      {.q_heads = 32, .kv_heads = 8, .head_dim = 128, .window = {kWindow, true}, .capacity = kWindow, .sliding = true}};
  return config;
}

/// A store with a full window, and the rows and queries of its steps.
class LayerStep {
 public:
  LayerStep() : store_(core::make_ring_store(ring_config())) {
    const core::LayerGeometry& layer = store_->layout().config->layers[0];
    row_.assign(layer.kv_elements(), 0.01F);
    q_.assign(layer.q_elements(), 0.02F);
    out_.resize(q_.size());
    // As much as the seam gives: watched or not, it is the same attention by blocks.
    room_.resize(core::block_room_bytes(layer.q_heads, layer.kv_heads, layer.head_dim, 1));
    input_ = {.q = q_, .window = layer.window, .q_heads = 32, .kv_heads = 8, .head_dim = 128, .score_scale = 0.088F};
    input_.block_room = room_;
  }

  [[nodiscard]] core::KvStore& store() noexcept { return *store_; }

  void bare() {
    (void)store_->append(0, 0, rows());
    input_.first_query = token_;
    const auto window = store_->window(0, 0, visible(), scratch_);
    path_.attend(0, input_, window->runs, out_, visited_);
    benchmark::DoNotOptimize(out_.data());
    ++token_;
  }

  void traced(core::TracedStore& seam, trace::Bus& bus) {
    trace::StepBegin begin{};
    begin.token = token_;
    begin.operation = trace::Operation::decode;
    bus.emit({.store = 0, .sequence = 0}, begin);
    bus.enter_region();
    (void)seam.append(0, 0, rows());
    input_.first_query = token_;
    const auto view = seam.open(0, 0, visible());
    (void)seam.attend(*view, input_, path_, out_);
    seam.close(*view);
    bus.leave_region();
    trace::StepEnd end{};
    end.token = token_;
    end.operation = trace::Operation::decode;
    bus.emit({.store = 0, .sequence = 0}, end);
    bus.step_boundary();
    ++token_;
  }

  /// The digests that the seam makes besides those of windows, which cannot be left out: of the rows given, as rows and
  /// as a piece, and of the output.
  [[nodiscard]] std::uint64_t digest_rows() const {
    const auto row = std::as_bytes(std::span(row_));
    std::uint64_t sum = trace::values_digest(out_);
    for (int i = 0; i < 4; ++i) sum += trace::row_digest(row, token_);  // K and V, twice each
    return sum;
  }

 private:
  [[nodiscard]] core::RowsIn rows() const { return {row_.data(), row_.data(), 1}; }
  [[nodiscard]] core::Range visible() const { return {trace::window_low(input_.window, token_), token_ + 1}; }

  std::unique_ptr<core::KvStore> store_;
  std::vector<float> row_, q_, out_;
  std::vector<std::byte> room_;
  std::vector<core::Visited> visited_ = std::vector<core::Visited>(1);
  core::WindowScratch scratch_{2, 0};
  core::AttentionInput input_;
  core::AttentionPath path_;
  core::Position token_ = 0;
};

/// Keeps the newest batch, so that memory stays bounded.
class Newest final : public trace::Subscriber {
 public:
  void on_batch(std::span<const trace::Event> events) override {
    recorder_.clear();
    recorder_.on_batch(events);
  }

 private:
  trace::Recorder recorder_{1U << 13U};
};

/// A layer whose steps are told to a subscriber.
class Watched {
 public:
  Watched(LayerStep& layer, trace::Subscriber& subscriber, bool digest_windows) : layer_(layer) {
    bus_.subscribe(subscriber);
    trace::RunBegin begin{};
    begin.version = trace::kEventVersion;
    bus_.begin_run(begin);
    seam_.emplace(layer.store(), bus_, trace::StoreIndex{0}, core::TracedOptions{.digest_windows = digest_windows});
  }
  ~Watched() {
    seam_.reset();
    bus_.end_run();
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  void step() { layer_.traced(*seam_, bus_); }

 private:
  LayerStep& layer_;
  trace::NameTable names_;
  trace::Bus bus_{names_};
  std::optional<core::TracedStore> seam_;
};

/// Lowers each side's `best` to its CPU seconds a step, if a turn took less. Sides take turns, each of them after a few
/// steps of its own, so that all find the caches as they leave them themselves.
struct Side {
  std::function<void()> step;
  double* best;
};
void race(const std::vector<Side>& sides) {
  for (std::uint32_t i = 0; i < 2 * kWindow; ++i) sides.front().step();
  for (int turn = 0; turn < kTurns; ++turn) {
    for (const Side& side : sides) {
      for (int i = 0; i < kStepsAhead; ++i) side.step();
      const double start = cpu_s();
      for (int i = 0; i < kStepsAtOnce; ++i) side.step();
      *side.best = std::min(*side.best, (cpu_s() - start) / kStepsAtOnce);
    }
  }
}

/// Seconds of a step with more and more of it watched. All but the last are raced over the same rows at the same place
/// in memory; a judge wants to see every row that is written, and has a layer of its own.
struct Layers {
  double bare = 1e30;
  double row_digests = 1e30;
  double recorded = 1e30;  ///< with those
  double digested = 1e30;
  double judged = 1e30;

  void measure() {
    Newest newest;
    LayerStep layer;
    Watched recording(layer, newest, false);
    Watched digesting(layer, newest, true);
    race({{[&] { layer.bare(); }, &bare},
          {[&] { recording.step(); }, &recorded},
          {[&] { digesting.step(); }, &digested},
          {[&] { benchmark::DoNotOptimize(layer.digest_rows()); }, &row_digests}});
    verify::Judge judge(trace::Claims{});
    {
      LayerStep judged_layer;
      Watched judging(judged_layer, judge, true);
      race({{[&] { judging.step(); }, &judged}});
    }
    for (const verify::RuleVerdict& rule : judge.finish().rules) {
      if (rule.violations != 0) std::abort();
    }
  }
};

enum class Share { recording, digests, judging, everything };

/// A step's share hangs on where in memory its rows happen to lie: all rows of the table look at the best of all places
/// so far, and the one with the least to show comes last.
void tell_share(benchmark::State& state, Share share, double goal) {
  static Layers layers;
  for (auto _ : state) layers.measure();
  const double cost = share == Share::recording ? layers.recorded - layers.row_digests - layers.bare
                      : share == Share::digests ? layers.digested - layers.recorded + layers.row_digests
                      : share == Share::judging ? layers.judged - layers.digested
                                                : layers.judged - layers.bare;
  // Nothing costs less than nothing; a table has ratios above 0.
  state.counters["ratio"] = std::max(1e-6, cost / layers.bare);
  if (goal > 0) state.counters["goal"] = goal;
  state.counters["ns"] = cost * 1e9;
  state.counters["ns_step"] = layers.bare * 1e9;
}

BENCHMARK_CAPTURE(tell_share, digests, Share::digests, 0.0)->Name("reports/layer-step-128-digests/step");
BENCHMARK_CAPTURE(tell_share, judging, Share::judging, 0.0)->Name("reports/layer-step-128-judging/step");
BENCHMARK_CAPTURE(tell_share, everything, Share::everything, 0.25)->Name("reports/layer-step-128-everything/step");
BENCHMARK_CAPTURE(tell_share, recording, Share::recording, 0.02)->Name("reports/layer-step-128-recording/step");

}  // namespace
