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
  if (layer.sliding != 0 && end > layer.capacity) start = std::max<std::uint64_t>(start, end - layer.capacity);
  return {static_cast<Position>(std::min(start, end)), static_cast<Position>(end)};
}

/// What it holds once the call that is under way on the store is done.
[[nodiscard]] inline Range held_after_call(const StoreModel& store, const LayerModel& rows, LayerIndex layer) noexcept {
  const trace::Called& called = store.call.called;
  const Range held = rows.held();
  switch (called.operation) {
    case trace::Operation::append:
      return layer == store.call.layer ? held_after_append(store.layers[layer], held, called.count) : held;
    case trace::Operation::truncate:
      return called.to < held.to ? Range{std::min(held.from, called.to), called.to} : held;
    case trace::Operation::evict:
      if (store.can(trace::Capability::renumbers)) return {held.from, held.to - evicted_from(held, called).count()};
      return called.from < called.to ? Range{std::clamp(called.to, held.from, held.to), held.to} : held;
    case trace::Operation::clear: return {};
    default: return held;
  }
}

}  // namespace kvwitness::verify
