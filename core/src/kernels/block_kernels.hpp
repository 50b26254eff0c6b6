/// The loops of blocked attention, one set for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvwitness::core {

/// Rows that the loops read as they lie.
enum class RowFormat : std::uint8_t { f32, f16, bf16, q8_0 };

/// Partial sums of a dot product, by index mod 16; rows of scratch are padded to as many values.
inline constexpr std::size_t kPartialSums = 16;
/// Keys that are read side by side: as many streams of memory. More would share what is read again for each tile, query
/// rows and sums, among more keys; but the fewer streams, the better does reading hide behind arithmetic, and of those
/// rows that come from memory this counts for more (1, 2, 4 and 8, measured).
inline constexpr std::size_t kTileKeys = 2;

/// Keys of tiles that follow one another, which are computed together where arithmetic is the limit: so query rows and
/// sums are read less often. More than those of two tiles only where rows are short: long ones would not be read in
/// order any more.
inline constexpr std::size_t kTileKeysMax = 4 * kTileKeys;
inline constexpr std::size_t kShortRowBytes = 1024;
[[nodiscard]] constexpr std::size_t keys_together(std::size_t row_bytes) noexcept {
  return row_bytes < kShortRowBytes ? kTileKeysMax : 2 * kTileKeys;
}

/// How far ahead of its use each stream is asked for, in bytes: the best of 512 to 8192, measured.
inline constexpr std::size_t kAheadBytes = 4096;
inline constexpr std::size_t kLineBytes = 64;
/// How much of each stream is asked for while weights are computed, at most: together they still fit the first-level
/// cache.
inline constexpr std::size_t kSoftenBytes = std::size_t{16} << 10;

/// Where the streams of memory begin that are read next.
struct Streams {
  const std::byte* at[kTileKeys] = {};
};

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

/// Keys of a block, and how they are walked: tile i, of `tiles` from `first` on, has the keys i, i + apart, ... of
/// those in [from, to), kTileKeys at most. So each tile reads from as many streams of memory, each of them in order.
struct KeyWalk {
  const std::byte* const* rows = nullptr;  ///< [key] K or V rows
  float* scores = nullptr;                 ///< [key][stride]: scores or weights, by query row
  std::size_t stride = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t first = 0;
  std::uint32_t tiles = 0;
  std::uint32_t apart = 1;
};

/// Softmax over the blocks so far, by query row; [all_rows] each, padded to kPartialSums.
struct RunningRows {
  float* max = nullptr;
  float* weight = nullptr;  ///< sum of the weights, relative to `max`
  float* shrink = nullptr;  ///< what a new maximum makes of the old weights
  float* sums = nullptr;    ///< [all_rows][padded]: weighted V rows
  /// Keys of this block that a row sees: indices [from, to) and, below `to`, those below `sinks`, as whole numbers.
  /// Null: all rows see all keys.
  const float* from = nullptr;
  const float* to = nullptr;
  float sinks = 0;
};

/// A block's scores, [key][stride], and the keys in it: [from, to).
struct BlockScores {
  float* values = nullptr;
  std::size_t stride = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  Streams ahead;
};

struct BlockKernels {
  /// Unscaled scores of the keys for all query rows; q [all_rows][padded], padded with zeros. The first key of each
  /// tile is there.
  void (*score)(const BlockShape& shape, RowFormat format, const KeyWalk& walk, const float* q) noexcept = nullptr;
  /// Makes weights of a block's scores, and takes the new maxima into what is summed so far.
  void (*soften)(const BlockShape& shape, const BlockScores& scores, const RunningRows& running) noexcept = nullptr;
  /// Adds the keys' V rows, tile by tile in order, to the sums of the query rows that see them.
  void (*add)(const BlockShape& shape, RowFormat format, const KeyWalk& walk,
              const RunningRows& running) noexcept = nullptr;
  /// out[0..dim) = sums / weight; every NaN the same one.
  void (*finish)(const float* sums, float weight, std::size_t dim, float* out) noexcept = nullptr;
};

/// What every processor of the target runs.
[[nodiscard]] BlockKernels baseline_block_kernels() noexcept;
#if defined(__x86_64__)
/// Only for processors with AVX2, FMA and F16C.
[[nodiscard]] BlockKernels avx2_block_kernels() noexcept;
/// Only for processors with AVX-512 F, BW, DQ and VL.
[[nodiscard]] BlockKernels avx512_block_kernels() noexcept;
#endif

}  // namespace kvwitness::core
