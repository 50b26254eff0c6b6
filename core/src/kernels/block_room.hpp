/// How the scratch of blocked attention is cut.
#pragma once

#include "kernels/block_kernels.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvwitness::core {

/// Queries that are computed together: their sums and a block of rows still share the second-level cache.
inline constexpr std::uint32_t kQueriesAtOnce = 8;
inline constexpr std::uint32_t kBlockKeysMax = 256;

/// What BlockKernels::score may write behind a key's scores, where a head's query rows are no whole fours.
inline constexpr std::size_t kSpareRows = 3;

/// Sizes in f32 values, each a multiple of kPartialSums.
struct BlockRoom {
  std::size_t q = 0;        ///< [query rows][padded]; the sums as much
  std::size_t scores = 0;   ///< [keys of a block][stride]
  std::size_t by_row = 0;   ///< a value for each query row, with kSpareRows, padded; also the stride of scores
  std::size_t decoded = 0;  ///< [kStreams][kv_elements]
  std::size_t padded_dim = 0;

  BlockRoom(std::uint32_t q_heads, std::uint32_t kv_heads, std::uint32_t head_dim, std::uint32_t queries) noexcept;

  /// Maximum, weight, shrink, from and to.
  static constexpr std::size_t kByRow = 5;
  [[nodiscard]] std::size_t values() const noexcept { return 2 * q + scores + kByRow * by_row + decoded; }
};

/// The room at its first address that is aligned to a cache line.
[[nodiscard]] float* aligned_room(std::span<std::byte> room) noexcept;
inline constexpr std::size_t kRoomAlignment = 64;

}  // namespace kvwitness::core
