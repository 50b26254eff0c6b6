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
  static constexpr std::size_t kScoreKeysMax = kStreams;
  static constexpr std::size_t kAddRows = 2;
  static constexpr std::size_t kAddParts = 4;

  /// Keeps a value in its register: GCC 12 would load it again for each use.
  static void keep(Batch&) noexcept {}

  /// Totals of partial sums [part][row][key], those of a key side by side at to[key].
  template <std::size_t rows, std::size_t keys>
  [[gnu::always_inline]] static void fold(const Batch (&sums)[kParts][rows][keys], float* const* to) noexcept {
    for (std::size_t key = 0; key < keys; ++key) {
      for (std::size_t row = 0; row < rows; ++row) {
        float lanes[kPartialSums];
        for (std::size_t part = 0; part < kParts; ++part)
          sums[part][row][key].store_unaligned(lanes + part * Batch::size);
        for (std::size_t half = kPartialSums / 2; half > 0; half /= 2)
          for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
        to[key][row] = lanes[0];
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

  /// Keys that are computed together.
  struct Tile {
    const std::byte* rows[kTileKeysMax];
    float* scores[kTileKeysMax];
    std::uint32_t index[kTileKeysMax];
    std::size_t count = 0;
    std::uintptr_t beside = 0;  ///< bytes from what is read to what is asked for beside it

    void put(const KeyWalk& walk, std::uint32_t key) noexcept {
      rows[count] = walk.rows[key];
      scores[count] = walk.scores + key * walk.stride;
      index[count] = key;
      ++count;
    }
  };

  /// Asking::none.
  struct AskNothing {
    static constexpr bool kBeside = false;
    AskNothing(const KeyWalk&, std::size_t) noexcept {}
    void begin(Tile&) const noexcept {}
  };

  /// Asking::beside: where rows do not follow one another in memory, as at the end of a page, the rows that come then
  /// are asked for at once instead.
  class AskBeside {
   public:
    static constexpr bool kBeside = true;
    AskBeside(const KeyWalk& walk, std::size_t row_bytes) noexcept
        : walk_(walk), row_bytes_(row_bytes), rows_(static_cast<std::uint32_t>(kAheadBytes / row_bytes)) {}

    void begin(Tile& tile) const noexcept {
      bool is_straight = true;
      for (std::size_t i = 0; i < tile.count; ++i)
        is_straight &= !has_later(tile, i) || later(tile, i) == tile.rows[i] + rows_ * row_bytes_;
      tile.beside = is_straight ? kAheadBytes : 0;
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
          prefetch(later(tile, i), line);
    }

    const KeyWalk& walk_;
    std::size_t row_bytes_;
    std::uint32_t rows_;
  };

  // ---- scores -------------------------------------------------------------------------------------------------------

  /// A tile in registers, for one head after the other: what is read again and again is kept out of memory that a
  /// store might be thought to change.
  template <std::size_t keys>
  struct ScoreTile {
    const std::byte* rows[keys];
    float* scores[keys];
    std::uintptr_t beside;
    std::size_t dim;
    std::size_t padded;
    std::size_t element = 0;   ///< where the head begins
    const float* q = nullptr;  ///< the next query row

    [[gnu::always_inline]] ScoreTile(const BlockShape& shape, const Tile& tile, const float* first) noexcept
        : beside(tile.beside), dim(shape.dim), padded(shape.padded), q(first) {
      for (std::size_t key = 0; key < keys; ++key) rows[key] = tile.rows[key], scores[key] = tile.scores[key];
    }
    [[gnu::always_inline]] void next_rows(std::size_t count) noexcept {
      q += count * padded;
      for (std::size_t key = 0; key < keys; ++key) scores[key] += count;
    }
  };

  /// Dot products of the next `count` query rows with the keys.
  template <RowFormat format, std::size_t count, std::size_t keys, bool beside, bool ragged>
  [[gnu::always_inline]] static void score_rows(ScoreTile<keys>& tile) noexcept {
    using Loads = RowLoads<Arch, format>;
    const std::size_t whole = ragged ? tile.dim / kPartialSums * kPartialSums : tile.dim;
    Batch sums[Fit::kParts][count][keys];
    for (std::size_t part = 0; part < Fit::kParts; ++part) {
      Batch sum[count][keys];
      for (std::size_t row = 0; row < count; ++row)
        for (std::size_t key = 0; key < keys; ++key) sum[row][key] = Batch(0.0F);
      const auto step = [&](std::size_t d, const Batch(&k)[keys]) {
        for (std::size_t row = 0; row < count; ++row) {
          Batch query = Batch::load_unaligned(tile.q + row * tile.padded + d);
          Fit::keep(query);
          for (std::size_t key = 0; key < keys; ++key) sum[row][key] = Fused<Arch>::add(query, k[key], sum[row][key]);
        }
      };
      for (std::size_t d = part * kSize; d < whole; d += kPartialSums) {
        Batch k[keys];
        for (std::size_t key = 0; key < keys; ++key) {
          k[key] = beside ? Loads::stream(tile.rows[key], tile.element + d, tile.beside)
                          : Loads::load(tile.rows[key], tile.element + d);
          Fit::keep(k[key]);
        }
        step(d, k);
      }
      if (const std::size_t d = whole + part * kSize; ragged && d < tile.dim) {
        Batch k[keys];
        for (std::size_t key = 0; key < keys; ++key)
          k[key] = Loads::load_some(tile.rows[key], tile.element + d, tile.dim - d);
        step(d, k);
      }
      for (std::size_t row = 0; row < count; ++row)
        for (std::size_t key = 0; key < keys; ++key) sums[part][row][key] = sum[row][key];
    }
    Fit::fold(sums, tile.scores);
    tile.next_rows(count);
  }

  /// All heads of a tile; each has `count` query rows, or more where `more`.
  template <RowFormat format, std::size_t count, std::size_t keys, bool beside, bool ragged, bool more = false>
  [[gnu::noinline]] static void score_heads(const BlockShape& shape, const Tile& given, const float* q) noexcept {
    ScoreTile<keys> tile(shape, given, q);
    const std::size_t heads = shape.kv_heads;
    for (std::size_t head = 0; head < heads; ++head) {
      score_rows<format, count, keys, beside, ragged>(tile);
      if constexpr (more) {
        std::size_t left = shape.rows - count;
        for (; left >= count; left -= count) score_rows<format, count, keys, beside, ragged>(tile);
        for (; left > 0; --left) score_rows<format, 1, keys, beside, ragged>(tile);
      }
      tile.element += tile.dim;
    }
  }

  template <RowFormat format, std::size_t keys, bool beside, bool ragged>
  static void score_tile(const BlockShape& shape, const Tile& tile, const float* q) noexcept {
    switch (shape.rows) {
      case 1: return score_heads<format, 1, keys, beside, ragged>(shape, tile, q);
      case 2: return score_heads<format, 2, keys, beside, ragged>(shape, tile, q);
      case 3: return score_heads<format, 3, keys, beside, ragged>(shape, tile, q);
      case 4: return score_heads<format, 4, keys, beside, ragged>(shape, tile, q);
      default: return score_heads<format, 4, keys, beside, ragged, true>(shape, tile, q);
    }
  }

  template <RowFormat format, std::size_t keys, class Asks, bool ragged = false>
  static void score_keys(const BlockShape& shape, const KeyWalk& walk, const float* q) noexcept {
    const std::uint32_t places = static_cast<std::uint32_t>(keys) / walk.streams;
    const std::uint32_t end = walk.first + walk.places;
    const Asks asks(walk, bytes_of(format, shape.kv_heads * shape.dim));
    for (std::uint32_t i = walk.first; i < end; i += places) {
      Tile tile;
      // Missing keys repeat the first one, whose scores are then written again, the same ones.
      for (std::uint32_t at = i; at < i + places; ++at)
        for (std::uint32_t stream = 0; stream < walk.streams; ++stream) {
          const std::uint32_t key = at + stream * walk.apart;
          tile.put(walk, at < end && key < walk.to ? key : i);
        }
      asks.begin(tile);
      score_tile<format, keys, Asks::kBeside, ragged>(shape, tile, q);
    }
  }

  template <RowFormat format>
  static void score_walk(const BlockShape& shape, const KeyWalk& walk, const float* q) noexcept {
    // Only f32 rows have heads that end inside a batch; the others are decoded (blocked_attention.cpp).
    if (format == RowFormat::f32 && shape.dim % kPartialSums != 0)
      return score_keys<RowFormat::f32, kStreams, AskBeside, true>(shape, walk, q);
    if (walk.asking == Asking::none) return score_keys<format, Fit::kScoreKeysMax, AskNothing>(shape, walk, q);
    if (is_arithmetic_bound(format, shape.rows))
      return score_keys<format, Fit::kScoreKeysMax, AskBeside>(shape, walk, q);
    return score_keys<format, kStreams, AskBeside>(shape, walk, q);
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
      if (at_ == kStreams * streams_.lines) return;
      prefetch(streams_.at[at_ % kStreams], at_ / kStreams * kLineBytes);
      ++at_;
    }

   private:
    const Streams streams_;
    std::size_t at_ = 0;
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
  template <RowFormat format, std::size_t rows, std::size_t keys, bool beside>
  static void add_rows(const BlockShape& shape, const Tile& tile, std::size_t first_key, std::size_t element,
                       float* sums, std::size_t first) noexcept {
    using Loads = RowLoads<Arch, format>;
    const std::size_t dim = shape.dim;
    const std::byte* v_row[keys];
    const std::uintptr_t ahead = tile.beside;
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
      for (std::size_t key = 0; key < keys; ++key)
        v[key] = beside ? Loads::stream(v_row[key], element + d, ahead) : Loads::load(v_row[key], element + d);
      step(d, v);
    }
    if (whole == dim) return;
    Batch v[keys];
    for (std::size_t key = 0; key < keys; ++key) v[key] = Loads::load_some(v_row[key], element + whole, dim - whole);
    step(whole, v);
  }

  /// As add_rows, for all the tile's keys, and for `rows` query rows from `first` on of each of `heads` heads of whole
  /// strips, a few batches each, which stay in registers meanwhile.
  template <RowFormat format, std::size_t rows, std::size_t keys, bool beside>
  static void add_strips(const BlockShape& shape, const Tile& tile, std::size_t element, float* sums, std::size_t first,
                         std::size_t heads) noexcept {
    using Loads = RowLoads<Arch, format>;
    constexpr std::size_t kParts = Fit::kAddParts;
    const std::size_t padded = shape.padded;
    const std::size_t strips = shape.dim / kStrip;
    const std::uintptr_t ahead = tile.beside;
    float* to[rows];
    for (std::size_t row = 0; row < rows; ++row) to[row] = sums + (first + row) * padded;
    for (std::size_t head = 0; head < heads; ++head) {
      for (std::size_t strip = 0; strip < strips; ++strip) {
        Batch sum[rows][kParts];
        for (std::size_t row = 0; row < rows; ++row)
          for (std::size_t part = 0; part < kParts; ++part)
            sum[row][part] = Batch::load_unaligned(to[row] + part * kSize);
        for (std::size_t key = 0; key < keys; ++key) {
          const float* const weights = tile.scores[key] + first;
          Batch weight[rows];
          for (std::size_t row = 0; row < rows; ++row) weight[row] = Batch(weights[row]);
          for (std::size_t part = 0; part < kParts; ++part) {
            Batch v = beside ? Loads::stream(tile.rows[key], element + part * kSize, ahead)
                             : Loads::load(tile.rows[key], element + part * kSize);
            Fit::keep(v);
            for (std::size_t row = 0; row < rows; ++row)
              sum[row][part] = Fused<Arch>::add(weight[row], v, sum[row][part]);
          }
        }
        for (std::size_t row = 0; row < rows; ++row) {
          for (std::size_t part = 0; part < kParts; ++part) sum[row][part].store_unaligned(to[row] + part * kSize);
          to[row] += kStrip;
        }
        element += kStrip;
      }
      first += rows;
      for (std::size_t row = 0; row < rows; ++row) to[row] += rows * padded - strips * kStrip;
    }
  }
  static constexpr std::size_t kStrip = Fit::kAddParts * kSize;
  /// Strips pay where there are more keys than add_rows takes, or all lie in a cache.
  template <bool beside>
  static bool has_strips(const BlockShape& shape, const Tile& tile) noexcept {
    return shape.dim % kStrip == 0 && (tile.count == kTileKeysMax || (!beside && tile.count == kTileKeysMax / 2));
  }
  template <RowFormat format, std::size_t rows, bool beside>
  static void add_strips_of(const BlockShape& shape, const Tile& tile, std::size_t element, float* sums,
                            std::size_t first, std::size_t heads) noexcept {
    if (tile.count == kTileKeysMax)
      return add_strips<format, rows, kTileKeysMax, beside>(shape, tile, element, sums, first, heads);
    add_strips<format, rows, kTileKeysMax / 2, beside>(shape, tile, element, sums, first, heads);
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

  template <RowFormat format, std::size_t rows, bool beside>
  static void add_all(const BlockShape& shape, const Tile& tile, std::size_t element, float* sums,
                      std::size_t first) noexcept {
    if (has_strips<beside>(shape, tile))
      return add_strips_of<format, rows, beside>(shape, tile, element, sums, first, 1);
    constexpr std::size_t kAtOnce = 2 * kStreams;
    for (std::size_t key = 0; key < tile.count; key += kAtOnce) {
      switch (tile.count - key) {
        case 1: add_rows<format, rows, 1, beside>(shape, tile, key, element, sums, first); break;
        case 2: add_rows<format, rows, 2, beside>(shape, tile, key, element, sums, first); break;
        case 3: add_rows<format, rows, 3, beside>(shape, tile, key, element, sums, first); break;
        default: add_rows<format, rows, kAtOnce, beside>(shape, tile, key, element, sums, first); break;
      }
    }
  }

  template <RowFormat format, std::size_t rows, bool beside>
  static void add_seen(const BlockShape& shape, const Tile& tile, std::size_t element, const RunningRows& running,
                       std::size_t first) noexcept {
    if (all_see(running, first, rows, tile))
      return add_all<format, rows, beside>(shape, tile, element, running.sums, first);
    for (std::size_t key = 0; key < tile.count; ++key)
      for (std::size_t row = first; row < first + rows; ++row)
        if (sees(running, row, tile.index[key]))
          add_rows<format, 1, 1, beside>(shape, tile, key, element, running.sums, row);
  }

  template <RowFormat format, bool beside>
  static void add_tile(const BlockShape& shape, const Tile& tile, const RunningRows& running) noexcept {
    const std::size_t heads = shape.kv_heads;
    if (running.from == nullptr && has_strips<beside>(shape, tile) && shape.rows <= Fit::kAddRows) {
      switch (shape.rows) {
        case 1: return add_strips_of<format, 1, beside>(shape, tile, 0, running.sums, 0, heads);
        case 2: return add_strips_of<format, 2, beside>(shape, tile, 0, running.sums, 0, heads);
        case 3: return add_strips_of<format, 3, beside>(shape, tile, 0, running.sums, 0, heads);
        default: return add_strips_of<format, 4, beside>(shape, tile, 0, running.sums, 0, heads);
      }
    }
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t element = head * shape.dim;
      std::size_t row = head * shape.rows;
      const std::size_t end = row + shape.rows;
      for (; row + Fit::kAddRows <= end; row += Fit::kAddRows)
        add_seen<format, Fit::kAddRows, beside>(shape, tile, element, running, row);
      switch (end - row) {
        case 3: add_seen<format, 3, beside>(shape, tile, element, running, row); break;
        case 2: add_seen<format, 2, beside>(shape, tile, element, running, row); break;
        case 1: add_seen<format, 1, beside>(shape, tile, element, running, row); break;
        default: break;
      }
    }
  }

  /// `keys` of them at a time. Where a stream has no key, keys of the next place fill the tile up: that changes no
  /// order.
  template <RowFormat format, class Asks>
  static void add_keys(const BlockShape& shape, const KeyWalk& walk, const RunningRows& running,
                       std::size_t keys) noexcept {
    Tile tile;
    const Asks asks(walk, bytes_of(format, shape.kv_heads * shape.dim));
    const auto add_those = [&] {
      asks.begin(tile);
      add_tile<format, Asks::kBeside>(shape, tile, running);
      tile.count = 0;
    };
    for (std::uint32_t i = walk.first; i < walk.first + walk.places; ++i) {
      for (std::uint32_t stream = 0; stream < walk.streams; ++stream) {
        const std::uint32_t key = i + stream * walk.apart;
        if (key < walk.from || key >= walk.to) continue;
        tile.put(walk, key);
        if (tile.count == keys) add_those();
      }
    }
    if (tile.count > 0) add_those();
  }

  template <RowFormat format>
  static void add_walk(const BlockShape& shape, const KeyWalk& walk, const RunningRows& running) noexcept {
    if (walk.asking == Asking::none) return add_keys<format, AskNothing>(shape, walk, running, kTileKeysMax);
    const std::size_t keys = is_arithmetic_bound(format, shape.rows)
                                 ? keys_together(bytes_of(format, shape.kv_heads * shape.dim))
                                 : kStreams;
    add_keys<format, AskBeside>(shape, walk, running, keys);
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
