/// Where the rows of sequences lie that are swapped out.
#pragma once

#include "block_rows.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

namespace kvwitness::core {

class HostTier {
 public:
  /// Room for config.host_blocks blocks. Throws trace::Error where the memory cannot be had.
  explicit HostTier(const StoreConfig& config)
      : rows_(config, config.host_blocks), free_(config.host_blocks), blocks_(config.host_blocks) {
    std::iota(free_.rbegin(), free_.rend(), 0U);
  }

  [[nodiscard]] std::uint32_t free_blocks() const noexcept { return static_cast<std::uint32_t>(free_.size()); }
  [[nodiscard]] std::uint32_t used_blocks() const noexcept { return blocks_ - free_blocks(); }
  [[nodiscard]] const BlockRows& rows() const noexcept { return rows_; }

  /// Copies a block's rows in, and says where. There is room.
  [[nodiscard]] std::uint32_t put(const BlockRows& from, std::uint32_t block) noexcept {
    const std::uint32_t place = free_.back();
    free_.pop_back();
    rows_.copy_block(from, block, place);
    return place;
  }
  void give_back(std::uint32_t place) noexcept { free_.push_back(place); }

 private:
  BlockRows rows_;
  std::vector<std::uint32_t> free_;  ///< the last one is taken first
  std::uint32_t blocks_;
};

}  // namespace kvwitness::core
