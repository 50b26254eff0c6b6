/// Where the rows lie that a store's windows hand out.
#pragma once

#include "kvwitness/core/kv_store.hpp"

#include <algorithm>

namespace kvwitness::core {

/// Appends the rows of a run of a layer, and the keys before rotation that belong to them. False where they lie in no
/// storage that the store declared.
[[nodiscard]] bool keep_run(const KvStore& store, LayerIndex layer, const Run& run, KeptRows& kept);

/// Appends the rows of everything that the layers of a sequence hold. `window(layer, range, scratch)` gives runs that
/// lie in the store's own memory.
template <class F>
Outcome<Done> keep_sequence(const KvStore& store, SequenceId sequence, KeptRows& kept, F&& window) {
  const StoreLayout what = store.layout();
  const std::vector<LayerGeometry>& layers = what.config->layers;
  WindowScratch scratch(std::max(what.max_runs, 1U), 0);
  for (LayerIndex layer = 0; layer < layers.size(); ++layer) {
    if (layers[layer].donor) continue;
    const auto held = store.extent(sequence, layer);
    if (!held) return held.refusal();
    // An empty window has no sinks, so that these are asked for by themselves.
    const Range sinks = sinks_before(layers[layer].sinks, std::min(held->window_start, held->end));
    for (const Range range : {sinks, Range{held->window_start, held->end}}) {
      if (range.empty()) continue;
      const Outcome<Window> all = window(layer, range, scratch);
      if (!all) return all.refusal();
      for (const Run& run : all->runs) {
        if (!keep_run(store, layer, run, kept)) return refuse(trace::Operation::poison, RefusalCode::unsupported);
      }
    }
  }
  return Done{};
}

}  // namespace kvwitness::core
