/// A store in which every layer has what its own window needs: rings for windowed layers, whole sequences for full
/// ones, nothing for those that read another layer's rows.
#pragma once

#include "kvwitness/core/kv_store.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kvwitness::core {

/// What a layered store can do; bits of trace::Capability.
[[nodiscard]] std::uint64_t layered_capabilities() noexcept;

/// The configuration that a layered store is built with. Each `capacity` given is the longest sequence that the layer
/// meets; where `slack` is given, a layer with a window becomes a ring of min(window + slack, capacity) slots. A chunk
/// of n needs a slack of n - 1. Layers without a window, and all where there is no slack, are taken as they are. Throws
/// trace::Error naming the field, as `validate` does.
[[nodiscard]] StoreConfig layered_config(const StoreConfig& config);

/// Slots as in a ring. Reports what a uniform cache would take: for every layer, readers too, rows of its own for the
/// longest capacity given. Memory is allocated here and never again. Throws trace::Error naming the field: what
/// `validate` refuses, sinks, rows other than f32.
[[nodiscard]] std::unique_ptr<KvStore> make_layered_store(const StoreConfig& config);

/// Layers of a model in which every `period`-th one attends to all keys and the others to `window` keys: 6 in Gemma 3
/// (arXiv:2503.19786: five local layers, then a global one), 2 in gpt-oss (arXiv:2508.10925: windowed, then full), 1
/// where all are full, 0 where none is. `full` is a layer without a window.
[[nodiscard]] std::vector<LayerGeometry> layers_in_pattern(const LayerGeometry& full, std::uint32_t count,
                                                           std::uint32_t window, std::uint32_t period);

}  // namespace kvwitness::core
