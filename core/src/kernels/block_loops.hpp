/// Templates behind BlockKernels. Included by one file for each instruction set, which is compiled with that set's
/// flags: so everything here is a template on the set, or two files would define one symbol with different code. For
/// the same reason nothing of std:: is called.
///
/// Nothing that a bit depends on follows the width of a batch: a score is 16 partial sums by index mod 16, folded in
/// halves (8, 4, 2, 1); softmax and weighted sums are one chain for each query row and element, in the order of keys.
/// So sets whose multiplications and additions are fused have the same bits, and so have the others. Which are fused is
/// written down here (`Fused`), not left to the compiler.
#pragma once

#include "kernels/block_kernels.hpp"
#include "kernels/row_loads.hpp"
#include "kernels/vector_math.hpp"

#include <xsimd/xsimd.hpp>

#include <cstring>
#include <limits>

namespace kvwitness::core {

/// How many query rows share what is loaded into registers, and how partial sums are folded.
template <class Arch>
struct Registers {
  using Batch = xsimd::batch<float, Arch>;
  static constexpr std::size_t kParts = kPartialSums / Batch::size;
  static constexpr std::size_t kScoreRows = 4;
  static constexpr std::size_t kScoreKeysMax = kTileKeys;
  static constexpr std::size_t kAddRows = 2;
  static constexpr std::size_t kAddParts = 4;

  /// Keeps a value in its register: of two keys' tiles GCC 12 would load it again for each use. Where there are more
  /// keys it does not, and this would cost registers.
  static void keep(Batch&) noexcept {}

  /// Totals of partial sums [part][row][key] of the tile's keys from `key` on, those of a key side by side at to[key].
  template <std::size_t key, std::size_t rows, std::size_t keys>
  static void fold(const Batch (&sums)[kParts][rows][keys], float* const (&to)[keys]) noexcept {
    for (std::size_t at = key; at < key + kTileKeys; ++at) {
      for (std::size_t row = 0; row < rows; ++row) {
        float lanes[kPartialSums];
        for (std::size_t part = 0; part < kParts; ++part)
          sums[part][row][at].store_unaligned(lanes + part * Batch::size);
        for (std::size_t half = kPartialSums / 2; half > 0; half /= 2)
          for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
        to[at][row] = lanes[0];
      }
    }
  }
};

template <class Arch>
struct BlockLoops {
  using Batch = xsimd::batch<float, Arch>;
  using Mask = xsimd::batch_bool<float, Arch>;
  using Fit = Registers<Arch>;
  static constexpr std::size_t kSize = Batch::size;
  static constexpr float kNoScore = -std::numeric_limits<float>::infinity();

  /// Keys of one tile or of two.
  struct Tile {
    const std::byte* rows[kTileKeysMax];
    float* scores[kTileKeysMax];
    std::uint32_t index[kTileKeysMax];
    std::size_t count = 0;
    std::uintptr_t ahead = 0;  ///< bytes from what is read to what is asked for

    void put(const KeyWalk& walk, std::uint32_t key) noexcept {
      rows[count] = walk.rows[key];
      scores[count] = walk.scores + key * walk.stride;
      index[count] = key;
      ++count;
    }
  };

  /// Says how far ahead of a tile its streams are asked for. Where rows do not follow one another in memory, as at the
  /// end of a page, the rows that come then are asked for at once instead.
  class LookAhead {
   public:
    LookAhead(const KeyWalk& walk, std::size_t row_bytes) noexcept
        : walk_(walk), row_bytes_(row_bytes), rows_(static_cast<std::uint32_t>(kAheadBytes / row_bytes)) {}

    void from(Tile& tile) const noexcept {
      bool is_straight = true;
      for (std::size_t i = 0; i < tile.count; ++i)
        is_straight &= !has_later(tile, i) || later(tile, i) == tile.rows[i] + rows_ * row_bytes_;
      tile.ahead = is_straight ? kAheadBytes : 0;
      if (!is_straight) ask_for_later(tile);
    }

   private:
    [[nodiscard]] bool has_later(const Tile& tile, std::size_t i) const noexcept {
      return rows_ < walk_.to - tile.index[i];
    }
    [[nodiscard]] const std::byte* later(const Tile& tile, std::size_t i) const noexcept {
      return walk_.rows[tile.index[i] + rows_];
    }
    /// Inline, since GCC 12 drops calls of functions that do nothing but prefetch.
    [[gnu::always_inline]] void ask_for_later(const Tile& tile) const noexcept {
      for (std::size_t i = 0; i < tile.count; ++i)
        for (std::size_t line = 0; has_later(tile, i) && line < row_bytes_; line += kLineBytes)
          __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(later(tile, i)) + line));
    }

    const KeyWalk& walk_;
    std::size_t row_bytes_;
    std::uint32_t rows_;
  };

  // ---- scores -------------------------------------------------------------------------------------------------------

  /// Dot products of `rows` query rows from `first` on with `keys` keys, whose head begins at `element`.
  template <RowFormat format, std::size_t rows, std::size_t keys>
  static void score_rows(const BlockShape& shape, const Tile& tile, std::size_t element, const float* q,
                         std::size_t first) noexcept {
    using Loads = RowLoads<Arch, format>;
    // What is read again and again is kept out of memory that a store might be thought to change.
    const std::size_t dim = shape.dim;
    const std::size_t whole = dim / kPartialSums * kPartialSums;
    const std::byte* k_row[keys];
    const std::uintptr_t ahead = tile.ahead;
    float* to[keys];
    const float* q_row[rows];
    for (std::size_t key = 0; key < keys; ++key) {
      k_row[key] = tile.rows[key];
      to[key] = tile.scores[key] + first;
    }
    for (std::size_t row = 0; row < rows; ++row) q_row[row] = q + (first + row) * shape.padded;
    Batch sums[Fit::kParts][rows][keys];
    for (std::size_t part = 0; part < Fit::kParts; ++part) {
      Batch sum[rows][keys];
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t key = 0; key < keys; ++key) sum[row][key] = Batch(0.0F);
      const auto step = [&](std::size_t d, const Batch(&k)[keys]) {
        for (std::size_t row = 0; row < rows; ++row) {
          Batch query = Batch::load_unaligned(q_row[row] + d);
          if constexpr (keys == kTileKeys) Fit::keep(query);
          for (std::size_t key = 0; key < keys; ++key) sum[row][key] = Fused<Arch>::add(query, k[key], sum[row][key]);
        }
      };
      for (std::size_t d = part * kSize; d < whole; d += kPartialSums) {
        Batch k[keys];
        for (std::size_t key = 0; key < keys; ++key) k[key] = Loads::stream(k_row[key], element + d, ahead);
        if constexpr (keys == kTileKeys)
          for (std::size_t key = 0; key < keys; ++key) Fit::keep(k[key]);
        step(d, k);
      }
      if (const std::size_t d = whole + part * kSize; d < dim) {
        Batch k[keys];
        for (std::size_t key = 0; key < keys; ++key) k[key] = Loads::load_some(k_row[key], element + d, dim - d);
        step(d, k);
      }
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t key = 0; key < keys; ++key) sums[part][row][key] = sum[row][key];
    }
    Fit::template fold<0>(sums, to);
    if constexpr (keys > kTileKeys) Fit::template fold<kTileKeys>(sums, to);
  }

  template <RowFormat format, std::size_t keys>
  static void score_tile(const BlockShape& shape, const Tile& tile, const float* q) noexcept {
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      const std::size_t element = head * shape.dim;
      std::size_t row = head * shape.rows;
      const std::size_t end = row + shape.rows;
      for (; row + Fit::kScoreRows <= end; row += Fit::kScoreRows)
        score_rows<format, Fit::kScoreRows, keys>(shape, tile, element, q, row);
      switch (end - row) {
        case 3: score_rows<format, 3, keys>(shape, tile, element, q, row); break;
        case 2: score_rows<format, 2, keys>(shape, tile, element, q, row); break;
        case 1: score_rows<format, 1, keys>(shape, tile, element, q, row); break;
        default: break;
      }
    }
  }

  template <RowFormat format, std::size_t keys>
  static void score_keys(const BlockShape& shape, const KeyWalk& walk, const float* q) noexcept {
    constexpr auto kTiles = static_cast<std::uint32_t>(keys / kTileKeys);
    const std::uint32_t end = walk.first + walk.tiles;
    const LookAhead ahead(walk, RowLoads<Arch, format>::bytes(shape.kv_heads * shape.dim));
    for (std::uint32_t i = walk.first; i < end; i += kTiles) {
      Tile tile;
      // Missing keys repeat the first one, whose scores are then written again, the same ones.
      for (std::uint32_t at = i; at < i + kTiles; ++at)
        for (std::uint32_t slot = 0; slot < kTileKeys; ++slot) {
          const std::uint32_t key = at + slot * walk.apart;
          tile.put(walk, at < end && key < walk.to ? key : i);
        }
      ahead.from(tile);
      score_tile<format, keys>(shape, tile, q);
    }
  }

  template <RowFormat format>
  static void score_walk(const BlockShape& shape, const KeyWalk& walk, const float* q) noexcept {
    if (RowLoads<Arch, format>::is_arithmetic_bound(shape.rows))
      score_keys<format, Fit::kScoreKeysMax>(shape, walk, q);
    else
      score_keys<format, kTileKeys>(shape, walk, q);
  }

  static void score(const BlockShape& shape, RowFormat format, const KeyWalk& walk, const float* q) noexcept {
    switch (format) {
      case RowFormat::f32: return score_walk<RowFormat::f32>(shape, walk, q);
      case RowFormat::f16: return score_walk<RowFormat::f16>(shape, walk, q);
      case RowFormat::bf16: return score_walk<RowFormat::bf16>(shape, walk, q);
      case RowFormat::q8_0: return score_walk<RowFormat::q8_0>(shape, walk, q);
    }
  }

  // ---- weights ------------------------------------------------------------------------------------------------------

  /// Asks for the streams that are read next, a line of each in turn, so that memory is not idle while weights are
  /// computed.
  class AskAhead {
   public:
    explicit AskAhead(const Streams& streams) noexcept : streams_(streams) {}
    void ask() noexcept {
      if (lines_ == kTileKeys * kSoftenBytes / kLineBytes) return;
      const auto at = reinterpret_cast<std::uintptr_t>(streams_.at[lines_ % kTileKeys]);
      __builtin_prefetch(reinterpret_cast<const void*>(at + lines_ / kTileKeys * kLineBytes));
      ++lines_;
    }

   private:
    const Streams streams_;
    std::size_t lines_ = 0;
  };

  template <bool capped>
  static Batch scaled(const BlockShape& shape, const Batch& score) noexcept {
    const Batch s = score * Batch(shape.scale);
    if constexpr (!capped) return s;
    return Batch(shape.softcap) * VectorMath<Arch>::tanh(s / Batch(shape.softcap));
  }

  /// Scales, caps and masks the scores of the query rows from `row` on, and gives their maxima. Masked ones are -inf,
  /// and so weigh nothing and change no sum.
  template <bool capped, bool masked>
  static Batch scale_scores(const BlockShape& shape, const BlockScores& scores, const RunningRows& running,
                            std::size_t row, AskAhead& ahead) noexcept {
    const std::size_t stride = scores.stride;
    float* at = scores.values + scores.from * stride + row;
    Batch max = Batch::load_unaligned(running.max + row);
    for (std::uint32_t key = scores.from; key < scores.to; ++key, at += stride) {
      ahead.ask();
      Batch s = scaled<capped>(shape, Batch::load_unaligned(at));
      if constexpr (masked) {
        const Batch index(static_cast<float>(key));
        const Mask is_behind = Batch::load_unaligned(running.from + row) <= index;
        const Mask seen =
            (is_behind | (index < Batch(running.sinks))) & (index < Batch::load_unaligned(running.to + row));
        s = xsimd::select(seen, s, Batch(kNoScore));
      }
      s.store_unaligned(at);
      max = xsimd::max(s, max);
    }
    return max;
  }

  /// exp(score - max). A score of -inf weighs nothing also where the maximum is -inf; equal scores weigh 1 also at
  /// +inf.
  template <bool infinite>
  static Batch weight_of(const Batch& score, const Batch& max) noexcept {
    const Batch weight = VectorMath<Arch>::exp(score - max);
    if constexpr (!infinite) return weight;
    return xsimd::select(score == Batch(kNoScore), Batch(0.0F), xsimd::select(score == max, Batch(1.0F), weight));
  }

  /// Makes weights of the scores of the query rows from `row` on, and gives their sum, added to `sum` in order.
  template <bool infinite>
  static Batch weigh(const BlockScores& scores, std::size_t row, const Batch& max, Batch sum,
                     AskAhead& ahead) noexcept {
    const std::size_t stride = scores.stride;
    float* at = scores.values + scores.from * stride + row;
    for (std::uint32_t key = scores.from; key < scores.to; ++key, at += stride) {
      ahead.ask();
      const Batch weight = weight_of<infinite>(Batch::load_unaligned(at), max);
      weight.store_unaligned(at);
      sum = sum + weight;
    }
    return sum;
  }

  template <bool capped, bool masked>
  static void soften_rows(const BlockShape& shape, const BlockScores& scores, const RunningRows& running,
                          std::size_t row, AskAhead& ahead) noexcept {
    const Batch old_max = Batch::load_unaligned(running.max + row);
    const Batch max = scale_scores<capped, masked>(shape, scores, running, row, ahead);
    const Batch shrink = xsimd::select(max == old_max, Batch(1.0F), VectorMath<Arch>::exp(old_max - max));
    const Batch sum = Batch::load_unaligned(running.weight + row) * shrink;
    const bool infinite = xsimd::any(xsimd::abs(max) == Batch(-kNoScore));
    (infinite ? weigh<true>(scores, row, max, sum, ahead) : weigh<false>(scores, row, max, sum, ahead))
        .store_unaligned(running.weight + row);
    max.store_unaligned(running.max + row);
    shrink.store_unaligned(running.shrink + row);
  }

  template <bool capped>
  static void soften_all(const BlockShape& shape, const BlockScores& scores, const RunningRows& running) noexcept {
    AskAhead ahead(scores.ahead);
    for (std::size_t row = 0; row < shape.all_rows(); row += kSize) {
      if (running.from == nullptr)
        soften_rows<capped, false>(shape, scores, running, row, ahead);
      else
        soften_rows<capped, true>(shape, scores, running, row, ahead);
    }
  }

  static void soften(const BlockShape& shape, const BlockScores& scores, const RunningRows& running) noexcept {
    if (shape.softcap > 0)
      soften_all<true>(shape, scores, running);
    else
      soften_all<false>(shape, scores, running);
    for (std::size_t row = 0; row < shape.all_rows(); ++row) {
      if (running.shrink[row] == 1.0F) continue;
      const Batch shrink(running.shrink[row]);
      float* const sums = running.sums + row * shape.padded;
      for (std::size_t d = 0; d < shape.padded; d += kSize)
        (Batch::load_unaligned(sums + d) * shrink).store_unaligned(sums + d);
    }
  }

  // ---- weighted sums ------------------------------------------------------------------------------------------------

  /// Adds the V rows of `keys` keys of the tile, from `first_key` on, to `rows` sums.
  template <RowFormat format, std::size_t rows, std::size_t keys>
  static void add_rows(const BlockShape& shape, const Tile& tile, std::size_t first_key, std::size_t element,
                       float* sums, std::size_t first) noexcept {
    using Loads = RowLoads<Arch, format>;
    const std::size_t dim = shape.dim;
    const std::byte* v_row[keys];
    const std::uintptr_t ahead = tile.ahead;
    float* sum_row[rows];
    Batch weights[rows][keys];
    for (std::size_t key = 0; key < keys; ++key) v_row[key] = tile.rows[first_key + key];
    for (std::size_t row = 0; row < rows; ++row) sum_row[row] = sums + (first + row) * shape.padded;
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t key = 0; key < keys; ++key) weights[row][key] = Batch(tile.scores[first_key + key][first + row]);
    const auto step = [&](std::size_t d, const Batch(&v)[keys]) {
      for (std::size_t row = 0; row < rows; ++row) {
        Batch sum = Batch::load_unaligned(sum_row[row] + d);
        for (std::size_t key = 0; key < keys; ++key) sum = Fused<Arch>::add(weights[row][key], v[key], sum);
        sum.store_unaligned(sum_row[row] + d);
      }
    };
    const std::size_t whole = dim / kSize * kSize;
    for (std::size_t d = 0; d < whole; d += kSize) {
      Batch v[keys];
      for (std::size_t key = 0; key < keys; ++key) v[key] = Loads::stream(v_row[key], element + d, ahead);
      step(d, v);
    }
    if (whole == dim) return;
    Batch v[keys];
    for (std::size_t key = 0; key < keys; ++key) v[key] = Loads::load_some(v_row[key], element + whole, dim - whole);
    step(whole, v);
  }

  /// As add_rows, of all the tile's keys to heads of whole strips, `parts` batches each, which stay in registers
  /// meanwhile: of more than four keys this costs less than loading and storing each sum for every four.
  template <RowFormat format, std::size_t rows, std::size_t parts>
  static void add_strips(const BlockShape& shape, const Tile& tile, std::size_t element, float* sums,
                         std::size_t first) noexcept {
    using Loads = RowLoads<Arch, format>;
    const std::uintptr_t ahead = tile.ahead;
    const std::size_t padded = shape.padded;
    for (std::size_t d = 0; d < shape.dim; d += parts * kSize) {
      float* const to = sums + first * padded + d;
      Batch sum[rows][parts];
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t part = 0; part < parts; ++part)
          sum[row][part] = Batch::load_unaligned(to + row * padded + part * kSize);
      for (std::size_t key = 0; key < tile.count; ++key) {
        const float* const weights = tile.scores[key] + first;
        Batch weight[rows];
        for (std::size_t row = 0; row < rows; ++row) weight[row] = Batch(weights[row]);
        for (std::size_t part = 0; part < parts; ++part) {
          const Batch v = Loads::stream(tile.rows[key], element + d + part * kSize, ahead);
          for (std::size_t row = 0; row < rows; ++row)
            sum[row][part] = Fused<Arch>::add(weight[row], v, sum[row][part]);
        }
      }
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t part = 0; part < parts; ++part)
          sum[row][part].store_unaligned(to + row * padded + part * kSize);
    }
  }

  static bool sees(const RunningRows& running, std::size_t row, std::uint32_t index) noexcept {
    const auto at = static_cast<float>(index);
    return running.from == nullptr || ((running.from[row] <= at || at < running.sinks) && at < running.to[row]);
  }

  static bool all_see(const RunningRows& running, std::size_t first, std::size_t rows, const Tile& tile) noexcept {
    if (running.from == nullptr) return true;
    for (std::size_t row = first; row < first + rows; ++row)
      for (std::size_t key = 0; key < tile.count; ++key)
        if (!sees(running, row, tile.index[key])) return false;
    return true;
  }

  template <RowFormat format, std::size_t rows>
  static void add_all(const BlockShape& shape, const Tile& tile, std::size_t element, float* sums,
                      std::size_t first) noexcept {
    constexpr std::size_t kAtOnce = 2 * kTileKeys;
    if (tile.count > kAtOnce && shape.dim % (Fit::kAddParts * kSize) == 0)
      return add_strips<format, rows, Fit::kAddParts>(shape, tile, element, sums, first);
    for (std::size_t key = 0; key < tile.count; key += kAtOnce) {
      switch (tile.count - key) {
        case 1: add_rows<format, rows, 1>(shape, tile, key, element, sums, first); break;
        case 2: add_rows<format, rows, 2>(shape, tile, key, element, sums, first); break;
        case 3: add_rows<format, rows, 3>(shape, tile, key, element, sums, first); break;
        default: add_rows<format, rows, kAtOnce>(shape, tile, key, element, sums, first); break;
      }
    }
  }

  template <RowFormat format, std::size_t rows>
  static void add_seen(const BlockShape& shape, const Tile& tile, std::size_t element, const RunningRows& running,
                       std::size_t first) noexcept {
    if (all_see(running, first, rows, tile)) return add_all<format, rows>(shape, tile, element, running.sums, first);
    for (std::size_t key = 0; key < tile.count; ++key)
      for (std::size_t row = first; row < first + rows; ++row)
        if (sees(running, row, tile.index[key])) add_rows<format, 1, 1>(shape, tile, key, element, running.sums, row);
  }

  template <RowFormat format>
  static void add_tile(const BlockShape& shape, const Tile& tile, const RunningRows& running) noexcept {
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      const std::size_t element = head * shape.dim;
      std::size_t row = head * shape.rows;
      const std::size_t end = row + shape.rows;
      for (; row + Fit::kAddRows <= end; row += Fit::kAddRows)
        add_seen<format, Fit::kAddRows>(shape, tile, element, running, row);
      switch (end - row) {
        case 3: add_seen<format, 3>(shape, tile, element, running, row); break;
        case 2: add_seen<format, 2>(shape, tile, element, running, row); break;
        case 1: add_seen<format, 1>(shape, tile, element, running, row); break;
        default: break;
      }
    }
  }

  template <RowFormat format>
  static void add_walk(const BlockShape& shape, const KeyWalk& walk, const RunningRows& running) noexcept {
    // Where a part of the block is missing, keys of the next tile fill this one up: that changes no order.
    Tile tile;
    const std::size_t row_bytes = RowLoads<Arch, format>::bytes(shape.kv_heads * shape.dim);
    const std::size_t most =
        RowLoads<Arch, format>::is_arithmetic_bound(shape.rows) ? keys_together(row_bytes) : kTileKeys;
    const LookAhead ahead(walk, row_bytes);
    for (std::uint32_t i = walk.first; i < walk.first + walk.tiles; ++i) {
      for (std::uint32_t slot = 0; slot < kTileKeys; ++slot) {
        const std::uint32_t key = i + slot * walk.apart;
        if (key < walk.from || key >= walk.to) continue;
        tile.put(walk, key);
        if (tile.count < most) continue;
        ahead.from(tile);
        add_tile<format>(shape, tile, running);
        tile.count = 0;
      }
    }
    if (tile.count == 0) return;
    ahead.from(tile);
    add_tile<format>(shape, tile, running);
  }

  static void add(const BlockShape& shape, RowFormat format, const KeyWalk& walk, const RunningRows& running) noexcept {
    switch (format) {
      case RowFormat::f32: return add_walk<RowFormat::f32>(shape, walk, running);
      case RowFormat::f16: return add_walk<RowFormat::f16>(shape, walk, running);
      case RowFormat::bf16: return add_walk<RowFormat::bf16>(shape, walk, running);
      case RowFormat::q8_0: return add_walk<RowFormat::q8_0>(shape, walk, running);
    }
  }

  static void finish(const float* sums, float weight, std::size_t dim, float* out) noexcept {
    const Batch divisor(weight);
    const auto quotient = [&](std::size_t d) {
      const Batch value = Batch::load_unaligned(sums + d) / divisor;
      // Which NaN an operation gives differs by the order of its operands.
      return xsimd::select(value == value, value, Batch(std::numeric_limits<float>::quiet_NaN()));
    };
    std::size_t d = 0;
    for (; d + kSize <= dim; d += kSize) quotient(d).store_unaligned(out + d);
    if (d == dim) return;
    float rest[kSize];
    quotient(d).store_unaligned(rest);
    std::memcpy(out + d, rest, (dim - d) * sizeof(float));
  }

  static constexpr BlockKernels kernels() noexcept { return {&score, &soften, &add, &finish}; }
};

}  // namespace kvwitness::core
