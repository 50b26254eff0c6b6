/// A store whose positions have no holes: what lies behind an evicted range moves down and is renumbered.
#pragma once

#include "kvwitness/core/kv_store.hpp"

#include <memory>

namespace kvwitness::core {

/// What a compact store can do; bits of trace::Capability.
[[nodiscard]] std::uint64_t compact_capabilities() noexcept;

/// Slot of position p = p; window_start is always 0. Evicting [a, b) removes those positions from every layer, wherever
/// they lie; position p >= b becomes p - (b - a), as if the evicted tokens had never come. In a layer with rope the key
/// of each survivor that gets another position is rotated once, from its raw row, to the new one; V stays as it is. Raw
/// rows are a storage of their own, only in layers with rope; an append to one without `RowsIn::k_raw` is refused
/// `unsupported`. Memory is allocated here and never again. Throws trace::Error naming the field: what `validate`
/// refuses, a sliding layer, rows other than f32.
[[nodiscard]] std::unique_ptr<KvStore> make_compact_store(const StoreConfig& config);

}  // namespace kvwitness::core
