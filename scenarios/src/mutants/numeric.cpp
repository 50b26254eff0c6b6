/// Faults of arithmetic: tiles without a visible key, dead rows that are loaded all the same, partial results.
#include "mutants/groups.hpp"
#include "mutants/unsaid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvwitness::scenarios::mutants {

namespace {

using core::AttentionInput;
using core::Run;

/// One head's softmax under way (Milakov, Gimelshein, arXiv:1805.02867); `sum` [head_dim] lies in the output row.
struct Partial {
  float max = -std::numeric_limits<float>::infinity();
  float denominator = 0;
};

[[nodiscard]] float score_of(const AttentionInput& row, const Run& run, std::uint32_t index,
                             std::uint32_t head) noexcept {
  const std::uint32_t kv_head = head / (row.q_heads / row.kv_heads);
  const auto* key = reinterpret_cast<const float*>(run.k_row(index)) + std::size_t{kv_head} * row.head_dim;
  const float* query = row.q.data() + std::size_t{head} * row.head_dim;
  float dot = 0;
  for (std::uint32_t i = 0; i < row.head_dim; ++i) dot += query[i] * key[i];
  const float score = dot * row.score_scale;
  return row.softcap > 0 ? row.softcap * std::tanh(score / row.softcap) : score;
}

void add_value(const AttentionInput& row, const Run& run, std::uint32_t index, std::uint32_t head, float weight,
               float* sum) noexcept {
  const std::uint32_t kv_head = head / (row.q_heads / row.kv_heads);
  const auto* value = reinterpret_cast<const float*>(run.v_row(index)) + std::size_t{kv_head} * row.head_dim;
  for (std::uint32_t i = 0; i < row.head_dim; ++i) sum[i] += weight * value[i];
}

void rescale(std::uint32_t head_dim, float factor, float* sum) noexcept {
  for (std::uint32_t i = 0; i < head_dim; ++i) sum[i] *= factor;
}

[[nodiscard]] bool sees(const AttentionInput& row, core::Position position) noexcept {
  return position <= row.first_query && position >= trace::window_low(row.window, row.first_query);
}

/// Softmax tile by tile within each run. Rows of a tile that the query does not see score -inf and are loaded.
class TiledPath : public UnsaidPath {
 public:
  explicit TiledPath(const core::StoreConfig& config) : config_(config) {}

 protected:
  static constexpr std::uint32_t kTile = 4;
  static constexpr float kMasked = -std::numeric_limits<float>::infinity();

  void attend_row(core::LayerIndex layer, const AttentionInput& row, std::span<const Run> runs,
                  std::span<float> out) const noexcept override {
    for (std::uint32_t head = 0; head < row.q_heads; ++head) {
      float* sum = out.data() + std::size_t{head} * row.head_dim;
      std::fill_n(sum, row.head_dim, 0.0F);
      Partial partial;
      for (const Run& run : runs) {
        const Loaded rows = loaded(layer, run);
        for (std::uint32_t first = 0; first < rows.run.count; first += kTile)
          add_tile(row, rows, head, {first, std::min(first + kTile, rows.run.count)}, partial, sum);
      }
      if (partial.denominator != 0) rescale(row.head_dim, 1 / partial.denominator, sum);
    }
  }
  /// Rows that are loaded for a run, and which of them are the run's own.
  struct Loaded {
    Run run;
    Range own;
  };
  [[nodiscard]] virtual Loaded loaded(core::LayerIndex, const Run& run) const noexcept { return {run, {0, run.count}}; }
  /// What a row scores that the query may not see.
  [[nodiscard]] virtual float masked_score(const AttentionInput&, const Run&, std::uint32_t,
                                           std::uint32_t) const noexcept {
    return kMasked;
  }
  /// Whether a value of weight 0 is left out instead of added.
  [[nodiscard]] virtual bool skips_weightless() const noexcept { return false; }
  /// Whether a tile may be skipped because the query sees none of it.
  [[nodiscard]] virtual bool skips_dead_tiles() const noexcept { return true; }
  /// Whether a row behind the run's end takes part.
  [[nodiscard]] virtual bool sees_behind_run() const noexcept { return false; }
  /// A run and the rows behind it, as many as make `count`, but none behind the layer's last slot.
  [[nodiscard]] Loaded with_rows_behind(core::LayerIndex layer, const Run& run, std::uint32_t count) const noexcept {
    const std::uint32_t capacity = config_.layers[layer].capacity;
    Loaded rows{run, {0, run.count}};
    if (run.slot < capacity) rows.run.count = std::min(count, capacity - run.slot);
    return rows;
  }
  [[nodiscard]] Loaded in_whole_tiles(core::LayerIndex layer, const Run& run) const noexcept {
    return with_rows_behind(layer, run, (run.count + kTile - 1) / kTile * kTile);
  }
  [[nodiscard]] std::uint32_t capacity(core::LayerIndex layer) const noexcept { return config_.layers[layer].capacity; }

 private:
  [[nodiscard]] bool is_visible(const AttentionInput& row, const Loaded& rows, std::uint32_t index) const noexcept {
    const bool is_own = index >= rows.own.from && index < rows.own.to;
    return is_own ? sees(row, rows.run.first + index) : sees_behind_run();
  }

  void add_tile(const AttentionInput& row, const Loaded& rows, std::uint32_t head, Range tile, Partial& partial,
                float* sum) const noexcept {
    const Run& run = rows.run;
    float scores[kTile];
    float tile_max = kMasked;
    for (std::uint32_t i = tile.from; i < tile.to; ++i) {
      const float score = is_visible(row, rows, i) ? score_of(row, run, i, head) : masked_score(row, run, i, head);
      scores[i - tile.from] = score;
      tile_max = std::max(tile_max, score);
    }
    if (tile_max == kMasked && skips_dead_tiles()) return;
    const float max = std::max(partial.max, tile_max);
    const float factor = partial.denominator == 0 && skips_dead_tiles() ? 0 : std::exp(partial.max - max);
    rescale(row.head_dim, factor, sum);
    partial = {max, partial.denominator * factor};
    for (std::uint32_t i = tile.from; i < tile.to; ++i) {
      const float weight = std::exp(scores[i - tile.from] - max);
      partial.denominator += weight;
      if (weight != 0 || !skips_weightless()) add_value(row, run, i, head, weight, sum);
    }
  }

  core::StoreConfig config_;
};

class DeadTilePath final : public TiledPath {
  using TiledPath::TiledPath;
  // -inf - -inf: the first tile of a row that sees none of it turns the whole row into NaN.
  bool skips_dead_tiles() const noexcept override { return false; }
};

class WholeTilesPath final : public TiledPath {
  using TiledPath::TiledPath;
  Loaded loaded(core::LayerIndex layer, const Run& run) const noexcept override { return in_whole_tiles(layer, run); }
};

class AlignedTilesPath final : public TiledPath {
  using TiledPath::TiledPath;
  // Tiles begin at multiples of their size: what lies before the run in its first one is loaded too.
  Loaded loaded(core::LayerIndex layer, const Run& run) const noexcept override {
    Loaded rows{run, {0, run.count}};
    if (run.slot >= capacity(layer)) return rows;
    const std::uint32_t before = run.slot % kTile;
    rows.run.first -= before;
    rows.run.count += before;
    rows.run.slot -= before;
    rows.run.k -= before * run.k_stride_bytes;
    rows.run.v -= before * run.v_stride_bytes;
    rows.own = {before, before + run.count};
    return rows;
  }
};

class AddedMaskPath final : public TiledPath {
  using TiledPath::TiledPath;
  Loaded loaded(core::LayerIndex layer, const Run& run) const noexcept override { return in_whole_tiles(layer, run); }
  // NaN stays NaN, whatever is added to it.
  float masked_score(const AttentionInput& row, const Run& run, std::uint32_t index,
                     std::uint32_t head) const noexcept override {
    return score_of(row, run, index, head) + kMasked;
  }
  bool skips_weightless() const noexcept override { return true; }
};

class FiniteMaskPath final : public TiledPath {
  using TiledPath::TiledPath;
  Loaded loaded(core::LayerIndex layer, const Run& run) const noexcept override { return in_whole_tiles(layer, run); }
  // Enough against any score of a row, not against any number that memory may hold.
  float masked_score(const AttentionInput& row, const Run& run, std::uint32_t index,
                     std::uint32_t head) const noexcept override {
    constexpr float kPenalty = -1e9F;
    const float score = score_of(row, run, index, head);
    return std::isnan(score) ? kMasked : score + kPenalty;
  }
  bool skips_weightless() const noexcept override { return true; }
};

class WholeBufferPath final : public TiledPath {
  using TiledPath::TiledPath;
  Loaded loaded(core::LayerIndex layer, const Run& run) const noexcept override {
    const bool warming_up = run.slot == 0 && run.first == 0;
    return warming_up ? with_rows_behind(layer, run, capacity(layer)) : TiledPath::loaded(layer, run);
  }
  bool sees_behind_run() const noexcept override { return true; }
};

/// Correct, but each run gets a softmax of its own and the two are merged: the bits depend on where the ring wraps.
class PartialPerRunPath final : public UnsaidPath {
 public:
  explicit PartialPerRunPath(const core::StoreConfig&) {}

 protected:
  void attend_row(core::LayerIndex, const AttentionInput& row, std::span<const Run> runs,
                  std::span<float> out) const noexcept override {
    for (std::uint32_t head = 0; head < row.q_heads; ++head) {
      float* sum = out.data() + std::size_t{head} * row.head_dim;
      std::fill_n(sum, row.head_dim, 0.0F);
      Partial merged;
      for (const Run& run : runs) merge_run(row, run, head, merged, sum);
      if (merged.denominator != 0) rescale(row.head_dim, 1 / merged.denominator, sum);
    }
  }

 private:
  static void merge_run(const AttentionInput& row, const Run& run, std::uint32_t head, Partial& merged,
                        float* sum) noexcept {
    float max = -std::numeric_limits<float>::infinity();
    for (std::uint32_t i = 0; i < run.count; ++i) {
      if (sees(row, run.first + i)) max = std::max(max, score_of(row, run, i, head));
    }
    if (std::isinf(max) && max < 0) return;
    const float whole = std::max(merged.max, max);
    const float factor = merged.denominator == 0 ? 0 : std::exp(merged.max - whole);
    rescale(row.head_dim, factor, sum);
    float denominator = 0;
    for (std::uint32_t i = 0; i < run.count; ++i) {
      if (!sees(row, run.first + i)) continue;
      const float weight = std::exp(score_of(row, run, i, head) - whole);
      denominator += weight;
      add_value(row, run, i, head, weight, sum);
    }
    merged = {whole, merged.denominator * factor + denominator};
  }
};

/// Memory as an allocator may leave it: every byte 0xff, a NaN in each float that was never written.
class DirtyFlat final : public PlainFlat {
 public:
  explicit DirtyFlat(const core::StoreConfig& config) : PlainFlat(config) { fill_memory(std::byte{0xff}); }
};

}  // namespace

std::span<const Mutant> numeric_mutants() {
  static const Mutant kMutants[] = {
      path_mutant<PlainRing, WholeBufferPath>({"unwritten-slots-visible", "stale-slot-visible",
                                               "huggingface/transformers#45940", "visible-set",
                                               "until the ring is full its unwritten slots are attended",
                                               "the mask was as wide as the window, not as the count of written rows"}),
      path_mutant<PlainRing, DeadTilePath>({"dead-tile-is-nan", "degenerate-softmax", "flagos-ai/FlagAttention#25",
                                            "numeric-oracle", "a row whose first tile is masked throughout is NaN",
                                            "-inf was subtracted from -inf"}),
      path_mutant<DirtyFlat, WholeTilesPath>({"dead-rows-times-zero", "masked-garbage-leak",
                                              "Dao-AILab/flash-attention#2374", "numeric-oracle",
                                              "NaN in rows that were never written reaches the output",
                                              "whole tiles of values were loaded, and weight 0 times NaN is NaN"}),
      path_mutant<PlainRing, WholeTilesPath>({"last-tile-times-zero", "masked-garbage-leak",
                                              "openvinotoolkit/openvino#37377", "same-output",
                                              "values behind the last row are added with weight 0",
                                              "the last block was summed up at its capacity, not at its length"}),
      path_mutant<PlainRing, AlignedTilesPath>({"expired-rows-times-zero", "masked-garbage-leak",
                                                "vllm-project/vllm#53628", "same-output",
                                                "expired rows in the first tile are added with weight 0",
                                                "whole expired tiles were skipped, and the first live one was loaded"}),
      path_mutant<PlainFlat, AddedMaskPath>({"mask-added-to-garbage", "masked-garbage-leak", "deepbeepmeep/Wan2GP#1628",
                                             "same-output", "minus infinity is added to the scores of dead rows",
                                             "additive masks assume that what they mask is a number"}),
      path_mutant<PlainRing, FiniteMaskPath>({"mask-of-finite-weight", "masked-garbage-leak", "", "same-output",
                                              "masked scores are lowered by a billion, and garbage may be larger",
                                              "a finite penalty stood for minus infinity, which made NaN elsewhere"}),
      path_mutant<PlainRing, PartialPerRunPath>({"partial-per-run", "ring-wrap-index", "awslabs/keys_values#140",
                                                 "same-output",
                                                 "the last bits of an output depend on where the ring wraps",
                                                 "rows behind and before the wrap were reduced apart and merged"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
