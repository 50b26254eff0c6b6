/// The loops of blocked attention, one set for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvwitness::core {

/// Rows that the loops read as they lie.
enum class RowFormat : std::uint8_t { f32, f16, bf16, q8_0 };

inline constexpr std::size_t kQ8Values = 32;
inline constexpr std::size_t kQ8Bytes = 34;  ///< an f16 scale, then 32 int8 (core/codes.hpp)

/// Of whole blocks of values. Static, as all functions here: the files of wide instruction sets have their own.
[[nodiscard]] static constexpr std::size_t bytes_of(RowFormat format, std::size_t values) noexcept {
  switch (format) {
    case RowFormat::f32: return values * sizeof(float);
    case RowFormat::q8_0: return values / kQ8Values * kQ8Bytes;
    default: return values * 2;
  }
}

/// Partial sums of a dot product, by index mod 16; rows of scratch are padded to as many values.
inline constexpr std::size_t kPartialSums = 16;
/// Keys that are read side by side from memory, where arithmetic is not the limit: the fewer, the better does reading
/// hide behind arithmetic (1, 2, 4 and 8, measured).
inline constexpr std::size_t kStreams = 2;

/// Keys that are computed together: the more, the less often are query rows and sums read again. Many only where rows
/// are short: long ones would not be read in order any more, nor stay in the first-level cache.
inline constexpr std::size_t kTileKeysMax = 8;
inline constexpr std::size_t kShortRowBytes = 1024;
[[nodiscard]] static constexpr std::size_t keys_together(std::size_t row_bytes) noexcept {
  return row_bytes < kShortRowBytes ? kTileKeysMax : kTileKeysMax / 2;
}

/// True where so many query rows for each value read make arithmetic the limit, not memory: more than one a byte.
[[nodiscard]] static constexpr bool is_arithmetic_bound(RowFormat format, std::size_t query_rows) noexcept {
  return query_rows * kQ8Values > bytes_of(format, kQ8Values);
}

/// Whether rows are asked for before they are used. No bit of a result depends on it.
enum class Asking : std::uint8_t {
  none,    ///< not at all: they lie in a cache, and what is asked for in vain costs a third of the time
  beside,  ///< with each value what lies `kAheadBytes` behind it in its stream
};

/// How far ahead of its use each stream is asked for, in bytes: the best of 512 to 8192, measured.
inline constexpr std::size_t kAheadBytes = 4096;
inline constexpr std::size_t kLineBytes = 64;

/// Asks for a line of memory, which need not be there. Always inline, since GCC 12 drops calls of functions that do
/// nothing else.
[[gnu::always_inline]] static inline void prefetch(const std::byte* row, std::uintptr_t offset) noexcept {
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(row) + offset));
}

/// Where the streams of memory begin that are read next, and how much of each is asked for while weights are computed.
struct Streams {
  const std::byte* at[kStreams] = {};
  std::size_t lines = 0;  ///< of each
};
/// Together they still fit the first-level cache.
inline constexpr std::size_t kSoftenLines = (std::size_t{16} << 10) / kLineBytes;

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

/// Keys of a block, and how they are walked: place i, of `places` from `first` on, has a key in each of `streams`, i,
/// i + apart, ..., of those in [from, to). So keys are read from as many streams of memory, each of them in order.
struct KeyWalk {
  const std::byte* const* rows = nullptr;  ///< [key] K or V rows
  float* scores = nullptr;                 ///< [key][stride]: scores or weights, by query row
  std::size_t stride = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t first = 0;
  std::uint32_t places = 0;
  std::uint32_t streams = kStreams;
  std::uint32_t apart = 1;
  Asking asking = Asking::beside;
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
  /// place is there. Up to kSpareRows values (block_room.hpp) behind a
  /// key's scores are written as well.
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
