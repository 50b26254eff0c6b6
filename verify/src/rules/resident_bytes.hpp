/// Bytes of rows that a store holds.
#pragma once

#include "kvwitness/verify/model.hpp"
#include "rows/code_law.hpp"

#include <cstdint>

namespace kvwitness::verify {

/// A store that renumbers keeps rotated keys in their raw form as well.
[[nodiscard]] inline std::uint64_t bytes_of_row(const StoreModel& store, LayerIndex layer) noexcept {
  const trace::LayerFormat& format = store.formats[layer];
  const bool keeps_raw = store.can(trace::Capability::renumbers) && store.rotates(layer);
  return format.k_row_bytes * (keeps_raw ? 2 : 1) + format.v_row_bytes;
}

/// What rows that a layer holds take, both sides.
[[nodiscard]] inline std::uint64_t resident_bytes(const StoreModel& store, LayerIndex layer, Range held) noexcept {
  if (!is_coded(store, layer)) return held.count() * bytes_of_row(store, layer);
  return held_bytes(store, layer, held, held.to);
}

}  // namespace kvwitness::verify
