#include "stage/token_work.hpp"

#include "stage/decoder_work.hpp"
#include "stage/measured_step.hpp"

#include <algorithm>

namespace kvwitness::scenarios {
namespace {

using trace::Operation;
using trace::RefusalCode;

/// Where a query is rotated to: its position, or its rank in the window, where it does not stand in front of it.
trace::Position rotated_to(const core::LayerGeometry& layer, trace::Range window, trace::Position query) noexcept {
  return layer.by_rank ? core::rank_in_window(layer.sinks, window.from, query) : query;
}

core::AttentionInput attention_input(const StoreRun& store, const QueryTask& task, std::span<const float> q) {
  const core::LayerGeometry& layer = store.geometry(task.layer);
  core::AttentionInput input;
  input.q = q;
  input.first_query = task.first;
  input.count = task.count;
  input.window = core::effective_window(layer);
  input.sinks = layer.sinks;
  input.q_heads = layer.q_heads;
  input.kv_heads = layer.kv_heads;
  input.head_dim = layer.head_dim;
  input.score_scale = core::score_scale(store.config(), task.layer);
  input.softcap = store.config().softcap;
  return input;
}

/// What is left of the keys that queries see once all below `evicted_to` were evicted, but the sinks: where nothing is
/// left behind them, they are the window, for an empty one has no sinks.
trace::Range left_of(trace::Range seen, trace::Position evicted_to, std::uint32_t sinks) noexcept {
  if (seen.to <= sinks) return seen;
  const trace::Range left{std::max(seen.from, std::min(evicted_to, seen.to)), seen.to};
  return left.empty() && sinks != 0 ? trace::Range{0, sinks} : left;
}

RefusalCode run_layers(Stage& stage, const TokenTask& task, const StepSpan& span) {
  if (stage.decoders().has(task.stream)) return run_decoder(stage, task, span);
  StoreRun& store = *task.store;
  const trace::Position first = store.end(task.sequence, 0);
  for (trace::LayerIndex layer = 0; layer < store.layers(); ++layer) {
    if (layer == 0) stage.expect(*task.step, span, Operation::append, layer);
    const RefusalCode appended = store.has_own_rows(layer) ? append_layer(stage, task, layer) : RefusalCode::none;
    if (appended != RefusalCode::none) return appended;
    if (!task.attends) continue;
    const QueryTask queries{task.step, &store, task.sequence, layer, task.stream, task.ordinal, first, task.count};
    const RefusalCode attended = attend_window(stage, queries);
    if (attended != RefusalCode::none) return attended;
  }
  return RefusalCode::none;
}

}  // namespace

std::size_t events_of_token(const StoreRun& store, bool attends) {
  constexpr std::size_t kAround = 32;  // the step, its region, and what a store declares beyond the usual
  constexpr std::size_t kAppend = 16;  // Expected, Called, RowDigests, Allocation, Overwrite, Append, RegionMeasured
  constexpr std::size_t kAttention =
      34;  // Called, adapters, allocations, RegionMeasured of window, gather, attend; pieces of a mask; closes
  const std::size_t layers = store.config().layers.size();
  std::size_t events = kAround + layers * (kAppend + 1);
  if (!attends) return events;
  for (const core::LayerGeometry& layer : store.config().layers) events += kAttention + 1 + layer.q_elements() / 8 + 1;
  for (const core::LayerGeometry& layer : store.config().layers) events += layer.by_rank ? layer.capacity : 0;
  return events + layers * 3 * store.max_runs();
}

RefusalCode append_layer(Stage& stage, const TokenTask& task, trace::LayerIndex layer) {
  StoreRun& store = *task.store;
  const auto elements = static_cast<std::uint32_t>(store.geometry(layer).kv_elements());
  core::RowsIn rows = stage.fill_rows(task.stream, layer, elements, task.ordinal, task.count);
  if (core::Rope* rope = store.rope(layer); rope != nullptr && !store.geometry(layer).by_rank)
    rows = stage.rotated(rows, elements, *rope, store.end(task.sequence, layer));
  const auto appended = store.traced().append(task.sequence, layer, rows, stage.source(task.stream, task.ordinal));
  if (appended) store.accept_append(task.sequence, layer, task.stream, task.count);
  return appended.code();
}

RefusalCode attend_view(Stage& stage, const QueryTask& task, trace::ViewId view) {
  StoreRun& store = *task.store;
  core::TracedStore& traced = store.traced();
  trace::ViewId used = view;
  if (task.step->path == AttentionSource::gather) {
    const auto gathered = traced.gather(view, *stage.forward());
    if (!gathered) return gathered.code();
    used = *gathered;
  }
  const auto elements = static_cast<std::uint32_t>(store.geometry(task.layer).q_elements());
  const auto q = stage.fill_queries(task.stream, task.layer, elements, task.ordinal, task.count);
  if (core::Rope* rope = store.rope(task.layer); rope != nullptr) {
    const trace::Range window = traced.window_of(view).range;
    for (std::uint32_t i = 0; i < task.count; ++i)
      stage.rotate_query(elements, *rope, i, rotated_to(store.geometry(task.layer), window, task.first + i));
  }
  const std::span<float> out = std::span(stage.rooms().out).first(std::size_t{elements} * task.count);
  const auto attended =
      traced.attend(used, attention_input(store, task, q), store.path(), out, stage.source(task.stream, task.ordinal));
  if (attended)
    stage.record_outputs({store.index(), task.sequence, task.layer}, stage.output_name(*task.step, store), task.first,
                         out, elements);
  if (used != view) traced.close(used);
  return attended.code();
}

RefusalCode attend_window(Stage& stage, const QueryTask& task) {
  StoreRun& store = *task.store;
  const trace::WindowSize window = core::effective_window(store.geometry(task.layer));
  const trace::Range seen = store.path().key_range(task.layer, window, task.first, task.count);
  const trace::Range keys = left_of(seen, store.sequence(task.sequence).evicted_to, store.geometry(task.layer).sinks);
  const auto view = store.traced().open(task.sequence, task.layer, keys);
  if (!view) return view.code();
  const RefusalCode attended = attend_view(stage, task, *view);
  store.traced().close(*view);
  return attended;
}

RefusalCode run_chunk(Stage& stage, const TokenTask& task, Operation operation) {
  const StepSpan span = stage.begin_step(*task.step, operation, *task.store, task.sequence, task.token);
  const RefusalCode code = run_layers(stage, task, span);
  stage.end_step(span, outcome_of(code));
  return code;
}

RefusalCode decode_token(Stage& stage, const TokenTask& task) {
  const StepSpan span = stage.begin_step(*task.step, Operation::decode, *task.store, task.sequence, task.token);
  const std::size_t events = events_of_token(*task.store, task.attends) + events_of_logits(stage, task.stream);
  return measured_decode(stage, span, events, [&] { return run_layers(stage, task, span); });
}

bool crosses_capacity(const StoreRun& store, trace::Position position) noexcept {
  return position != 0 && std::ranges::any_of(store.config().layers, [&](const core::LayerGeometry& layer) {
           return position % layer.capacity == 0;
         });
}

}  // namespace kvwitness::scenarios
