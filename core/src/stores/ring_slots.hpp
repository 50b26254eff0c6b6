/// Rings behind their sinks: what the ring, layered and sink-ring stores share.
#pragma once

#include "stores/slot_store.hpp"

namespace kvwitness::core {

/// Slot of position p = p where it is a sink, else sinks + (p - sinks) mod the slots behind them; nothing ever moves. A
/// window is its sinks' run, then one run, or two where it crosses the end of the ring.
class RingSlots : public SlotStore {
 protected:
  using SlotStore::SlotStore;

 private:
  [[nodiscard]] Slot slot_of(const Place& place, Position position) const noexcept final {
    const LayerGeometry& layer = geometry(place.layer);
    return position < layer.sinks ? position : layer.sinks + (position - layer.sinks) % layer.ring_slots();
  }
  void drop(const Place& place, Range range) noexcept final { touch(place, range); }
};

}  // namespace kvwitness::core
