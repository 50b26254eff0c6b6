/// What stores tell of the files that they write and read.
#pragma once

#include "kvwitness/core/kv_store.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace kvwitness::core {

/// The positions of a layer that holds `held`, in the order of its rows in a file: its sinks, then the others.
[[nodiscard]] inline std::array<Range, 2> held_ranges(const LayerGeometry& layer, Extent held) noexcept {
  return {sinks_before(layer.sinks, held.window_start), Range{held.window_start, held.end}};
}

/// Of a file of `bytes` about a sequence, which the store has, as it is now.
[[nodiscard]] inline SavedState saved_state_of(const KvStore& store, SequenceId sequence, std::uint64_t bytes) {
  Extent longest = *store.extent(sequence, 0);
  for (LayerIndex layer = 1; layer < store.layout().config->layers.size(); ++layer)
    longest.window_start = std::min(longest.window_start, store.extent(sequence, layer)->window_start);
  return {bytes, longest.window_start, longest.end, {}};
}

}  // namespace kvwitness::core
