/// What a correct layer holds after a call.
#pragma once

#include "kvwitness/verify/model.hpp"

#include <algorithm>

namespace kvwitness::verify {

/// What a correct layer holds after `count` more rows.
[[nodiscard]] inline Range held_after_append(const trace::LayerDeclared& layer, Range held,
                                             std::uint32_t count) noexcept {
  const std::uint64_t end = std::min<std::uint64_t>(std::uint64_t{held.to} + count, trace::kNoPosition);
  std::uint64_t start = held.from;
  const std::uint64_t sinks = std::min(layer.sinks, layer.capacity);
  if (layer.sliding != 0 && end > layer.capacity) start = std::max(start, end - (layer.capacity - sinks));
  return {static_cast<Position>(std::min(start, end)), static_cast<Position>(end)};
}

/// Rows of a layer whose positions apart from its sinks are `held`.
[[nodiscard]] inline std::uint32_t rows_of(const trace::LayerDeclared& layer, Range held) noexcept {
  return held.count() + std::min<std::uint32_t>(layer.sinks, held.from);
}

/// What it holds once the call that is under way on the store is done, apart from its sinks.
[[nodiscard]] inline Range held_after_call(const StoreModel& store, const LayerModel& rows, LayerIndex layer) noexcept {
  const trace::Called& called = store.call.called;
  const Range held = rows.held();
  switch (called.operation) {
    case trace::Operation::append:
      return store.owner(layer) == store.call.layer ? held_after_append(store.layers[layer], held, called.count) : held;
    case trace::Operation::truncate:
      if (called.to >= held.to) return held;
      return {called.to < rows.sinks().to ? 0 : std::min(held.from, called.to), called.to};
    case trace::Operation::evict:
      if (store.can(trace::Capability::renumbers)) return {held.from, held.to - evicted_from(held, called).count()};
      if (called.from >= called.to || called.to <= rows.sinks_max()) return held;
      return {std::clamp(called.to, held.from, held.to), held.to};
    case trace::Operation::clear: return {};
    default: return held;
  }
}

}  // namespace kvwitness::verify
