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
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace kvwitness;
using trace::bench::cpu_s;

constexpr std::uint32_t kWindow = 128;
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

/// CPU seconds of a step, the best of a few turns.
template <class Step>
double step_s(Step&& step) {
  for (std::uint32_t i = 0; i < 2 * kWindow; ++i) step();
  double least = 1e30;
  for (int turn = 0; turn < kTurns; ++turn) {
    const double start = cpu_s();
    for (int i = 0; i < kStepsAtOnce; ++i) step();
    least = std::min(least, cpu_s() - start);
  }
  return least / kStepsAtOnce;
}

double bare_s() {
  LayerStep layer;
  return step_s([&] { layer.bare(); });
}

double traced_s(trace::Subscriber& subscriber, bool digest_windows) {
  LayerStep layer;
  trace::NameTable names;
  trace::Bus bus(names);
  bus.subscribe(subscriber);
  trace::RunBegin begin{};
  begin.version = trace::kEventVersion;
  bus.begin_run(begin);
  double least = 0;
  {
    core::TracedStore seam(layer.store(), bus, 0, {.digest_windows = digest_windows});
    least = step_s([&] { layer.traced(seam, bus); });
  }
  bus.end_run();
  return least;
}

double row_digests_s() {
  const LayerStep layer;
  return step_s([&] { benchmark::DoNotOptimize(layer.digest_rows()); });
}

double judged_s() {
  verify::Judge judge(trace::Claims{});
  const double least = traced_s(judge, true);
  for (const verify::RuleVerdict& rule : judge.finish().rules) {
    if (rule.violations != 0) std::abort();
  }
  return least;
}

/// Seconds of a step with more and more of it watched, measured turn by turn.
struct Layers {
  double bare = 1e30;
  double row_digests = 1e30;
  double recorded = 1e30;  ///< with those
  double digested = 1e30;
  double judged = 1e30;

  void measure() {
    Newest newest;
    bare = std::min(bare, bare_s());
    row_digests = std::min(row_digests, row_digests_s());
    recorded = std::min(recorded, traced_s(newest, false));
    digested = std::min(digested, traced_s(newest, true));
    judged = std::min(judged, judged_s());
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
