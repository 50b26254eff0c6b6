/// The loops of blocked attention, one set for each instruction set; all of them have the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvwitness::core {

/// Rows that the loops read as they lie.
enum class RowFormat : std::uint8_t { f32, f16, bf16, q8_0 };

/// Partial sums of a dot product, by index mod 16; rows of scratch are padded to as many values.
inline constexpr std::size_t kPartialSums = 16;
/// Keys that are read side by side: as many streams of memory.
inline constexpr std::size_t kTileKeys = 4;

/// Query rows are sorted by kv head: `rows` of them, queries times heads of a group, share one.
struct BlockShape {
  std::size_t kv_heads = 1;
  std::size_t rows = 1;
  std::size_t dim = 1;     ///< of a head
  std::size_t padded = 1;  ///< distance between rows of q and of sums: dim, up to a multiple of kPartialSums
  float scale = 1;
  float softcap = 0;

  [[nodiscard]] std::size_t all_rows() const noexcept { return kv_heads * rows; }
};

/// K or V rows of up to kTileKeys keys, and where each key's scores or weights lie. Scores are of kTileKeys keys, of
/// which some may be the same.
struct KeyTile {
  const std::byte* rows[kTileKeys] = {};
  float* scores[kTileKeys] = {};     ///< [all_rows] each
  std::uint32_t index[kTileKeys]{};  ///< of the key in its block
  std::uint32_t count = 0;           ///< keys; of `add` only
};

/// Softmax over the blocks so far, by query row; [all_rows] each, padded to kPartialSums.
struct RunningRows {
  float* max = nullptr;
  float* weight = nullptr;  ///< sum of the weights, relative to `max`
  float* shrink = nullptr;  ///< what a new maximum makes of the old weights
  float* sums = nullptr;    ///< [all_rows][padded]: weighted V rows
  /// Keys of this block that a row sees: indices [from, to), as whole numbers. Null: all rows see all keys.
  const float* from = nullptr;
  const float* to = nullptr;
};

/// A block's scores, [key][stride], and the keys in it: [from, to).
struct BlockScores {
  float* values = nullptr;
  std::size_t stride = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

struct BlockKernels {
  /// Unscaled scores of a tile for all query rows; q [all_rows][padded], padded with zeros.
  void (*score)(const BlockShape& shape, RowFormat format, const KeyTile& tile, const float* q) noexcept = nullptr;
  /// Makes weights of a block's scores, and takes the new maxima into what is summed so far.
  void (*soften)(const BlockShape& shape, const BlockScores& scores, const RunningRows& running) noexcept = nullptr;
  /// Adds the V rows of the tile's keys, in the order of the tile, to the sums of the query rows that see them.
  void (*add)(const BlockShape& shape, RowFormat format, const KeyTile& tile,
              const RunningRows& running) noexcept = nullptr;
  /// out[0..dim) = sums / weight; every NaN the same one.
  void (*finish)(const float* sums, float weight, std::size_t dim, float* out) noexcept = nullptr;
};

/// What every processor of the target runs.
[[nodiscard]] BlockKernels baseline_block_kernels() noexcept;
#if defined(__x86_64__)
/// Only for processors with AVX2 and F16C.
[[nodiscard]] BlockKernels avx2_block_kernels() noexcept;
/// Only for processors with AVX-512 F, BW, DQ and VL.
[[nodiscard]] BlockKernels avx512_block_kernels() noexcept;
#endif

}  // namespace kvwitness::core
