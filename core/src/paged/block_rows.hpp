/// The rows of blocks: planes [block][row] per layer, in the pool or on the host.
#pragma once

#include "kvwitness/core/kv_store.hpp"
#include "kvwitness/core/storage.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvwitness::core {

class BlockRows {
 public:
  /// f32 rows of `blocks` blocks. Throws trace::Error where the memory cannot be had.
  BlockRows(const StoreConfig& config, std::uint32_t blocks);

  [[nodiscard]] std::uint64_t row_bytes(LayerIndex layer) const noexcept { return layers_[layer].row_bytes; }
  /// Of all layers and both sides.
  [[nodiscard]] std::uint64_t block_bytes() const noexcept { return block_bytes_; }
  [[nodiscard]] const std::byte* k(LayerIndex layer, Slot slot) const noexcept {
    return layers_[layer].k.bytes().data() + slot * layers_[layer].row_bytes;
  }
  [[nodiscard]] const std::byte* v(LayerIndex layer, Slot slot) const noexcept {
    return layers_[layer].v.bytes().data() + slot * layers_[layer].row_bytes;
  }
  /// Two of each layer: K, then V.
  [[nodiscard]] std::vector<StorageUse> storages() const;

  /// Writes rows, as they lie in memory, to `count` slots from `slot` on.
  void write(LayerIndex layer, Slot slot, std::uint32_t count, const std::byte* k, const std::byte* v) noexcept;
  /// Copies `count` rows of a layer, from any BlockRows of the same configuration.
  void copy(LayerIndex layer, const BlockRows& from, Slot from_slot, Slot to_slot, std::uint32_t count) noexcept;
  /// Copies a block's rows of all layers.
  void copy_block(const BlockRows& from, std::uint32_t from_block, std::uint32_t to_block) noexcept;

 private:
  struct Layer {
    std::uint64_t row_bytes = 0;  ///< of K, and of V
    Storage k;
    Storage v;
  };

  std::uint32_t block_;
  std::vector<Layer> layers_;
  std::uint64_t block_bytes_ = 0;
};

}  // namespace kvwitness::core
