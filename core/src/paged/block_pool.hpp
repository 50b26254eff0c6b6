/// The blocks of a paged store: which are free, held by how many sequences, or cached. It knows no rows.
#pragma once

#include "change_log.hpp"
#include "prefix_index.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kvwitness::core {

class BlockPool {
 public:
  /// `log` outlives the pool; every change of a block is told there.
  BlockPool(std::uint32_t blocks, ChangeLog& log);

  [[nodiscard]] std::uint32_t free_blocks() const noexcept { return static_cast<std::uint32_t>(free_.size()); }
  [[nodiscard]] std::uint32_t cached_blocks() const noexcept { return cached_; }
  [[nodiscard]] std::uint32_t held_blocks() const noexcept {
    return static_cast<std::uint32_t>(blocks_.size()) - free_blocks() - cached_blocks();
  }
  /// Blocks that could be taken now.
  [[nodiscard]] std::uint32_t takeable() const noexcept { return free_blocks() + cached_blocks(); }

  [[nodiscard]] std::uint32_t holders(std::uint32_t block) const noexcept { return blocks_[block].holders; }
  [[nodiscard]] bool is_published(std::uint32_t block) const noexcept { return blocks_[block].hash != 0; }
  /// Allocations of the block so far.
  [[nodiscard]] std::uint64_t epoch(std::uint32_t block) const noexcept { return blocks_[block].epoch; }
  /// The block that was published under a hash.
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint64_t hash) const noexcept { return prefixes_.find(hash); }

  /// Takes a free block, or the one that was cached longest ago. One of them is there.
  [[nodiscard]] std::uint32_t take(SequenceId holder) noexcept;
  /// Adds a holder to a block that is held or cached.
  void hold(std::uint32_t block, SequenceId holder) noexcept;
  /// Takes a holder away; a block without holders is cached where it was published, else free.
  void release(std::uint32_t block, SequenceId holder) noexcept;
  /// Makes a block findable that is held and full, under a hash that is not found.
  void publish(std::uint32_t block, std::uint64_t hash) noexcept;

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;

  struct Block {
    std::uint32_t holders = 0;
    std::uint32_t older = kNone;  ///< neighbours among the cached ones
    std::uint32_t newer = kNone;
    std::uint64_t hash = 0;  ///< that it was published under; 0: it was not
    std::uint64_t epoch = 0;
  };

  void cache(std::uint32_t block) noexcept;
  void uncache(std::uint32_t block) noexcept;
  void free(std::uint32_t block) noexcept;

  ChangeLog* log_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> free_;  ///< the last one is taken first
  PrefixIndex prefixes_;
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
  std::uint32_t cached_ = 0;
};

}  // namespace kvwitness::core
