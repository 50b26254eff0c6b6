#include "block_rows.hpp"

#include <cstring>

namespace kvwitness::core {

BlockRows::BlockRows(const StoreConfig& config, std::uint32_t blocks) : block_(config.block) {
  const std::uint64_t rows = std::uint64_t{blocks} * block_;
  for (LayerIndex layer = 0; layer < config.layers.size(); ++layer) {
    const std::uint64_t bytes = k_row_bytes(config, layer);
    layers_.push_back({bytes, Storage(rows, bytes), Storage(rows, bytes)});
    block_bytes_ += 2 * bytes * block_;
  }
}

std::vector<StorageUse> BlockRows::storages() const {
  std::vector<StorageUse> uses;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto layer = static_cast<LayerIndex>(i);
    uses.push_back({layer, Plane::k, layers_[i].k.size_bytes(), layers_[i].k.bytes().data()});
    uses.push_back({layer, Plane::v, layers_[i].v.size_bytes(), layers_[i].v.bytes().data()});
  }
  return uses;
}

void BlockRows::write(LayerIndex layer, Slot slot, std::uint32_t count, const std::byte* k,
                      const std::byte* v) noexcept {
  Layer& at = layers_[layer];
  std::memcpy(at.k.bytes().data() + slot * at.row_bytes, k, count * at.row_bytes);
  std::memcpy(at.v.bytes().data() + slot * at.row_bytes, v, count * at.row_bytes);
}

void BlockRows::copy(LayerIndex layer, const BlockRows& from, Slot from_slot, Slot to_slot,
                     std::uint32_t count) noexcept {
  Layer& at = layers_[layer];
  std::memcpy(at.k.bytes().data() + to_slot * at.row_bytes, from.k(layer, from_slot), count * at.row_bytes);
  std::memcpy(at.v.bytes().data() + to_slot * at.row_bytes, from.v(layer, from_slot), count * at.row_bytes);
}

void BlockRows::copy_block(const BlockRows& from, std::uint32_t from_block, std::uint32_t to_block) noexcept {
  for (std::size_t layer = 0; layer < layers_.size(); ++layer)
    copy(static_cast<LayerIndex>(layer), from, from_block * block_, to_block * block_, block_);
}

}  // namespace kvwitness::core
