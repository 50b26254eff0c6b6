#include "stores/rows_kept.hpp"

#include <functional>

namespace kvwitness::core {
namespace {

/// The storage that a piece of memory lies in, of those that may have rows of a layer's plane; null: none.
const StorageUse* storage_of(const MemoryReport& memory, LayerIndex layer, Plane plane,
                             std::span<const std::byte> piece) noexcept {
  constexpr std::less_equal<> kNotAfter;
  const auto holds = [&](const StorageUse& use) {
    const bool is_of_layer = use.layer == layer || use.layer == trace::kNoLayer;
    const bool is_of_plane = use.plane == plane || use.plane == Plane::both;
    if (!is_of_layer || !is_of_plane || use.base == nullptr) return false;
    return kNotAfter(use.base, piece.data()) && kNotAfter(piece.data() + piece.size(), use.base + use.bytes);
  };
  const auto found = std::ranges::find_if(memory.storages, holds);
  return found != memory.storages.end() ? &*found : nullptr;
}

/// Keys before rotation, laid out as the rotated ones are in `keys`. False where they must be somewhere, but are not
/// there.
bool keep_raw(const StoreLayout& layout, const MemoryReport& memory, LayerIndex layer, const StorageUse& keys,
              std::span<const std::byte> row, KeptRows& kept) {
  const LayerGeometry& geometry = layout.config->layers[layer];
  const bool renumbers = (layout.capabilities & static_cast<std::uint64_t>(trace::Capability::renumbers)) != 0;
  bool is_found = !renumbers || !geometry.rope || geometry.by_rank;
  const auto offset = static_cast<std::uint64_t>(row.data() - keys.base);
  for (const StorageUse& raw : memory.storages) {
    const bool is_beside = raw.layer == keys.layer && raw.plane == Plane::k_raw && raw.bytes == keys.bytes;
    if (!is_beside || raw.base == nullptr) continue;
    kept.emplace_back(raw.base + offset, row.size());
    is_found = true;
  }
  return is_found;
}

}  // namespace

bool keep_run(const KvStore& store, LayerIndex layer, const Run& run, KeptRows& kept) {
  const MemoryReport memory = store.memory();
  const StoreConfig& config = *store.layout().config;
  const std::uint64_t f32 = config.layers[layer].kv_elements() * sizeof(float);
  const std::uint64_t k_bytes = run.k_code != nullptr ? k_row_bytes(config, layer) : f32;
  const std::uint64_t v_bytes = run.v_code != nullptr ? v_row_bytes(config, layer) : f32;
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const std::span<const std::byte> k(run.k_row(i), k_bytes);
    const std::span<const std::byte> v(run.v_row(i), v_bytes);
    const StorageUse* keys = storage_of(memory, layer, Plane::k, k);
    if (keys == nullptr || storage_of(memory, layer, Plane::v, v) == nullptr) return false;
    kept.push_back(k);
    kept.push_back(v);
    if (!keep_raw(store.layout(), memory, layer, *keys, k, kept)) return false;
  }
  return true;
}

Outcome<Done> KvStore::rows_kept(KeptRows& kept) const {
  const SequenceId sequences = layout().config->sequences;
  for (SequenceId sequence = 0; sequence < sequences; ++sequence) {
    const auto done = keep_sequence(*this, sequence, kept, [&](LayerIndex layer, Range range, WindowScratch& scratch) {
      return window(sequence, layer, range, scratch);
    });
    if (!done) return done;
  }
  return Done{};
}

}  // namespace kvwitness::core
