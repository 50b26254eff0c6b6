/// The product's sink ring and layered store behind a fault.
#pragma once

#include "kvwitness/core/layered_store.hpp"
#include "kvwitness/core/sink_ring_store.hpp"
#include "mutants/groups.hpp"
#include "mutants/wrapped_store.hpp"

#include <cstddef>
#include <cstring>
#include <span>

namespace kvwitness::scenarios::mutants {

/// A sink ring; its memory can be written behind its back.
class WrappedSinks : public Wrapped {
 public:
  explicit WrappedSinks(const core::StoreConfig& config) : Wrapped(core::make_sink_ring_store(config)) {}

 protected:
  /// The row in a slot of a cell; null where there is no such plane.
  [[nodiscard]] std::byte* row_at(Cell cell, trace::Plane plane, Slot slot) const noexcept {
    for (const core::StorageUse& use : memory().storages) {
      if (use.layer != cell.layer || use.plane != plane) continue;
      return const_cast<std::byte*>(use.base) + core::row_offset(config(), cell.layer, plane, cell.sequence, slot);
    }
    return nullptr;
  }
  [[nodiscard]] std::size_t row_bytes(LayerIndex layer) const noexcept {
    return geometry(layer).kv_elements() * sizeof(float);
  }
};

class WrappedLayers : public Wrapped {
 public:
  explicit WrappedLayers(const core::StoreConfig& config) : Wrapped(core::make_layered_store(config)) {}

 protected:
  [[nodiscard]] bool is_reader(LayerIndex layer) const noexcept {
    return layer < config().layers.size() && geometry(layer).donor;
  }
  [[nodiscard]] bool has_readers() const noexcept {
    for (const LayerGeometry& layer : config().layers)
      if (layer.donor) return true;
    return false;
  }
};

/// A wrapped store whose files a fault reaches into.
template <class Store>
class WithFiles : public Store, protected core::Saving {
 public:
  using Store::Store;
  [[nodiscard]] core::Saving* saving() noexcept override { return this; }

 protected:
  [[nodiscard]] Outcome<std::uint64_t> saved_bytes(SequenceId sequence) const override {
    return this->inner().saving()->saved_bytes(sequence);
  }
  Outcome<core::SavedState> save(SequenceId sequence, std::span<std::byte> out) const override {
    return this->inner().saving()->save(sequence, out);
  }
  Outcome<core::SavedState> restore(SequenceId sequence, std::span<const std::byte> file) override {
    return this->inner().saving()->restore(sequence, file);
  }
};

template <class Store>
[[nodiscard]] Mutant sink_mutant(const Fault& fault) {
  return mutant_of<Store>("sink-ring", core::sink_ring_capabilities(), fault);
}

template <class Store>
[[nodiscard]] Mutant layered_mutant(const Fault& fault) {
  return mutant_of<Store>("layered", core::layered_capabilities(), fault);
}

}  // namespace kvwitness::scenarios::mutants
